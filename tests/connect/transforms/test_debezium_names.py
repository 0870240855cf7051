"""Old names of Debezium's transformations that configurations still use, and OpenLineage, which changes no record."""

from __future__ import annotations

from connect.api import PluginType, Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse

PLUGINS = load_plugins(entry_points=False)


def loaded(name: str):
    plugin = PLUGINS.find(f"io.debezium.transforms.{name}", PluginType.TRANSFORMATION)
    assert plugin is not None
    return plugin.load()


def test_the_old_name_of_extract_new_record_state_takes_its_old_keys() -> None:
    old = loaded("UnwrapFromEnvelope")
    assert old is loaded("ExtractNewRecordState")
    row = Schema.struct({"id": Schema(SchemaType.INT64)}, name="r", optional=True)
    envelope = Schema.struct({"before": row, "after": row, "op": Schema(SchemaType.STRING)}, name="x.Envelope")
    made = old(parse(old.config_class, {"drop.tombstones": "true"}))
    changes = [{"before": None, "after": {"id": 1}, "op": "c"}, None]
    (batch,) = made.apply(RecordBatch.from_records([Record("t", change, envelope) for change in changes]))
    assert [record.value for record in batch.records()] == [{"id": 1}]


def test_open_lineage_changes_no_record() -> None:
    made = loaded("openlineage.OpenLineage")
    batch = RecordBatch.from_records([Record("t", 5, Schema(SchemaType.INT64))])
    assert made(parse(made.config_class, {})).apply(batch) == [batch]
