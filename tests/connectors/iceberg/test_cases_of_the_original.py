"""Two faults of Iceberg's own sink that cost people rows, its issues 17340 and 17551, tried on ours."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchProducer
from connect.bench import RunningTask
from connectors.iceberg.offsets import stored_offsets
from tests.connectors.iceberg.records import batch, partition, sink
from tests.support.iceberg import iceberg_rows, iceberg_table, local_catalog
from tests.support.platform import until
from tests.support.worker import ConnectWorker


@pytest.mark.parametrize("seed", range(1))
def test_tasks_that_restart_in_the_middle_of_commits_register_no_file_twice(tmp_path: Path, seed: int) -> None:
    """Issue 17340: after rebalances, coordinators read events again and committed the same files in two commits: 149 files and
    111,927 rows twice. Here tasks are killed and replaced at any step, old ones live on, and the group's offsets lag.
    """
    choice = random.Random(seed)
    ends, group = {0: 300, 1: 300, 2: 300}, {0: 0, 1: 0, 2: 0}

    def place(part: int, offset: int) -> int:
        return part * 1000 + offset

    with ExitStack() as opened:

        def started(part: int) -> RunningTask:
            made = opened.enter_context(sink(tmp_path, part, control__commit__interval_ms="3600000"))
            positions[part] = made.context.rewinds.pop(partition(part), group[part])
            return made

        positions: dict[int, int] = {}
        tasks = {part: started(part) for part in ends}
        stale: list[tuple[int, RunningTask]] = []
        for _ in range(40):
            part = choice.choice(list(ends))
            task = tasks[part]
            stop = min(positions[part] + choice.randint(1, 40), ends[part])
            if positions[part] < stop:
                rows = batch(place(part, positions[part]), place(part, stop), part)
                rows = rows.replace(offsets=_minus(rows.offsets, place(part, 0)))
                task.task.put([rows])
                positions[part] = stop
            step = choice.random()
            if step < 0.4:
                task.task.flush()
                positions[part] = task.context.rewinds.pop(partition(part), positions[part])
                if choice.random() < 0.5:  # the group's commit may be lost
                    group[part] = positions[part]
            elif step < 0.6:
                stale.append((part, task))  # it lives on, with rows that it has not committed
                tasks[part] = started(part)
            if stale and choice.random() < 0.3:
                _, old = stale.pop(choice.randrange(len(stale)))
                old.task.flush()
        for part, task in tasks.items():
            task.task.put([_from(part, positions[part], ends[part])] if positions[part] < ends[part] else [])
            task.task.flush()
            for again in range(3):  # an old task may have committed the same rows first: then they are left to it
                rest = task.context.rewinds.pop(partition(part), None)
                if rest is None or rest >= ends[part]:
                    break
                assert again < 2
                task.task.put([_from(part, rest, ends[part])])
                task.task.flush()
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    files = Counter(task.file.file_path for task in table.scan().plan_files())
    assert set(files.values()) == {1}, "a file is in the table once"
    ids = iceberg_rows(local_catalog(tmp_path), "shop.orders").column("id").to_pylist()
    assert sorted(ids) == [place(part, offset) for part in ends for offset in range(ends[part])]
    told = [
        stored_offsets_of(snapshot.summary.additional_properties)
        for snapshot in table.snapshots()
        if snapshot.summary is not None
    ]
    for before, after in itertools.pairwise(told):
        assert all(after[name] >= offset for name, offset in before.items()), "offsets in the table never go back"
    assert {part.partition: mark.next_offset for part, mark in stored_offsets(table, "main", "bench").items()} == ends


def stored_offsets_of(properties: dict[str, str]) -> dict[str, int]:
    text = json.loads(properties["tidegate.offsets.bench"])
    return {number: mark[0] for number, mark in text["orders"].items()}


def _minus(offsets: Any, number: int) -> Any:
    import pyarrow.compute as pc

    return pc.subtract(offsets, number)


def _from(part: int, start: int, stop: int) -> Any:
    rows = batch(part * 1000 + start, part * 1000 + stop, part)
    return rows.replace(offsets=_minus(rows.offsets, part * 1000))


@pytest.mark.proof
def test_a_group_whose_offset_fell_behind_the_log_loses_nothing(tidegate_broker: Any, tmp_path: Path) -> None:
    """Issue 17551: a coordinator that should have ended wrote an old offset, the records there were gone, and its successor
    began at the end of the topic, as ``auto.offset.reset=latest`` says. What lay between was never committed.
    """
    servers, topic = tidegate_broker.bootstrap_servers, "iceberg-17551"
    catalog = local_catalog(tmp_path)
    worker = ConnectWorker(tmp_path / "worker", servers, name="iceberg-17551")
    where = TopicPartition(topic, 0)
    with Admin(ClientConfig(servers)) as admin, BatchProducer(ClientConfig(servers)) as producer:
        admin.create_topics([NewTopic(topic, 1)])

        def produce(start: int, stop: int) -> None:
            for n in range(start, stop):
                producer.enqueue(topic, None, b'{"id": %d}' % n, partition=0)
            producer.flush()

        def ids() -> list[int]:
            return sorted(iceberg_rows(catalog, "shop.orders", "id").column("id").to_pylist())

        produce(0, 100)
        worker.start()
        try:
            worker.ask(
                "POST",
                "/connectors",
                {
                    "name": "lossless",
                    "config": {
                        **catalog,
                        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
                        "topics": topic,
                        "iceberg.tables": "shop.orders",
                        "iceberg.tables.auto-create-enabled": "true",
                        "iceberg.control.commit.interval-ms": "100",
                        "iceberg.kafka.auto.offset.reset": "latest",
                    },
                },
                expect=201,
            )
            until(lambda: admin.group_offsets("connect-lossless").get(where) == 100, "the first rows")
            config = worker.ask("GET", "/connectors/lossless/config")
            worker.ask("PUT", "/connectors/lossless/stop")
            worker.wait_for("lossless", connector="STOPPED")
            until(lambda: admin.describe_group("connect-lossless").state == "Empty", "the group without members")
            worker.ask("PUT", "/connectors/lossless/config", config | {"consumer.override.auto.offset.reset": "latest"})
            produce(100, 150)
            admin.alter_group_offsets("connect-lossless", {where: 10})  # as the old coordinator did
            admin.delete_records({where: 60})
            worker.ask("PUT", "/connectors/lossless/resume")
            worker.wait_for("lossless", connector="RUNNING", task0="RUNNING")
            until(lambda: admin.group_offsets("connect-lossless").get(where) == 150, "all rows")
            assert ids() == list(range(150))
            # The group has no offset at all: what came before the table's commit is not read again, what came after it is.
            worker.ask("PUT", "/connectors/lossless/stop")
            worker.wait_for("lossless", connector="STOPPED")
            until(lambda: admin.describe_group("connect-lossless").state == "Empty", "the group without members")
            produce(150, 200)
            admin.delete_groups(["connect-lossless"])
            worker.ask("PUT", "/connectors/lossless/resume")
            until(lambda: admin.group_offsets("connect-lossless").get(where) == 200, "the last rows")
            assert ids() == list(range(200))
        finally:
            worker.stop()
