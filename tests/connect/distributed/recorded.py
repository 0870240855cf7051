"""The output of RecordRounds.java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from connect.group.protocol import Item

URL = "http://127.0.0.1:8083/"


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name("rounds.jsonl").read_text().splitlines()]


def items_of(listed: list[list[Any]]) -> frozenset[Item]:
    return frozenset(Item(*pair) for pair in listed)
