"""Impossible offsets for sinks are refused."""

from __future__ import annotations

import pytest

from connect.errors import BadRequest
from connect.herder.offset_changes import parsed_sink_offsets


@pytest.mark.parametrize(
    ("partition", "offset", "what"), [(0, -1, "offset"), (-1, 0, "partition"), (0, "-7", "offset")]
)
def test_a_negative_position_is_refused(partition: int, offset: int | str, what: str) -> None:
    source_partition = {"kafka_topic": "t", "kafka_partition": partition}
    with pytest.raises(BadRequest, match=f"Kafka {what} value .* cannot be negative"):
        parsed_sink_offsets([(source_partition, {"kafka_offset": offset})])
