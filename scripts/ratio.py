"""Runs workloads and the hand-written loop in turn, and says which share of its rows a second flowjoin makes.

    python3 scripts/ratio.py [--runs 5] [--size default] [--warm MB] mj3 mj10 interval

Medians count, and only figures of one sitting. A virtual machine may have given its free memory back to its host, and
then pays for each page that a run is the first to touch, the more the more memory the run takes; `--warm` has another
process touch so much memory before each run, as on a machine that keeps what it has.
"""

import argparse
import json
import statistics
import subprocess
import sys


def run(bench, workload, size, tasks):
    command = ["cargo", "bench", "--quiet", "--bench", bench, "--", workload, "--size", size, tasks, "2"]
    line = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    assert line["ok"], line
    return line["rows_per_s"] / 1e6


def warm(megabytes):
    if megabytes:
        subprocess.run([sys.executable, "-c", f"b'1' * ({megabytes} << 20)"], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", default="default")
    parser.add_argument("--warm", type=int, default=0, metavar="MB")
    parser.add_argument("workload", nargs="+")
    args = parser.parse_args()
    benches = {"workloads": "--parallelism", "limit": "--threads"}
    for bench in benches:
        subprocess.run(["cargo", "bench", "--bench", bench, "--no-run"], check=True)
    for workload in args.workload:
        found = {bench: [] for bench in benches}
        for _ in range(args.runs):
            for bench, tasks in benches.items():
                warm(args.warm)
                found[bench].append(run(bench, workload, args.size, tasks))
        ours, theirs = (statistics.median(found[bench]) for bench in benches)
        each = " and ".join(" ".join(f"{rate:.1f}" for rate in found[bench]) for bench in benches)
        print(f"{workload}: {ours:.2f} beside {theirs:.2f} M rows/s = {100 * ours / theirs:.1f} % ({each})", flush=True)


main()
