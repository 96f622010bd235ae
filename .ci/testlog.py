#!/usr/bin/env python3
"""Reads `go test -json` and prints what a person wants: a line a package, and all output of what failed.

usage: go test -json … | testlog.py COUNTS

It appends "passed failed skipped" to the file COUNTS. A package that fails without a failing test, because it does not
build or ends early, counts as one failure, and so does one in which no test ran. Exits with 1 where something failed.
"""

import collections
import json
import sys


def main(counts):
    output = collections.defaultdict(list)  # by package and test; by package alone for what belongs to no test
    tally = collections.defaultdict(collections.Counter)
    skipped = []
    for line in sys.stdin:
        try:
            event = json.loads(line)
        except ValueError:
            print(line, end="", flush=True)
            continue
        package, test, action = event.get("Package") or event.get("ImportPath"), event.get("Test"), event["Action"]
        if action in ("output", "build-output"):
            output[package, test].append(event["Output"])
        elif action == "build-fail":
            print("".join(output.pop((package, test), [])), end="", flush=True)
        elif action in ("pass", "fail", "skip") and test:
            tally[package][action] += 1
            said = output.pop((package, test), [])
            if action == "fail":
                print(f"FAIL {package} {test}\n{''.join(said)}", end="", flush=True)
            elif action == "skip":
                skipped.append((package, test, said))
        elif action in ("pass", "fail", "skip"):
            end(package, action, event.get("Elapsed", 0), tally[package], output)
    for package, test, said in skipped:
        reason = [line.strip() for line in said if not line.startswith(("===", "---")) and "--- SKIP" not in line]
        print(f"skipped {package} {test}: {' '.join(reason)}")
    total = sum(tally.values(), collections.Counter())
    with open(counts, "a", encoding="utf-8") as out:
        print(total["pass"], total["fail"], total["skip"], file=out)
    return 1 if total["fail"] else 0


def end(package, action, seconds, tally, output):
    """Says how a package ended. Tests that began and did not end are among the output that is left."""
    left = [key for key in output if key[0] == package]
    said = "".join(text for key in left for text in output.pop(key))
    if action == "skip":
        print(f"?   {package} [no test files]", flush=True)
        return
    if action == "pass" and not tally:
        action, said = "fail", f"{package} has tests, but none of that name ran\n"
    if action == "fail" and not tally["fail"]:
        tally["fail"] += 1
        print(said, end="")
    elif action == "fail":
        print("".join(line for line in said.splitlines(True) if "-test.shuffle" in line), end="")
    print(f"{'ok' if action == 'pass' else 'FAIL':5}{package} {seconds:.1f}s, {tally['pass']} passed, {tally['fail']} failed", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
