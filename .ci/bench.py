"""Measures the built binary: how soon varve dev is ready, and how long the demo's days take. See .ci/bench."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

varve, work, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])

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


def report(name, seconds, unit):
    line = {"work": name, "runs": len(seconds), "min_s": min(seconds), "median_s": statistics.median(seconds), "max_s": max(seconds)}
    line["per_calibration"] = line["median_s"] / unit
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
    return line["median_s"]


project = os.path.join(work, "project")
run("init", project)
times = {"calibration": [], "dev ready": [], "demo days": []}
for _ in range(runs):  # in turns, so that a slow moment of the machine meets them all
    times["calibration"].append(calibration(project))
    times["dev ready"].append(dev(project))
    times["demo days"].append(demo(os.path.join(work, "demo")))
unit = statistics.median(times["calibration"])
medians = {name: report(name, seconds, unit) for name, seconds in times.items()}
if medians["dev ready"] > 3 or medians["demo days"] > 40:
    sys.exit("slower than promised: varve dev in 3 s, the demo's days in 40 s")
