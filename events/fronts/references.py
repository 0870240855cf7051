"""References of a composite request to earlier results: ``@{NewOrder.id}``, ``@{Found.records[0].Id}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from events.errors import BadRequest

__all__ = ["MissingReference", "resolved"]

_REFERENCE: Final = re.compile(r"@\{([A-Za-z][A-Za-z0-9_]{0,127})((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,6}\])*)\}")
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d{1,6})\]")


class MissingReference(BadRequest):
    code = "PROCESSING_HALTED"

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"Invalid reference specified. No value for {path} found in {name}")


def resolved(value: Any, results: Mapping[str, Any]) -> Any:
    """The value with every reference in its texts replaced; a text that is one reference becomes what it refers to.

    Raises MissingReference for a request that failed or comes later, and for a path that its result does not have.
    """
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return _looked_up(whole, results)
        return _REFERENCE.sub(lambda found: str(_looked_up(found, results)), value)
    if isinstance(value, dict):
        return {name: resolved(inner, results) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, results) for inner in value]
    return value


def _looked_up(found: re.Match[str], results: Mapping[str, Any]) -> Any:
    name, path = found[1], found[2]
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
