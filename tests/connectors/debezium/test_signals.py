"""Parsing of signals, and of offsets with incremental snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect.api import DataError
from connectors.debezium.incremental.progress import Progress, TablePart
from connectors.debezium.javaobjects import JavaInt, read_keys, written_keys
from connectors.debezium.signals.signal import SnapshotRequest, signal_of_json, signal_of_row

_FIVE = (
    "ACED0005757200135B4C6A6176612E6C616E672E4F626A6563743B90CE589F1073296C020000787000000001737200116A6176612E6C616E672E496E746567"
    "657212E2A0A4F781873802000149000576616C7565787200106A6176612E6C616E672E4E756D62657286AC951D0B94E08B020000787000000005"
)
_KEYS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1).map(JavaInt),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
)


def test_keys_are_as_debezium_writes_them() -> None:
    assert written_keys([JavaInt(5)]) == _FIVE.lower()
    assert read_keys(_FIVE) == [5] and read_keys(written_keys(None)) is None
    # java.util.UUID, whose fields are two longs
    head = _FIVE[: _FIVE.index("00000001") + 8]
    described = "7372000E6A6176612E7574696C2E55554944BC9903F7986D852F0200024A000C6C65617374536967426974734A000B6D6F7374536967426974737870"
    with pytest.raises(DataError, match=r"java\.util\.UUID"):
        read_keys(head + described + "00" * 16)


@settings(max_examples=60)
@given(st.lists(_KEYS, max_size=6))
def test_keys_are_read_as_they_were_written(keys: list[Any]) -> None:
    assert read_keys(written_keys(keys)) == keys


@settings(max_examples=200)
@given(st.data())
def test_any_bytes_are_keys_or_refused(data: st.DataObject) -> None:
    raw = bytearray(bytes.fromhex(written_keys(data.draw(st.lists(_KEYS, max_size=3)))))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        keys = read_keys(raw[: data.draw(st.integers(0, len(raw)))].hex())
    except DataError:
        return
    assert keys is None or isinstance(keys, list)


def test_progress_is_kept_in_a_position() -> None:
    parts = [TablePart("public.t", "n > 1", "n", "s1"), TablePart("public.u", correlation="s1")]
    progress = Progress(parts, (JavaInt(7), "x"), (JavaInt(9), "z"))
    assert Progress.of({"lsn": 5, **progress.members()}) == progress
    assert Progress().members() == {} and Progress.of({"lsn": 5}) == Progress()
    for wrong in ("{", "5", '["x"]', '[{"incremental_snapshot_collections": 5}]'):
        with pytest.raises(DataError, match="no list of tables"):
            Progress.of({"incremental_snapshot_collections": wrong})


@settings(max_examples=100)
@example('{"type": "execute-snapshot", "data": {"data-collections": [null]}}')
@given(
    st.one_of(st.text(max_size=20), st.recursive(st.none() | st.text(max_size=3) | st.integers(), st.lists).map(str))
)
def test_any_text_is_a_signal_or_refused(text: str) -> None:
    try:
        SnapshotRequest.of(signal_of_json(text).data)
    except DataError:
        return


def test_a_row_of_the_table_of_signals_is_read_by_its_order() -> None:
    signal = signal_of_row({"ID": "1", "kind": "log", "what": '{"message": "x"}'})
    assert (signal.id, signal.type, signal.data) == ("1", "log", {"message": "x"})
    assert signal_of_row({"id": "1", "type": "pause-snapshot", "data": None}).data == {}
    for row in ({"id": "1"}, {"id": 1, "type": "x", "data": ""}, {"id": "1", "type": "x", "data": "[]"}):
        with pytest.raises(DataError):
            signal_of_row(row)
