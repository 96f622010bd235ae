"""Measures the built binary and the Delta package, beside deltalake where it does the same. See .ci/bench."""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

varve, package, work, runs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
tables = os.path.join(work, "tables")

# What the peer does: a fresh process, so that nothing is kept from run to run.
OPEN = """
import sys, time, deltalake
start = time.monotonic()
table = deltalake.DeltaTable(sys.argv[1])
files = len(table.file_uris())
print(time.monotonic() - start, files)
"""

CALIBRATION = "SELECT count(*) AS n FROM (SELECT hash(i) AS h FROM range(10000000) t(i) ORDER BY h LIMIT 9999999)"


def run(*args):
    start = time.monotonic()
    subprocess.run([varve, *args], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def calibration(project):
    return run("-C", project, "query", CALIBRATION)


def dev(project):
    """Seconds from the start of the process to the line that says it is ready."""
    start = time.monotonic()
    p = subprocess.Popen([varve, "-C", project, "dev"], stdout=subprocess.PIPE, text=True)
    try:
        for line in p.stdout:
            if line.startswith("ready:"):
                return time.monotonic() - start
        raise SystemExit("varve dev ended before it was ready")
    finally:
        p.send_signal(signal.SIGINT)
        p.stdout.read()
        p.wait()


def demo(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return run("demo", "--exit", "--dir", folder)


def benchmark(name):
    """Seconds and mebibytes of one operation of a benchmark of the package, in a process of its own."""
    command = [package, "-test.run", "^$", "-test.bench", f"^Benchmark{name}$", "-test.benchtime", "1x"]
    env = dict(os.environ, VARVE_BENCH_TABLES=tables)
    p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    found = re.search(r"(\d+) ns/op", out)
    if status or not found:
        raise SystemExit(f"benchmark {name} failed:\n{out}")
    return int(found[1]) / 1e9, usage.ru_maxrss / 1024


def peer_open():
    out = subprocess.run([sys.executable, "-c", OPEN, os.path.join(tables, "many")], check=True, capture_output=True, text=True).stdout
    seconds, files = out.split()
    if int(files) != 100_000:
        raise SystemExit(f"the peer finds {files} files")
    return float(seconds)


def report(name, seconds, unit):
    line = {"work": name, "runs": len(seconds), "min_s": min(seconds), "median_s": statistics.median(seconds), "max_s": max(seconds)}
    line["per_calibration"] = line["median_s"] / unit
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
    return line["median_s"]


project = os.path.join(work, "project")
run("init", project)
os.makedirs(tables)
for name in ("Open", "Scan"):  # makes their tables
    benchmark(name)
times = {"calibration": [], "dev ready": [], "demo days": [], "open 100,000 files": [], "open 100,000 files, deltalake": [], "scan 10 M int64": []}
memory = 0
for _ in range(runs):  # in turns, so that a slow moment of the machine meets them all
    times["calibration"].append(calibration(project))
    times["dev ready"].append(dev(project))
    times["demo days"].append(demo(os.path.join(work, "demo")))
    seconds, peak = benchmark("Open")
    times["open 100,000 files"].append(seconds)
    memory = max(memory, peak)
    times["open 100,000 files, deltalake"].append(peer_open())
    times["scan 10 M int64"].append(benchmark("Scan")[0])
unit = statistics.median(times["calibration"])
medians = {name: report(name, seconds, unit) for name, seconds in times.items()}
ratio = medians["open 100,000 files"] / medians["open 100,000 files, deltalake"]
print(json.dumps({"work": "open 100,000 files", "per_deltalake": round(ratio, 2), "peak_mib": round(memory)}))
missed = [
    name
    for name, value, most in (
        ("varve dev ready in 3 s", medians["dev ready"], 3),
        ("the demo's days in 40 s", medians["demo days"], 40),
        ("a table of 100,000 files opened in 1.5 times deltalake's time", ratio, 1.5),
        ("in 400 MiB", memory, 400),
        ("10 M numbers scanned in 0.3 s", medians["scan 10 M int64"], 0.3),
    )
    if value > most
]
if missed:
    sys.exit("not met: " + "; ".join(missed))
