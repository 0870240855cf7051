"""Our broker as the history checker runs it: its disk is watched, and errors are built in on request."""

from __future__ import annotations

import argparse
import asyncio  # noqa: F401 - imported whole before the disk is watched, as are the others
import shutil  # noqa: F401
import sys
import tempfile  # noqa: F401
from collections.abc import Mapping
from pathlib import Path

from tests.proofs.history.broken import BROKEN
from tests.proofs.history.disk import Disk, watch
from tests.servers.kafka import metadata_answers
from tests.servers.process import ServerProcess, free_ports

__all__ = ["WatchedBroker"]


class WatchedBroker:
    """A ``TidegateBroker`` with a ``disk`` whose power can be cut."""

    def __init__(self, directory: Path, settings: Mapping[str, str], broken: str | None = None) -> None:
        self.data = directory / "log"
        self.disk = Disk(directory / "disk")
        (self.port,) = free_ports(1)
        properties = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data),
            "metrics.listen": "",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
            **settings,
        }
        file = directory / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        options = ["--broken", broken] if broken else []
        self.process = ServerProcess(
            "Tidegate's broker, watched",
            [
                sys.executable,
                "-m",
                __spec__.name if __spec__ else __name__,
                str(file),
                str(directory / "disk"),
                *options,
            ],
            log=directory / "server.log",
            ready=lambda: metadata_answers(self.port),
        )

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("properties", type=Path)
    parser.add_argument("disk", type=Path)
    parser.add_argument("--broken", choices=BROKEN)
    options = parser.parse_args()
    properties = dict(line.split("=", 1) for line in options.properties.read_text().splitlines())

    from broker.server import serve
    from tidegate.kit.logs import configure
    from tidegate.kit.service import run

    configure(format="json")
    watch(Path(properties["log.dirs"]), options.disk)
    if options.broken:
        BROKEN[options.broken]()
    return run(serve(properties))


if __name__ == "__main__":
    sys.exit(main())
