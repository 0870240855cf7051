"""Conditions on records, as boolean columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from connect.api import JavaRegex, Predicate, RecordBatch, config, key, non_empty
from tidegate.kit.config import all_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"]


@config
class HasHeaderKeyConfig:
    """Keys of HasHeaderKey."""

    name: str = key("name", check=non_empty, doc="The header name.")


class HasHeaderKey(Predicate):
    """True for records with at least one header of the given name."""

    config_class = HasHeaderKeyConfig
    config: HasHeaderKeyConfig

    def mask(self, batch: RecordBatch) -> pa.Array:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        has_header = np.zeros(len(batch), bool)
        if batch.headers is not None:
            names = pc.struct_field(batch.headers.flatten(), "key")
            rows = pc.list_parent_indices(batch.headers).to_numpy(zero_copy_only=False)
            hits = pc.fill_null(pc.equal(names, self.config.name), False).to_numpy(zero_copy_only=False)
            has_header[rows[hits]] = True
        return pa.array(has_header)


@config
class RecordIsTombstoneConfig:
    """It has no keys."""


class RecordIsTombstone(Predicate):
    """True for records without a value."""

    config_class = RecordIsTombstoneConfig

    def mask(self, batch: RecordBatch) -> pa.Array:
        return batch.values.is_null()


def _java_pattern(value: str) -> str | None:
    try:
        JavaRegex(value)
    except ValueError as error:
        return f"entry must be a Java-compatible regular expression: {error}"
    return None


@config
class TopicNameMatchesConfig:
    """Keys of TopicNameMatches."""

    pattern: str = key(
        "pattern",
        check=all_of(non_empty, _java_pattern),
        doc="A regular expression that the whole name of the record's topic must match.",
    )


class TopicNameMatches(Predicate):
    """True for records of topics whose whole name matches."""

    config_class = TopicNameMatchesConfig
    config: TopicNameMatchesConfig

    @cached_property
    def _pattern(self) -> JavaRegex:
        return JavaRegex(self.config.pattern)

    def mask(self, batch: RecordBatch) -> pa.Array:
        import pyarrow as pa

        return pa.repeat(pa.scalar(self._pattern.fullmatch(batch.topic) is not None), len(batch))
