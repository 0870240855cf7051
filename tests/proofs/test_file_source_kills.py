"""Files through a worker that is killed while others write them: each row is in the log, and no file is moved before its rows are."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.proofs import drawn_seed, effort
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers]

_ROWS = 20_000


def counted(bootstrap: str) -> Counter[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count", "enable.partition.eof": True})
    consumer.assign([TopicPartition("spooled", 0, 0)])
    ids: Counter[int] = Counter()
    while (message := consumer.poll(10)) is not None and message.error() is None:
        ids[json.loads(message.value())["id"]] += 1
    consumer.close()
    return ids


def test_rows_of_files_are_not_lost_whatever_is_killed(tmp_path: Path) -> None:
    dice = random.Random(drawn_seed())
    for name in ("in", "done"):
        (tmp_path / name).mkdir()
    files = effort(6, 60)
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    worker = ConnectWorker(tmp_path / "worker", broker.bootstrap_servers)
    worker.start()

    def write(number: int) -> None:
        rows = "".join(f"{number * _ROWS + n},row {n}\n" for n in range(_ROWS))
        (tmp_path / f"{number}.part").write_text("id,text\n" + rows)
        (tmp_path / f"{number}.part").rename(tmp_path / "in" / f"{number:04d}.csv")

    try:
        write(0)
        worker.create(
            "files",
            connector_class="FileSource",
            topic="spooled",
            input_path=str(tmp_path / "in"),
            input_file_pattern=r".*\.csv",
            file_minimum_age_ms="0",
            batch_size="500",
            cleanup_policy="MOVE",
            finished_path=str(tmp_path / "done"),
        )
        for number in range(1, files):
            write(number)
            time.sleep(dice.uniform(0.2, 1))
            if number % 2:
                worker.kill()
                worker.start()
        wait_until(
            lambda: len(list((tmp_path / "done").iterdir())) == files,
            f"all files moved; {worker.state('files')}",
            timeout_s=240,
            pause_s=0.5,
        )
        ids = counted(broker.bootstrap_servers)
        assert set(ids) == set(range(files * _ROWS)), f"{files * _ROWS - len(ids)} rows are lost"
    finally:
        worker.kill()
        broker.kill()
