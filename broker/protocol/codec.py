"""Encodes and decodes messages by the field table of a version.

The first use of a version compiles the table into a list of steps, which is cached. Adjacent numbers become one
``struct`` call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from struct import Struct
from typing import Any, TypeVar, cast

from broker.protocol.fields import Field, Message, SharedArray, plain
from broker.protocol.primitives import (
    FIXED,
    READERS,
    WRITERS,
    Data,
    MalformedMessage,
    Reader,
    Writer,
    count_entries,
    read_array_length,
    read_uvarint,
    write_array_length,
    write_uvarint,
)

__all__ = ["reader", "writer"]

_Made = TypeVar("_Made")


def _compiled(make: Callable[[type[Message], int, bool], _Made]) -> Callable[[type[Message], int, bool], _Made]:
    """Cache the result by class and version."""
    return cast("Callable[[type[Message], int, bool], _Made]", cache(make))


_ReadStep = Callable[[Data, int, dict[str, Any]], int]


@_compiled
def reader(cls: type[Message], version: int, flexible: bool) -> Reader:
    """A function that reads messages of a class in a version.

    It raises MalformedMessage, IndexError or struct.error.
    """
    steps = list(_read_steps(cls, version, flexible))
    tagged = {f.tag: (f.name, _tagged_reader(f, version)) for f in _tagged(cls, version)}

    def read(data: Data, at: int) -> tuple[Message, int]:
        values: dict[str, Any] = {}
        for step in steps:
            at = step(data, at, values)
        if flexible:
            at = _read_tags(data, at, values, tagged)
        return cls(**values), at

    return read


def _tagged(cls: type[Message], version: int) -> list[Field]:
    return [f for f in cls.FIELDS if f.tag is not None and f.exists_in(version)]


def _runs(cls: type[Message], version: int) -> Iterator[list[Field]]:
    """The untagged fields of a version in wire order; adjacent fields of fixed size together."""
    run: list[Field] = []
    for f in cls.FIELDS:
        if f.tag is not None or not f.exists_in(version):
            continue
        if f.kind in FIXED and not f.array:
            run.append(f)
            continue
        if run:
            yield run
            run = []
        yield [f]
    if run:
        yield run


def _is_fixed(run: list[Field]) -> bool:
    return run[0].kind in FIXED and not run[0].array


def _layout(run: list[Field]) -> Struct:
    return Struct(">" + "".join(FIXED[str(f.kind)] for f in run))


def _read_steps(cls: type[Message], version: int, flexible: bool) -> Iterator[_ReadStep]:
    for run in _runs(cls, version):
        if _is_fixed(run):
            yield _fixed_step(tuple(f.name for f in run), _layout(run))
        else:
            yield _single_step(run[0].name, _value_reader(run[0], version, flexible))


def _fixed_step(names: tuple[str, ...], layout: Struct) -> _ReadStep:
    unpack, size = layout.unpack_from, layout.size

    def step(data: Data, at: int, values: dict[str, Any]) -> int:
        values.update(zip(names, unpack(data, at), strict=True))
        return at + size

    return step


def _single_step(name: str, read: Reader) -> _ReadStep:
    def step(data: Data, at: int, values: dict[str, Any]) -> int:
        values[name], at = read(data, at)
        return at

    return step


def _read_tags(data: Data, at: int, values: dict[str, Any], tagged: dict[int | None, tuple[str, Reader]]) -> int:
    count, at = read_uvarint(data, at)
    if count:
        count_entries(count)
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if size > len(data) - at:
            raise MalformedMessage(f"tag {tag} announces {size} bytes, {len(data) - at} are there")
        known = tagged.get(tag)
        if known is not None:
            name, read = known
            values[name], _ = read(data, at)
        at += size
    return at


def _tagged_reader(f: Field, version: int) -> Reader:
    """A nullable structure is preceded by 0 or 1 if it is tagged, otherwise by -1 or 1."""
    if f.array or isinstance(f.kind, str) or version < f.null_since:
        return _value_reader(f, version, True)
    read_struct = reader(f.kind, version, True)

    def read(data: Data, at: int) -> tuple[Any, int]:
        there, at = read_uvarint(data, at)
        return read_struct(data, at) if there else (None, at)

    return read


def _value_reader(f: Field, version: int, flexible: bool) -> Reader:
    nullable = version >= f.null_since
    if not f.array:
        return _item_reader(f.kind, version, flexible, nullable)
    read_item = _item_reader(f.kind, version, flexible, False)

    def read(data: Data, at: int) -> tuple[tuple[Any, ...] | None, int]:
        length, at = read_array_length(data, at, flexible)
        if length < 0:
            if length == -1 and nullable:
                return None, at
            raise MalformedMessage(f"the array {f.name} has a length of {length}")
        items = []
        for _ in range(length):
            item, at = read_item(data, at)
            items.append(item)
        return tuple(items), at

    return read


def _item_reader(kind: str | type[Message], version: int, flexible: bool, nullable: bool) -> Reader:
    if isinstance(kind, str):
        return _fixed_reader(FIXED[kind]) if kind in FIXED else READERS[kind](flexible, nullable)
    read_struct = reader(kind, version, flexible)
    if not nullable:
        return read_struct

    def read(data: Data, at: int) -> tuple[Any, int]:
        return (None, at + 1) if data[at] >= 0x80 else read_struct(data, at + 1)

    return read


def _fixed_reader(code: str) -> Reader:
    layout = Struct(">" + code)

    def read(data: Data, at: int) -> tuple[Any, int]:
        return layout.unpack_from(data, at)[0], at + layout.size

    return read


@_compiled
def writer(cls: type[Message], version: int, flexible: bool) -> Writer:
    """A function that writes messages of a class in a version.

    It raises ValueError that names the field for a forbidden null, and struct.error for a number that is too large.
    """
    steps = list(_write_steps(cls, version, flexible))
    default = cls()
    tagged = [
        (f.tag, f.name, _tagged_writer(f, version), getattr(default, f.name))
        for f in sorted(_tagged(cls, version), key=lambda f: f.tag or 0)
    ]

    def write(out: bytearray, message: Message) -> None:
        for step in steps:
            step(out, message)
        if not flexible:
            return
        present = [t for t in tagged if plain(getattr(message, t[1])) != plain(t[3])]
        write_uvarint(out, len(present))
        for tag, name, write_value, _ in present:
            value = bytearray()
            write_value(value, getattr(message, name))
            write_uvarint(out, tag or 0)
            write_uvarint(out, len(value))
            out += value

    return write


def _write_steps(cls: type[Message], version: int, flexible: bool) -> Iterator[Writer]:
    for run in _runs(cls, version):
        if _is_fixed(run):
            yield _fixed_write_step([f.name for f in run], _layout(run))
        else:
            yield _single_write_step(run[0].name, _value_writer(run[0], version, flexible))


def _fixed_write_step(names: list[str], layout: Struct) -> Writer:
    get, pack = attrgetter(*names), layout.pack
    if len(names) == 1:

        def step_one(out: bytearray, message: Message) -> None:
            out += pack(get(message))

        return step_one

    def step(out: bytearray, message: Message) -> None:
        out += pack(*get(message))

    return step


def _single_write_step(name: str, write: Writer) -> Writer:
    def step(out: bytearray, message: Message) -> None:
        try:
            write(out, getattr(message, name))
        except ValueError as error:
            raise ValueError(f"{type(message).__name__}.{name}: {error}") from error

    return step


def _tagged_writer(f: Field, version: int) -> Writer:
    if f.array or isinstance(f.kind, str) or version < f.null_since:
        return _value_writer(f, version, True)
    write_struct = writer(f.kind, version, True)

    def write(out: bytearray, value: Message | None) -> None:
        out.append(value is not None)
        if value is not None:
            write_struct(out, value)

    return write


def _value_writer(f: Field, version: int, flexible: bool) -> Writer:
    nullable = version >= f.null_since
    if not f.array:
        return _item_writer(f.kind, version, flexible, nullable)
    write_item = _item_writer(f.kind, version, flexible, False)

    def write(out: bytearray, items: Sequence[Any] | None) -> None:
        if items is None:
            if not nullable:
                raise ValueError("null in an array that cannot be null")
            write_array_length(out, -1, flexible)
            return
        if type(items) is SharedArray:
            out += _written(items, version, flexible, write_item)
            return
        write_array_length(out, len(items), flexible)
        for item in items:
            write_item(out, item)

    return write


def _written(items: SharedArray, version: int, flexible: bool, write_item: Writer) -> bytes:
    done = items.written.get((version, flexible))
    if done is None:
        out = bytearray()
        write_array_length(out, len(items), flexible)
        for item in items:
            write_item(out, item)
        done = items.written[version, flexible] = bytes(out)
    return done


def _item_writer(kind: str | type[Message], version: int, flexible: bool, nullable: bool) -> Writer:
    if isinstance(kind, str):
        return _fixed_writer(FIXED[kind]) if kind in FIXED else WRITERS[kind](flexible, nullable)
    write_struct = writer(kind, version, flexible)
    if not nullable:
        return write_struct

    def write(out: bytearray, value: Message | None) -> None:
        out.append(0xFF if value is None else 1)
        if value is not None:
            write_struct(out, value)

    return write


def _fixed_writer(code: str) -> Writer:
    pack = Struct(">" + code).pack

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return write
