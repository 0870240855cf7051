"""Structures declared as annotated attributes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest

from broker.protocol.declare import structure, wire
from broker.protocol.fields import Field, Message
from broker.protocol.schema import Request, decode, encode


@structure
class Part(Message):
    name: str = wire("string")
    numbers: Sequence[int] = wire("int32", array=True)


@structure
class Base(Request):
    FLEXIBLE_SINCE = 1
    group: str = wire("string")


@structure
class Whole(Base):
    id: uuid.UUID = wire("uuid")
    rack: str | None = wire("string", null_since=0, default=None)
    parts: Sequence[Part] = wire(Part, array=True)
    epoch: int = wire("int32", since=1, tag=0, default=-1)


def test_attributes_are_fields_those_of_the_base_first() -> None:
    assert (
        Field(name="group", kind="string"),
        Field(name="id", kind="uuid"),
        Field(name="rack", kind="string", null_since=0),
        Field(name="parts", kind=Part, array=True),
        Field(name="epoch", kind="int32", since=1, tag=0),
    ) == Whole.FIELDS
    assert (Field(name="group", kind="string"),) == Base.FIELDS


def test_a_field_has_the_default_of_its_type_or_the_one_that_is_named() -> None:
    whole = Whole()
    assert (whole.group, whole.id, whole.rack, whole.parts, whole.epoch) == ("", uuid.UUID(int=0), None, (), -1)


def test_an_instance_holds_its_fields_and_nothing_else() -> None:
    whole = Whole(group="g")
    with pytest.raises(AttributeError):
        whole.grup = "misspelt"
    with pytest.raises(TypeError):
        Whole("g")


@pytest.mark.parametrize("version", [0, 1])
def test_a_written_value_is_read_back(version: int) -> None:
    whole = Whole(
        group="g", id=uuid.UUID(int=7), parts=[Part(name="p", numbers=[1, 2])], epoch=-1 if version == 0 else 4
    )
    assert decode(Whole, bytes(encode(whole, version)), version) == whole
