"""``python -m bench [broker|broker.produce|connect|...] [--runs N]``: run benchmarks and print the median ratios."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

BENCHES = (
    "broker.start",
    "broker.produce",
    "broker.latency",
    "broker.fetch",
    "broker.durable",
    "connect",
    "connect_idle",
    "connect_mirror",
    "connect_groups",
    "connect_transforms",
    "recovery",
    "compaction",
    "backup",
    "avro",
    "registry.requests",
    "registry.start",
    "events.publish",
    "events.subscribe",
    "spark_jobs",
    "spark_merge",
    "spark_read",
    "spark_write",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", default=BENCHES, help=f"which: {', '.join(BENCHES)}")
    parser.add_argument("--runs", type=int, default=5, help="pairs of runs; the median of their ratios counts")
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.runs} interleaved pairs")
    for name in [
        bench for bench in BENCHES if any(bench == asked or bench.startswith(f"{asked}.") for asked in arguments.names)
    ]:
        folder = Path(tempfile.mkdtemp(prefix=f"tidegate-bench-{name}-"))
        try:
            importlib.import_module(f"bench.{name}").main(folder, arguments.runs, console)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
