"""Tests as tables: a series of requests, each with the expected response."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from starlette.testclient import TestClient

__all__ = ["Error", "Step", "record", "run"]


class Error(NamedTuple):
    status: int
    code: int
    says: str = ""


Expected = Any | Callable[[Any], object]
Step = tuple[str, str, Any, Expected]
"""Method, path, JSON body, and what comes back: an Error, a value, or a function that is true of it."""


def run(client: TestClient, steps: Iterable[Step]) -> None:
    for method, path, body, expected in steps:
        answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
        told = f"{method} {path} {json.dumps(body)}: {answer.status_code} {answer.text}"
        if isinstance(expected, Error):
            shown = answer.json()
            assert list(shown) == ["error_code", "message"], told
            assert (answer.status_code, shown["error_code"]) == expected[:2], told
            assert expected.says in shown["message"], told
            continue
        assert answer.status_code < 300, told
        value = answer.json() if answer.content else None
        if callable(expected):
            assert expected(value), told
        else:
            assert value == expected, told


def record(*fields: str, name: str = "R", **more: Any) -> str:
    """A record's schema; a field is ``name:type``, with ``=default`` where it has one. The text is canonical."""
    described = []
    for field in fields:
        title, _, kind = field.partition(":")
        kind, _, default = kind.partition("=")
        described.append({"name": title, "type": kind, **({"default": json.loads(default)} if default else {})})
    return json.dumps({"type": "record", "name": name, "fields": described, **more}, separators=(",", ":"))
