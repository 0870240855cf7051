"""Fields of a change event's envelope, as named in ``add.fields`` and ``add.headers``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from connect.api import Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EnvelopeField", "envelope_fields", "is_envelope"]

_TRANSACTION: Final = frozenset({"id", "data_collection_order", "total_order"})
_MAIN: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})


def is_envelope(schema: Schema | None) -> bool:
    """Whether a schema is that of Debezium's change events."""
    return schema is not None and schema.type is SchemaType.STRUCT and (schema.name or "").endswith("Envelope")


class EnvelopeField(NamedTuple):
    """``struct`` is a part of the envelope, None for the envelope itself; ``new_name`` includes the prefix."""

    struct: str | None
    name: str
    new_name: str

    def schema(self, envelope: Schema) -> Schema | None:
        """The field's schema, optional; None if the envelope lacks the field."""
        holder_index = self._holder_of(envelope)
        if holder_index is None:
            return None
        holder = envelope if holder_index is None or holder_index[0] is None else envelope.field(holder_index[0]).schema
        schema_ = holder.field(self.name).schema
        return replace(schema_, optional=True, default=None)

    def column(self, envelope: Schema, column: pa.Array) -> pa.Array:
        """The field's values, null if the part of the envelope is missing."""
        import pyarrow.compute as pc

        holder_index = self._holder_of(envelope)
        assert holder_index is not None
        path = [self.name] if holder_index[0] is None else [holder_index[0], self.name]
        return pc.struct_field(column, path)

    def _holder_of(self, envelope: Schema) -> tuple[str | None] | None:
        """The location of the field: its part, otherwise the envelope itself, where another transformation may have put
        it.
        """
        if self.struct is not None and self.struct in envelope.field_names:
            part = envelope.field(self.struct).schema
            if part.type is SchemaType.STRUCT and self.name in part.field_names:
                return (self.struct,)
        return (None,) if self.name in envelope.field_names else None


def envelope_fields(names: list[str], prefix: str) -> list[EnvelopeField]:
    """The fields named in a list of ``field``, ``struct.field`` and ``field:new``. Raises ValueError."""
    fields = []
    for entry in filter(None, names):  # empty entries are accepted, as in Debezium
        parts = entry.split(":")
        if len(parts) > 2 or not parts[0]:
            raise ValueError(f"Unexpected field name: {entry}")
        struct, dot, name = parts[0].strip().partition(".")
        if not dot:
            struct, name = "", struct
        of = struct or _part_of(name)
        new = parts[1].strip() if len(parts) == 2 else (f"{struct}_{name}" if dot else name)
        fields.append(EnvelopeField(of, name, prefix + new))
    return fields


def _part_of(name: str) -> str | None:
    if name in _TRANSACTION:
        return "transaction"
    if name == "updateDescription":
        return name
    return None if name in _MAIN else "source"
