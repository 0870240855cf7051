"""Tags inside a Protobuf schema: reads and changes ``tags`` of Confluent's options ``message_meta`` and ``field_meta``
by path.

A path has the names of messages, outer ones first and without the package, then the field's name for a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from registry.formats.entities import Entity, Tags, no_such_path, retagged
from registry.formats.protobuf.elements import Field, Message, Option
from registry.formats.protobuf.normalize import as_map
from registry.formats.protobuf.parse import parse_text
from registry.formats.protobuf.text import write_text

__all__ = ["tagged", "with_tags"]

_META: Final = {"sr_record": "confluent.message_meta", "sr_field": "confluent.field_meta"}


def tagged(text: str) -> dict[Entity, list[str]]:
    """The tagged entities of a schema: a message, the fields of its oneofs, its fields, its nested messages."""
    bearers = _bearers(parse_text(text).messages)
    return {entity: tags for entity, bearer in bearers if (tags := _tags(_merged(bearer.options), entity.kind))}


def with_tags(text: str, add: Tags, remove: Tags) -> str:
    """The schema with tags added and then others removed. Raises InvalidSchema for an unknown path.

    Options of the element that set parts of one message (``(a).b = 1, (a).c = 2``) are merged into one with braces.
    """
    file = parse_text(text)
    bearers = dict(_bearers(file.messages, with_oneofs=True))
    for entity in dict.fromkeys((*add, *remove)):
        bearer = bearers.get(Entity(entity.path.removeprefix("."), entity.kind))
        if bearer is None:
            raise no_such_path(entity)
        options = _merged(bearer.options)
        meta = _META[entity.kind]
        option = options.get(meta) or Option(meta, "map", {}, parenthesized=True)
        values = {name: value for name, value in option.value.items() if name != "tags"}
        if tags := retagged(entity, _tags(options, entity.kind), add, remove):
            # Keeps its position, if it had one.
            values = {**dict.fromkeys(option.value), **values, "tags": tags}
        if values:
            options[meta] = replace(option, value=values)
        else:
            options.pop(meta, None)
        bearer.options = list(options.values())
    return write_text(file)


def _bearers(
    messages: Sequence[Message], scope: str = "", *, with_oneofs: bool = False
) -> Iterator[tuple[Entity, Message | Field]]:
    """All taggable entities. ``with_oneofs``: fields of a oneof also by a path that names it."""
    for message in messages:
        path = scope + message.name
        yield Entity(path, "sr_record"), message
        for oneof in message.oneofs:
            for field in oneof.fields:
                yield Entity(f"{path}.{field.name}", "sr_field"), field
                if with_oneofs:
                    yield Entity(f"{path}.{oneof.name}.{field.name}", "sr_field"), field
        for field in message.fields:
            yield Entity(f"{path}.{field.name}", "sr_field"), field
        inner = [type_ for type_ in message.types if isinstance(type_, Message)]
        yield from _bearers(inner, f"{path}.", with_oneofs=with_oneofs)


def _merged(options: Sequence[Option]) -> dict[str, Option]:
    """Options by name; those that set parts of one message are merged. Of other duplicates the last one wins."""
    made: dict[str, Option] = {}
    for option in map(as_map, options):
        name = option.name.removeprefix(".")
        known = made.get(name)
        if known is not None and known.kind == option.kind == "map":
            option = replace(option, value=_joined(known.value, option.value))
        made[name] = option
    return made


def _joined(left: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A name in both gets all values of both."""
    values = dict(left)
    for name, value in other.items():
        values[name] = [*_listed(values[name]), *_listed(value)] if name in values else value
    return values


def _tags(options: dict[str, Option], kind: str) -> list[str]:
    option = options.get(_META[kind])
    if option is None or option.kind != "map":
        return []
    return [tag for tag in _listed(option.value.get("tags", ())) if isinstance(tag, str)]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
