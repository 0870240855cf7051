"""Connectors that keep offsets of their own are not restored where these would be wrong."""

from __future__ import annotations

import pytest

from tidegate.backup.manifest import Partition, Point, RecordFile, Topic
from tidegate.backup.platform_restore import _bound_reason


def point(start: int, records: int) -> Point:
    """A backup of the topic sales, up to offset 5."""
    file = RecordFile("sales/0", start, 5, records, 100, "")
    sales = Topic("sales", "id", [Partition(0, start, 5, [file])], {})
    return Point("1", "cluster", "now", topics={"sales": sales})


@pytest.mark.parametrize(
    ("start", "records", "words"),
    [
        (0, 5, ""),
        (3, 2, "spark.checkpoint.path has offsets of sales"),
        (0, 4, "spark.checkpoint.path has offsets of sales"),
    ],
    ids=["as they were", "records deleted before", "records missing between"],
)
@pytest.mark.parametrize("topics", [{"topics": "other, sales"}, {"topics.regex": ".*"}])
def test_a_checkpoint_is_good_where_records_keep_their_offsets(
    topics: dict[str, str], start: int, records: int, words: str
) -> None:
    reason = _bound_reason({"spark.checkpoint.path": "/data/sales", **topics}, point(start, records))
    assert words in reason and bool(words) == bool(reason)


def test_a_pipeline_and_its_addresses_stay_where_they_are() -> None:
    assert "names the brokers itself" in _bound_reason({"spark.pipeline.spec": "/p/spark-pipeline.yml"}, point(0, 5))
    assert _bound_reason({"topics": "sales"}, point(3, 2)) == ""
