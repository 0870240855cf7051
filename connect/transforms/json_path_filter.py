"""Confluent's Filter: drops records, or passes only records, by a JSONPath over their key or value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from connect.api import DataError, RecordBatch, Transformation, config, key, one_of
from connect.data.json_text import json_texts
from tidegate.kit.json_path import compiled_path

if TYPE_CHECKING:
    from jsonpath import JSONPath

__all__ = ["FilterByKey", "FilterByValue"]


def _condition(value: str) -> str | None:
    try:
        _Condition(value)
    except DataError as error:
        return str(error)
    return None


_condition.valid = "JSONPath"  # type: ignore[attr-defined]


@config
class JsonPathFilterConfig:
    """Keys of Filter."""

    condition: str = key(
        "filter.condition",
        check=_condition,
        doc="A JSONPath such as $[?(@.country == 'de' && @.total > 5)] or $.after.id: a record matches where it finds something.",
        importance="high",
    )
    type: str = key(
        "filter.type",
        check=one_of("include", "exclude", ignore_case=True),
        doc="include: only records that match go on. exclude: those do not.",
        importance="high",
    )
    missing: str = key(
        "missing.or.null.behavior",
        default="fail",
        check=one_of("fail", "include", "exclude", ignore_case=True),
        doc="What becomes of a record without the field that the path leads to: an error, kept, or left out. Fields within "
        "[?()] may be missing: they match nothing.",
    )


class _JsonPathFilter(Transformation):
    """As in Jayway's JsonPath, which Confluent uses, ``[?()]`` of an object tests the object itself."""

    config_class = JsonPathFilterConfig
    config: JsonPathFilterConfig
    traces_fields = True
    side: Literal["key", "value"]

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        import pyarrow as pa

        matching = [self._matches(value) for value in self._values(batch)]
        missing = [row for row, match in enumerate(matching) if match is None]
        if missing and self.config.missing.lower() == "fail":
            what = f"the {self.side} of a record of {batch.topic}"
            raise DataError(f"{what} is null or has no {self.config.condition}", rows=missing)
        included = self.config.type.lower() == "include"
        kept = [self._keeps_missing if match is None else match is included for match in matching]
        return [batch.filter(pa.array(kept, pa.bool_()))]

    @property
    def _keeps_missing(self) -> bool:
        return self.config.missing.lower() == "include"

    @cached_property
    def _matches(self) -> Callable[[Any], bool | None]:
        return _Condition(self.config.condition).matches

    def _values(self, batch: RecordBatch) -> Sequence[Any]:
        column, schema = (batch.keys, batch.key_schema) if self.side == "key" else (batch.values, batch.value_schema)
        if column is None:
            return [None] * len(batch)
        texts = column if schema is None else json_texts(schema, column, numeric_decimals=True)
        return [None if text is None else json.loads(text) for text in texts.to_pylist()]


class FilterByKey(_JsonPathFilter):
    """Filters records by a JSONPath over their key."""

    side = "key"


class FilterByValue(_JsonPathFilter):
    """Filters records by a JSONPath over their value."""

    side = "value"


class _Condition:
    """A path up to its first predicate, and the rest. Raises DataError for an invalid JSONPath."""

    def __init__(self, text: str) -> None:
        before, predicate, rest = text.strip().partition("[?")
        self._way = _compiled(before.rstrip(".") or "$", text)
        self._rest = _compiled(f"${predicate}{rest}", text) if predicate else None

    def matches(self, value: Any) -> bool | None:
        """None if the path leads nowhere, or to null."""
        import jsonpath

        try:
            there = [value_ for value_ in (self._way.findall(value) if value is not None else []) if value_ is not None]
            if not there or self._rest is None:
                return True if there else None
            rest = self._rest
            return any(rest.findall(value_ if isinstance(value_, list) else [value_]) for value_ in there)
        except jsonpath.JSONPathError as error:
            raise DataError(f"filter.condition cannot be asked of {value!r:.80}: {error}") from error


def _compiled(path: str, whole: str) -> JSONPath:
    try:
        return compiled_path(path)
    except Exception as error:  # besides its own errors the library passes on those of regular expressions and numbers
        raise DataError(f"{whole!r} is not a JSONPath: {str(error).partition(chr(10))[0]}") from error
