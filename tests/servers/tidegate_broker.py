"""Our broker as a separate process, with the same interface as ``KafkaBroker``, so that tests can use either."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers.kafka import metadata_answers
from tests.servers.process import ServerProcess, free_ports

__all__ = ["TidegateBroker"]


class TidegateBroker:
    """One broker with everything under ``directory``. ``settings`` are server.properties; ``port`` is a free one;
    ``open_files`` is its limit.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        *,
        open_files: int | None = None,
    ) -> None:
        self.directory = directory
        self.port = free_ports(1)[0] if port is None else port
        directory.mkdir(parents=True, exist_ok=True)
        properties = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "log"),
            "metrics.listen": "127.0.0.1:0",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "log.retention.check.interval.ms": "86400000",  # records with times of long ago stay while a test reads them
            "group.initial.rebalance.delay.ms": "0",
            "group.share.assignment.interval.ms": "0",
            "group.share.heartbeat.interval.ms": "500",
            "group.share.min.heartbeat.interval.ms": "500",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.streams.min.heartbeat.interval.ms": "100",
            "group.streams.min.session.timeout.ms": "1000",
            **(settings or {}),
        }
        file = directory / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        limited = [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"]
        self.process = ServerProcess(
            "Tidegate's broker",
            [*limited, sys.executable, "-m", "tests.servers.tidegate_broker", str(file)],
            log=directory / "server.log",
            ready=lambda: metadata_answers(self.port),
        )

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        from tests.support.leftovers import left  # here, for the broker's process does without it

        self.process.stop()
        left(self.directory / "log")

    def kill(self) -> None:
        self.process.kill()


def _main(file: str) -> int:
    from broker.server import serve
    from tidegate.kit.logs import configure
    from tidegate.kit.service import run

    configure(format="json")
    lines = Path(file).read_text().splitlines()
    return run(serve(dict(line.split("=", 1) for line in lines)))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
