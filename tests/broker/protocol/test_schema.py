"""Our codec and kio's, which is made from the same message definitions, agree byte for byte."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import typing
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol import codegen
from broker.protocol.primitives import FIXED, MalformedMessage
from broker.protocol.schema import Field, Message, Request, Response, decode, encode

kio_index = pytest.importorskip("kio.schema.index")
kio_serial = pytest.importorskip("kio.serial")

MESSAGES: list[tuple[str, str, int]] = [
    (api, kind.name, version)
    for api in codegen.APIS
    for version, kinds in sorted(kio_index.schema_name_map[api].items())
    for kind in kinds
    if kind.name in ("request", "response")
]


def theirs(api: str, kind: str, version: int) -> Any:
    path = next(p for k, p in kio_index.schema_name_map[api][version].items() if k.name == kind)
    module, _, name = path.replace(":", ".").rpartition(".")
    return getattr(importlib.import_module(module), name)


def ours(api: str, kind: str) -> type[Request] | type[Response]:
    module = importlib.import_module(f"broker.protocol.messages.{api}")
    base = Request if kind == "request" else Response
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base) and c is not base]
    return typing.cast("type[Request]", classes[0])


NUMBERS = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(0, 100),
    "uint16": st.integers(0, 65535),
    "int32": st.integers(0, 2**31 - 1),
    "int64": st.integers(0, 2**40),
    "float64": st.floats(allow_nan=False),
}
OTHERS = {
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
    "uuid": st.uuids(),
}


def values(field: Field, version: int) -> st.SearchStrategy[Any]:
    kind = field.kind
    item = messages(kind, version) if isinstance(kind, type) else {**NUMBERS, **OTHERS}[kind]
    strategy: st.SearchStrategy[Any] = st.lists(item, max_size=3).map(tuple) if field.array else item
    return st.none() | strategy if version >= field.null_since else strategy


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    fields = {f.name: values(f, version) for f in cls.FIELDS if f.exists_in(version)}
    return st.builds(cls, **fields)


def same(mine: Any, other: Any, version: int) -> bool:
    """Whether our message has the same values as kio's, which has its own types for times and codes."""
    if isinstance(mine, Message):
        return all(
            same(getattr(mine, f.name), _attribute(other, f.name), version) for f in mine.FIELDS if f.exists_in(version)
        )
    if isinstance(mine, tuple):
        return len(mine) == len(other) and all(same(a, b, version) for a, b in zip(mine, other, strict=True))
    if isinstance(other, dt.timedelta):
        return bool(mine == other // dt.timedelta(milliseconds=1))
    if isinstance(other, dt.datetime):
        return bool(mine == (other - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(milliseconds=1))
    if isinstance(mine, uuid.UUID) and mine.int == 0:
        return other is None or other == mine
    return bool(mine == other)


def _attribute(other: Any, name: str) -> Any:
    return getattr(other, name) if hasattr(other, name) else getattr(other, name.removesuffix("_ms"))


@pytest.mark.parametrize(("api", "kind", "version"), MESSAGES, ids=lambda part: str(part))
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_kio_reads_what_we_write_and_we_read_it_back(api: str, kind: str, version: int, data: st.DataObject) -> None:
    cls = ours(api, kind)
    message = data.draw(messages(cls, version))
    written = bytes(encode(message, version))
    read, size = kio_serial.entity_reader(theirs(api, kind, version))(written, 0)
    assert size == len(written)
    assert same(message, read, version)
    again = io.BytesIO()
    kio_serial.entity_writer(theirs(api, kind, version))(again, read)
    assert again.getvalue() == written
    back = decode(cls, written, version)
    assert bytes(encode(back, version)) == written
    assert decode(cls, memoryview(written), version) == back


@pytest.mark.parametrize("api", codegen.APIS)
@settings(max_examples=20, deadline=None)
@given(data=st.binary(max_size=200), version=st.integers(0, 20), kind=st.sampled_from(("request", "response")))
def test_any_bytes_are_a_message_or_malformed(api: str, data: bytes, version: int, kind: str) -> None:
    try:
        decode(ours(api, kind), data, version)
    except MalformedMessage:
        pass


@pytest.mark.parametrize(("api", "kind", "version"), MESSAGES[::7], ids=lambda part: str(part))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_message_cut_off_anywhere_is_malformed(api: str, kind: str, version: int, data: st.DataObject) -> None:
    cls = ours(api, kind)
    written = bytes(encode(data.draw(messages(cls, version)), version))
    if not written:
        return
    cut = data.draw(st.integers(0, len(written) - 1))
    with pytest.raises(MalformedMessage):
        decode(cls, written[:cut], version)


def test_a_huge_count_is_refused_before_anything_is_allocated() -> None:
    from broker.protocol.messages.metadata import MetadataRequest

    with pytest.raises(MalformedMessage, match="2147483647 elements"):
        decode(MetadataRequest, b"\x7f\xff\xff\xff", 1)


def test_unknown_tags_are_skipped() -> None:
    from broker.protocol.messages.heartbeat import HeartbeatResponse

    assert decode(HeartbeatResponse, b"\0\0\0\0\0\5" + b"\1\x63\3abc", 4) == HeartbeatResponse(error_code=5)


def test_null_where_it_cannot_be_names_the_field() -> None:
    from broker.protocol.messages.heartbeat import HeartbeatRequest

    with pytest.raises(ValueError, match=r"HeartbeatRequest\.group_id: null"):
        encode(HeartbeatRequest(group_id=None), 0)  # type: ignore[arg-type]


def test_every_fixed_type_has_kafkas_size() -> None:
    import struct

    sizes = {name: struct.calcsize(">" + code) for name, code in FIXED.items()}
    assert sizes == {
        "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8
    }  # fmt: skip
