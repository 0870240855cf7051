"""How connectors and tasks share task-host processes."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import psutil

from tests.servers.process import answer_when
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker


def statistics(worker: ConnectWorker) -> dict[str, Any]:
    return dict(worker.ask("GET", "/tidegate/v1/connectors")["connectors"])


def test_a_process_is_added_for_tasks_and_not_for_a_connector_beside_its_only_task(
    tidegate_broker: TidegateBroker, tmp_path: Path
) -> None:
    made = ConnectWorker(
        tmp_path, tidegate_broker.bootstrap_servers, {"task.host.processes": "2"}, name=f"w{uuid.uuid4().hex[:8]}"
    )
    made.start()
    try:
        for number, hosts in enumerate((1, 2, 2)):
            name = f"t-{uuid.uuid4().hex[:8]}"
            made.create(name, topic=name, connector_class="org.toys.NumbersConnector", total="5")
            made.wait_for(name, connector="RUNNING", task0="RUNNING")
            told = answer_when(
                lambda told, most=number + 1: len(told) == most,  # type: ignore[misc]
                lambda: [task["host"] for tasks in statistics(made).values() for task in tasks],
                "the tasks' statistics",
            )
            assert len(set(told)) == len(psutil.Process(made.process.pid).children()) == hosts
    finally:
        made.stop()
