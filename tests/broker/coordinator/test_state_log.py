"""The partition that a group's records are written to."""

from __future__ import annotations

import pytest

from broker.coordinator.state_log import partition_for


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("a", 97),
        ("test", 3556498),
        ("connect-cluster", 1440343063),
        ("polygenelubricants", -(1 << 31)),
        ("zażółć", -701064989),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_a_group_has_the_partition_it_has_in_kafka(group_id: str, java_hash: int) -> None:
    for partitions in (1, 7, 50):
        assert partition_for(group_id, partitions) == abs(java_hash) % (1 << 31) % partitions
