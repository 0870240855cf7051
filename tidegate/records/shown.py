"""Records as people see them, and conditions on these."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate.kit.errors import UsageError
from tidegate.kit.json_path import compiled_path
from tidegate.records.decoding import Decode, shown_headers
from tidegate.records.exact_json import json_text

if TYPE_CHECKING:
    from broker.client import KafkaRecord

__all__ = ["condition_of", "shown_record", "value_text"]


def shown_record(record: KafkaRecord, decode: Decode, *, headers: bool = True) -> dict[str, Any]:
    """A record as a JSON object: topic, partition, offset, timestamp (ms), key, value, and headers if it has some."""
    shown: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": decode(record.key),
        "value": decode(record.value),
    }
    if record.headers and headers:
        shown["headers"] = shown_headers(record.headers, decode)
    return shown


def value_text(value: Any) -> str:
    """A decoded key or value as text: a string as it is, otherwise JSON."""
    return value if isinstance(value, str) else json_text(value, constants=True)


def condition_of(expression: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a JSONPath condition (filter selectors, RFC 9535 2.3.5) holds for a shown record; an empty one always does, and
    none does for a record that is nested too deep.

    Raises UsageError.
    """
    if not expression:
        return lambda shown: True
    try:
        path = compiled_path(f"$[?{expression}]")
    except Exception as error:  # besides its own errors the library passes on those of regular expressions and numbers
        why = str(error).partition("\n")[0]
        raise UsageError(f"{expression!r} is no condition ({why}): give for example @.value.amount > 10") from error

    def holds(shown: dict[str, Any]) -> bool:
        try:
            return bool(path.findall([json.loads(json_text(shown, constants=True), parse_int=_number)]))
        except RecursionError:  # a record may be nested deeper than Python's stack; the search goes on
            return False

    return holds


def _number(text: str) -> int | float:
    """JSONPath compares an integer with more digits than Python's int takes as a double."""
    try:
        return int(text)
    except ValueError:
        return float(text)
