"""A source's keys, values and headers in the log's bytes, each by its converter, bad rows left to ``errors.*``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from connect.api import Converter, RecordBatch, Schema, SchemaType
from connect.task.error_policy import ErrorPolicy

if TYPE_CHECKING:
    from connect.converters.headers import HeaderConversion

__all__ = ["Conversion"]

_BYTES: Final = Schema(SchemaType.BYTES, optional=True)


class Conversion:
    """Used from one thread. Without ``headers`` a batch's headers are bytes already."""

    def __init__(
        self, keys: Converter, values: Converter, policy: ErrorPolicy, *, headers: HeaderConversion | None = None
    ) -> None:
        self._keys, self._values, self._headers, self._policy = keys, values, headers, policy

    def converted(self, batch: RecordBatch) -> Iterator[RecordBatch]:
        """The same rows in bytes; those that a converter cannot do are left out."""
        guarded = self._policy.guarded
        for headed in self._with_headers(batch):
            for part in guarded("KEY_CONVERTER", type(self._keys).__name__, headed, self._convert_keys):
                yield from guarded("VALUE_CONVERTER", type(self._values).__name__, part, self._convert_values)

    def _with_headers(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        headers = self._headers
        if headers is None or batch.headers is None:
            return [batch]
        return self._policy.guarded("HEADER_CONVERTER", headers.name, batch, lambda rows: [headers.to_log(rows)])

    def _convert_keys(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if batch.keys is None:
            return [batch]
        keys = self._keys.from_connect(batch.topic, batch.key_schema, batch.keys)
        return [batch.replace(keys=keys, key_schema=_BYTES)]

    def _convert_values(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        values = self._values.from_connect(batch.topic, batch.value_schema, batch.values)
        return [batch.replace(values=values, value_schema=_BYTES)]
