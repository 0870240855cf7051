"""``python -m tests.proofs.history``: run seeds, or judge a recorded history again."""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.proofs.history.broken import BROKEN
from tests.proofs.history.history import History
from tests.proofs.history.plan import plan
from tests.proofs.history.rules import judge
from tests.proofs.history.run import APACHE_FAULTS, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.history", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="*", default=[1])
    parser.add_argument("--count", type=int, default=1, help="as many seeds from the first one on")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--apache", action="store_true", help="Apache Kafka instead of our broker")
    parser.add_argument("--broken", choices=BROKEN, help="our broker, broken on purpose")
    parser.add_argument("--no-transactions", action="store_true")
    parser.add_argument("--judge", type=Path, help="a history to judge again; nothing is run")
    parser.add_argument("--folder", type=Path, help="where data and histories go")
    parser.add_argument("--at-once", type=int, default=1, help="seeds that run side by side")
    options = parser.parse_args()
    if options.judge:
        violations = judge(History.load(options.judge))
        print("\n".join(violations) or "nothing is wrong")
        return bool(violations)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="tidegate-history-"))
    seeds = [first + n for first in options.seed for n in range(options.count)]
    faults = APACHE_FAULTS if options.apache else None

    def one(seed: int) -> bool:
        made = plan(seed, seconds=options.seconds, transactions=not options.no_transactions, faults=faults)
        history = run(made, folder / str(seed), broken=options.broken, apache=options.apache)
        history.save(folder / f"{seed}.jsonl")
        violations = judge(history)
        acked = sum(1 for _ in history.of("ack"))
        kinds = [event["kind"] for event in history.of("fault")]
        said = f"seed {seed}: {acked} acknowledged, {len(history.events)} events, {history.now():.1f} s, {kinds}"
        print("\n  ".join([said, *violations]), flush=True)
        return bool(violations)

    with ThreadPoolExecutor(options.at_once) as pool:
        wrong = sum(pool.map(one, seeds))
    print(f"{wrong} seeds went wrong; histories are in {folder}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
