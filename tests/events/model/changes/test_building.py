"""The event built from a change record: its values, its header, its bitmaps."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import EventsError, InvalidMetadata
from events.model.changes import bitmaps
from events.model.changes.building import TableEvents
from events.model.changes.envelope import UNAVAILABLE, Change, Envelope, NotAnEnvelope, RecordKey
from events.model.changes.schemas import ChangeEventSchema
from tests.support.changes import KEY, VALUE, decoded, record, source

NAMES = {"street": "Address__c.Street", "city": "Address__c.City", "name": "Name", "gone": None}
ROW = {"id": 1, "name": "Ada", "street": "High St", "city": "York", "balance": Decimal("12.50")}
ROW |= {"seen": 1_700_000_000_123_456, "born": 19_000, "note": None, "gone": False}


def table(**more: Any) -> TableEvents:
    fields = {"names": NAMES, "snapshot": False, "deleted_column": ""} | more
    return TableEvents("Customer__c", Envelope(json.dumps(VALUE)), **fields)


def made(change: dict[str, Any], *, enriched: tuple[str, ...] = (), **more: Any) -> tuple[Any, Any, Any] | None:
    """The event of a change as the Pub/Sub API shows it, its named bitmaps, and as CometD shows it."""
    events = table(**more)
    read = events.envelope.change(record(VALUE, 1, {"source": source(), **change})[5:])
    event = events.make(read, "1", user="005", sequence=3, enriched=enriched)
    if event is None:
        return None
    schema = ChangeEventSchema(5, events.text)
    payload = schema.encode(event.values)
    return *decoded(schema.text, payload), schema.to_json(payload, timestamp_ms=0)


def test_a_new_row_is_an_event_with_all_its_values() -> None:
    values, named, shown = made({"op": "c", "after": ROW}) or (None, None, None)
    header = values.pop("ChangeEventHeader")
    assert header["entityName"] == "Customer__c"
    assert (header["changeType"], header["recordIds"]) == ("CREATE", ["1"])
    assert (header["sequenceNumber"], header["commitNumber"], header["commitUser"]) == (3, 70, "005")
    assert header["commitTimestamp"] == 1_700_000_000_000
    assert named == {"nulledFields": [], "diffFields": [], "changedFields": []}
    assert values == {
        "CreatedDate": 1_700_000_000_000,
        "CreatedById": "005",
        "LastModifiedDate": 1_700_000_000_000,
        "LastModifiedById": "005",
        "id__c": 1,
        "Name": "Ada",
        "Address__c": {"Street": "High St", "City": "York"},
        "balance__c": 12.5,
        "seen__c": 1_700_000_000_123,
        "born__c": 19_000 * 86_400_000,
        "note__c": None,
    }
    assert shown["seen__c"] == "2023-11-14T22:13:20.123Z"
    assert (shown["born__c"], "note__c" in shown) == ("2022-01-08", False)
    assert set(shown["ChangeEventHeader"]) == set(header) - {"nulledFields", "diffFields"}


def test_an_update_has_what_changed_and_bitmaps_that_name_it() -> None:
    after = ROW | {"city": "Hull", "note": "x", "balance": None}
    values, named, shown = made({"op": "u", "before": ROW, "after": after}) or (None, None, None)
    assert sorted(named["changedFields"]) == ["Address__c.City", "LastModifiedDate", "balance__c", "note__c"]
    assert named["nulledFields"] == ["balance__c"]
    assert values["Address__c"] == {"Street": None, "City": "Hull"}
    assert (values["Name"], values["note__c"], values["balance__c"]) == (None, "x", None)
    del shown["ChangeEventHeader"]
    assert shown == {
        "LastModifiedDate": "2023-11-14T22:13:20.000Z",
        "Address__c": {"City": "Hull"},
        "balance__c": None,
        "note__c": "x",
    }


def test_a_compound_field_that_lost_all_is_nulled_by_its_own_name() -> None:
    after = ROW | {"city": None, "street": None}
    values, named, shown = made({"op": "u", "before": ROW, "after": after}) or (None, None, None)
    assert named["nulledFields"] == ["Address__c"]
    assert (values["Address__c"], shown["Address__c"]) == (None, None)


def test_without_the_row_before_all_that_came_counts_as_changed() -> None:
    after = ROW | {"note": UNAVAILABLE}
    values, named, _ = made({"op": "u", "after": after}) or (None, None, None)
    assert "note__c" not in named["changedFields"]
    assert {"Name", "id__c", "Address__c.City"} <= set(named["changedFields"])
    assert values["Name"] == "Ada"


def test_enriched_fields_are_in_updates_and_deletes() -> None:
    enriched = ("Name", "Address__c")
    values, named, _ = made({"op": "u", "before": ROW, "after": ROW | {"note": "x"}}, enriched=enriched) or ({}, {}, {})
    assert (values["Name"], values["Address__c"]["City"]) == ("Ada", "York")
    assert sorted(named["changedFields"]) == ["LastModifiedDate", "note__c"]
    values, named, shown = made({"op": "d", "before": ROW}, enriched=enriched) or ({}, {}, {})
    assert (values["ChangeEventHeader"]["changeType"], values["Name"], values["id__c"]) == ("DELETE", "Ada", None)
    assert named["changedFields"] == []
    assert set(shown) == {"ChangeEventHeader", "Name", "Address__c"}
    values, _, shown = made({"op": "d", "before": ROW}) or ({}, {}, {})
    assert set(shown) == {"ChangeEventHeader"}


def test_rows_marked_as_deleted_are_deleted_and_come_back() -> None:
    kinds = []
    for change in (
        {"op": "u", "before": ROW, "after": ROW | {"gone": True}},
        {"op": "u", "before": ROW | {"gone": True}, "after": ROW | {"gone": True, "note": "x"}},
        {"op": "u", "before": ROW | {"gone": True}, "after": ROW},
        {"op": "d", "before": ROW | {"gone": True}},
        {"op": "d", "before": ROW},
    ):
        event = made(change, deleted_column="gone")
        kinds.append(event and event[0]["ChangeEventHeader"]["changeType"])
    assert kinds == ["DELETE", None, "UNDELETE", None, "DELETE"]


def test_rows_of_a_snapshot_are_events_only_where_they_are_asked_for() -> None:
    assert made({"op": "r", "after": ROW}) is None
    values, _, _ = made({"op": "r", "after": ROW}, snapshot=True) or ({}, {}, {})
    assert values["ChangeEventHeader"]["changeType"] == "CREATE"


def test_a_change_that_cannot_be_represented_becomes_a_gap_event() -> None:
    values, _, shown = made({"op": "t"}) or ({}, {}, {})
    assert values["ChangeEventHeader"]["changeType"] == "GAP_OVERFLOW"
    assert values["ChangeEventHeader"]["recordIds"] == ["000000000000000AAA"]
    events = table()
    change = Change("u", None, ROW | {"seen": "no number"}, source(), None)
    event = events.make(change, "1", user="005", sequence=1)
    assert event is not None
    assert event.values["ChangeEventHeader"]["changeType"] == "GAP_UPDATE"
    assert set(event.values) == {"ChangeEventHeader"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"nope": "X"}, "no column nope; it has id, name"),
        ({"id": "X", "name": "X"}, "two columns are to be X, name is the second"),
        ({"id": "X.a", "name": "X"}, "two columns are to be X"),
        ({"id": "ChangeEventHeader"}, "is no name for a field"),
    ],
)
def test_names_that_cannot_be_are_refused(names: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidMetadata, match=said):
        table(names=names)


def test_records_of_other_forms_are_no_changes() -> None:
    flat = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}
    for text in (json.dumps(flat), '"string"', "{", json.dumps(VALUE)[:300]):
        with pytest.raises(NotAnEnvelope):
            Envelope(text)


def test_record_ids() -> None:
    assert RecordKey(json.dumps(KEY)).id(record(KEY, 1, {"id": 4711})[5:]) == "4711"
    two = {"type": "record", "name": "Key", "fields": [{"name": n, "type": "string"} for n in "ab"]}
    assert RecordKey(json.dumps(two)).id(record(two, 1, {"a": "x", "b": "y"})[5:]) == "x,y"
    assert RecordKey('"long"').id(b"\x0a") == "5"


@settings(max_examples=50)
@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 9)))
def test_bitmaps_name_what_was_chosen(plain: set[int], parts: set[int]) -> None:
    layout: list[tuple[str, list[str]]] = [(f"f{number}", []) for number in range(41)]
    layout[3] = ("f3", [f"p{number}" for number in range(10)])
    chosen = {f"f{number}" for number in plain} | {f"f3.p{number}" for number in parts}
    headers = set()
    for text in bitmaps.encode(layout, chosen):
        prefix, _, digits = text.rpartition("-")
        bits = int(digits, 16)
        among = [f"f3.{part}" for part in layout[int(prefix)][1]] if prefix else [name for name, _ in layout]
        headers |= {name for number, name in enumerate(among) if bits >> number & 1}
    assert headers == chosen


def test_bitmaps_are_written_as_salesforce_writes_them() -> None:
    layout = [(f"f{number}", ()) for number in range(23)]
    assert bitmaps.encode(layout, {"f7", "f22"}) == ["0x400080"]
    assert bitmaps.encode(layout, set()) == []


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_change_are_refused(data: bytes) -> None:
    events = table()
    try:
        change = events.envelope.change(data)
        events.make(change, None, user="005", sequence=1)
        RecordKey(json.dumps(KEY)).id(data)
    except EventsError:
        pass
