"""Structures that are declared once: an annotated attribute is a field on the wire and an argument of the constructor.

Messages of the protocol are generated; this is for the records that store the broker's state::

    @structure
    class TopicRecord(MetadataRecord):
        API_KEY = 2
        name: str = wire("string")
        topic_id: uuid.UUID = wire("uuid")
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, TypeVar, dataclass_transform

from broker.protocol.fields import NEVER, Field, Message
from broker.protocol.primitives import FIXED, ZERO_UUID

__all__ = ["structure", "wire"]

_DEFAULTS: Final = {
    **dict.fromkeys(FIXED, 0),
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
}
"""Kafka's default value by field type."""
_FIELD: Final = "wire"

M = TypeVar("M", bound=Message)


def wire(
    kind: str | type[Message],
    *,
    array: bool = False,
    since: int = 0,
    until: int = NEVER,
    null_since: int = NEVER,
    tag: int | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Declare a field; see ``Field``.

    ``default`` is the value of an absent field in Kafka: 0 or empty, unless set. Callers may omit only arguments whose
    default is set explicitly; mypy enforces that.
    """
    if default is dataclasses.MISSING:
        default = () if array else _DEFAULTS[str(kind)]
    spec = {"kind": kind, "array": array, "since": since, "until": until, "null_since": null_since, "tag": tag}
    if isinstance(default, Message):  # dataclasses considers it mutable; decoded messages are never changed
        return dataclasses.field(default_factory=lambda: default, metadata={_FIELD: spec})
    return dataclasses.field(default=default, metadata={_FIELD: spec})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(wire,))
def structure(cls: type[M]) -> type[M]:
    """Create the slots, the constructor and the field table of a structure. Fields of its bases come first."""
    made: type[M] = dataclasses.dataclass(eq=False, repr=False, kw_only=True, slots=True)(cls)
    declared = dataclasses.fields(made)  # type: ignore[arg-type]
    made.FIELDS = tuple(Field(name=field.name, **field.metadata[_FIELD]) for field in declared)
    return made
