"""Filter: leave records out, those that its predicate holds for."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, Transformation, config

__all__ = ["Filter", "FilterConfig"]


@config
class FilterConfig:
    """It has no keys but those of its predicate."""


class Filter(Transformation):
    """Leaves out every record it is given; the chain gives it those of its predicate."""

    config_class = FilterConfig

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch.slice(0, 0).replace(source_offset=batch.source_offset)]
