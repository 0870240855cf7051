"""Avro schemas that Confluent's registry considers equal although attributes or aliases are in another order."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["equivalent"]


def equivalent(left: str, other: str) -> bool:
    """Whether two canonical texts differ only in the order of attributes and aliases."""
    if left == other:
        return True
    # A quick test: most different texts do not have the same characters.
    if len(left) != len(other) or sorted(left) != sorted(other):
        return False
    return bool(_unordered(json.loads(left)) == _unordered(json.loads(other)))


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _aliases(item) if name == "aliases" else _unordered(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unordered(item) for item in value]
    # Python's 1, 1.0 and True are equal, JSON's are not.
    return (type(value).__name__, value)


def _aliases(value: Any) -> Any:
    names = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return sorted(value) if names else _unordered(value)
