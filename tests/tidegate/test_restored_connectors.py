"""Connectors that keep offsets of their own are not restored where these would be wrong."""

from __future__ import annotations

import pytest

from connect.api import PluginType
from connect.plugins.registry import load_plugins, short_names
from tidegate.backup.manifest import Partition, Point, RecordFile, Topic
from tidegate.backup.platform_restore import _FILES_BY_OFFSET, _bound_reason


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
    reason = _bound_reason("c", {"spark.checkpoint.path": "/data/sales", **topics}, point(start, records))
    assert words in reason and bool(words) == bool(reason)


FILES = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "sales"}


def test_a_sink_whose_files_are_named_by_offsets_that_change_does_not_go_on_beside_them() -> None:
    renumbered = point(3, 2)
    assert _bound_reason("c", FILES, renumbered) == "", "it has written nothing"
    renumbered.groups["connect-c"] = [{"topic": "sales", "partition": 0, "offset": 5}]
    assert "files have offsets of sales in their names" in _bound_reason("c", FILES, renumbered)
    assert "another folder" in _bound_reason("d", {**FILES, "consumer.override.group.id": "connect-c"}, renumbered)
    as_they_were = point(0, 5)
    as_they_were.groups |= renumbered.groups
    assert _bound_reason("c", FILES, as_they_were) == ""


def test_all_sinks_to_files_are_known_by_all_of_their_names() -> None:
    from connectors.objects.sink import ObjectSinkTask

    sinks = [plugin for plugin in load_plugins().plugins if plugin.type is PluginType.SINK]
    names = {
        name.removesuffix("Connector")
        for plugin in sinks
        if issubclass(plugin.load().task_class, ObjectSinkTask)
        for name in short_names(plugin)
    }
    assert names == _FILES_BY_OFFSET


def test_a_pipeline_and_its_addresses_stay_where_they_are() -> None:
    assert "names the brokers itself" in _bound_reason(
        "c", {"spark.pipeline.spec": "/p/spark-pipeline.yml"}, point(0, 5)
    )
    assert _bound_reason("c", {"topics": "sales"}, point(3, 2)) == ""
