"""References of a composite request to earlier results: ``@{NewOrder.id}``, ``@{Found.records[0].Id}``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from events.errors import BadRequest

__all__ = ["MOST_BYTES", "MissingReference", "References"]

MOST_BYTES: Final = 8 * 1024 * 1024
"""The limit on resolved references: a description of an event has some 50 KB, and a body can have a hundred thousand
references to it.
"""

_REFERENCE: Final = re.compile(r"@\{([A-Za-z][A-Za-z0-9_]{0,127})((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,6}\])*)\}")
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d{1,6})\]")


class MissingReference(BadRequest):
    code = "PROCESSING_HALTED"

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"Invalid reference specified. No value for {path} found in {name}")


class References:
    """The results of one composite request so far, for later requests that refer to them."""

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._left = MOST_BYTES

    def add(self, name: str, result: Any) -> None:
        """Make a result available to later requests."""
        self._results[name] = result

    def resolved(self, value: Any) -> Any:
        """The value with every reference in its texts replaced. A text that is a single reference becomes the
        referenced value.

        Raises MissingReference for a request that failed or comes later, and for a path that its result lacks;
        BadRequest if the references of all requests together exceed ``MOST_BYTES`` of JSON.
        """
        if isinstance(value, str):
            whole = _REFERENCE.fullmatch(value)
            if whole is not None:
                return self._looked_up(whole)
            return _REFERENCE.sub(lambda match: str(self._looked_up(match)), value)
        if isinstance(value, dict):
            return {name: self.resolved(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.resolved(inner) for inner in value]
        return value

    def _looked_up(self, match: re.Match[str]) -> Any:
        value = _at(match[1], match[2], self._results)
        reference = match[0]
        if reference not in self._sizes:
            self._sizes[reference] = len(json.dumps(value))
        self._left -= self._sizes[reference]
        if self._left < 0:
            raise BadRequest(
                f"The references of this request come to more than {MOST_BYTES} bytes, with {reference[:100]}: refer to the "
                "fields that are needed, or send several requests"
            )
        return value


def _at(name: str, path: str, results: Mapping[str, Any]) -> Any:
    if name not in results:
        raise MissingReference(name + path, name)
    value = results[name]
    for member, index in _STEP.findall(path):
        if member and isinstance(value, dict) and member in value:
            value = value[member]
        elif index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        else:
            raise MissingReference(name + path, name)
    return value
