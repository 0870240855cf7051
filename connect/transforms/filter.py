"""Filter: drops the records that its predicate selects."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, Transformation, config

__all__ = ["Filter", "FilterConfig"]


@config
class FilterConfig:
    """It has no keys except for its predicate."""


class Filter(Transformation):
    """Drops every record it gets; the chain passes only those of its predicate."""

    config_class = FilterConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch.slice(0, 0).replace(source_offset=batch.source_offset)]
