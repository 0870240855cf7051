"""The snapshot's state as read from an offset, both ours and the original's."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.debezium.task import snapshot_pending


@pytest.mark.parametrize(
    ("offset", "pending"),
    [
        ({}, False),
        ({"lsn": 5}, False),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": False}, True),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": True}, False),
        ({"file": "b.1", "pos": 4, "snapshot": True}, True),
        ({"lsn": 5, "snapshot": "INITIAL", "snapshot_completed": False}, True),
        ({"lsn": 5, "snapshot": "INITIAL", "snapshot_completed": True, "last_snapshot_record": False}, False),
        ({"lsn": 5, "snapshot": "BLOCKING", "snapshot_completed": False}, False),
    ],
)
def test_an_initial_snapshot_that_did_not_end_begins_anew(offset: dict[str, Any], pending: bool) -> None:
    assert snapshot_pending(offset) is pending
