"""Lists of envelope fields in the format of ExtractNewRecordState's ``add.fields`` and ``add.headers``."""

from __future__ import annotations

import pytest

from connect.api import PluginType, Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse

_LONG = Schema(SchemaType.INT64)
_ROW = Schema.struct({"id": _LONG}, name="r", optional=True)
_SOURCE = Schema.struct({"ts_ms": _LONG}, name="s")
_ENVELOPE = Schema.struct(
    {"before": _ROW, "after": _ROW, "source": _SOURCE, "op": Schema(SchemaType.STRING), "ts_ms": _LONG.as_optional()},
    name="x.Envelope",
)
_EVENT = {"before": None, "after": {"id": 1}, "source": {"ts_ms": 3}, "op": "c", "ts_ms": 5}


@pytest.mark.parametrize("key", ["add.fields", "add.headers"])
def test_gaps_in_a_list_are_passed_over_as_by_debezium(key: str) -> None:
    plugin = load_plugins(entry_points=False).find("ExtractNewRecordState", PluginType.TRANSFORMATION)
    assert plugin is not None
    loaded = plugin.load()
    made = loaded(parse(loaded.config_class, {key: "op,,ts_ms"}))
    (batch,) = made.apply(RecordBatch.from_records([Record("t", _EVENT, _ENVELOPE)]))
    (record,) = batch.records()
    if key == "add.fields":
        assert record.value == {"id": 1, "__op": "c", "__ts_ms": 5}
    else:
        assert record.value == {"id": 1}
        assert [(header.key, header.value) for header in record.headers] == [("__op", "c"), ("__ts_ms", 5)]
