"""ReplaceField: drops or renames fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from connect.api import Field, Problem, RecordBatch, Schema, config, key
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    map_texts,
    replace_null_key,
    struct_columns,
)
from tidegate.kit.config import distinct

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ReplaceFieldConfig", "ReplaceKeyField", "ReplaceValueField"]

_PURPOSE = "field replacement"


@config
class ReplaceFieldConfig:
    """Keys of ReplaceField."""

    exclude: list[str] = key(
        "exclude",
        default=[],
        aliases=["blacklist"],
        check=distinct,
        doc="Fields to exclude. This takes precedence over the fields to include.",
    )
    include: list[str] = key(
        "include",
        default=[],
        aliases=["whitelist"],
        check=distinct,
        doc="Fields to include. If specified, only these fields will be used.",
    )
    renames: list[str] = key("renames", default=[], doc="Field rename mappings: old:new pairs.")
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        for pair in self.renames:
            old, colon, new = pair.partition(":")
            if not (old and colon and new) or ":" in new:
                text = (
                    f"Invalid value {','.join(self.renames)} for configuration renames: Invalid rename mapping: {pair}"
                )
                yield Problem("renames", text)


class _ReplaceField(SideTransformation):
    config_class = ReplaceFieldConfig
    config: ReplaceFieldConfig
    traces_fields = True

    @cached_property
    def _renames(self) -> dict[str, str]:
        return {old: new for old, _, new in (pair.partition(":") for pair in self.config.renames)}

    def _keeps(self, name: str) -> bool:
        return name not in self.config.exclude and (not self.config.include or name in self.config.include)

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        columns = struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null)
        kept = [(member, part) for member, part in zip(schema.fields, columns, strict=True) if self._keeps(member.name)]
        fields = [Field(self._renames.get(member.name, member.name), member.schema) for member, _ in kept]
        changed = copied_basics(schema, fields)
        return struct_of(changed, [part for _, part in kept], column), changed

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        def replace(value: dict[str, Any], row: int) -> dict[str, Any]:  # noqa: ARG001
            return {self._renames.get(name, name): item for name, item in value.items() if self._keeps(name)}

        return map_texts(column, replace, _PURPOSE)

    def field_after(self, path: str) -> str | None:
        name, dot, rest = path.partition(".")
        return f"{self._renames.get(name, name)}{dot}{rest}" if self._keeps(name) else None


class ReplaceKeyField(_ReplaceField):
    """Of the key."""

    side = "key"


class ReplaceValueField(_ReplaceField):
    """Of the value."""

    side = "value"
