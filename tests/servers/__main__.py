"""``python -m tests.servers fetch [NAME ...]``: download the servers that tests need into ``.servers/``."""

from __future__ import annotations

import argparse
import sys

from tests.servers.fetch import NAMES, ServerMissing, fetch


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    fetching = actions.add_parser("fetch", help="fetch servers at their pinned versions")
    fetching.add_argument("name", nargs="*", help=f"which (default: all): {', '.join(NAMES)}")
    failed = 0
    for name in parser.parse_args().name or NAMES:
        try:
            print(f"{name}: {fetch(name)}", flush=True)
        except ServerMissing as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
