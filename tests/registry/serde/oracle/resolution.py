"""Asks Java Avro what it reads from drawn records with drawn other schemas, and keeps the answers.

python -m tests.servers fetch avro
python -m tests.registry.serde.oracle.resolution
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from registry.serde import encode_columns
from tests.registry.serde.drawn import arrow_column
from tests.registry.serde.evolved import evolutions
from tests.servers.fetch import require
from tests.servers.java import QUICK, java

CASES = 800
KEPT = Path(__file__).with_name("resolution.jsonl.gz")


def questions() -> list[tuple[str, str, list[str]]]:
    """Writer, reader and bodies in hex, the same ones each time."""
    asked = []

    @seed(1)
    @settings(
        max_examples=CASES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(evolutions())
    def draw(evolution: Any) -> None:
        (schema, rows), reader = evolution
        bodies = [message[5:].hex() for message in encode_columns(schema, arrow_column(schema, rows), 7).to_pylist()]
        if bodies:
            asked.append((schema.resolved, reader.resolved, bodies))

    draw()
    return asked


def ask(asked: Sequence[Any]) -> list[list[str | None] | None]:
    """Java's answers; raises ServerMissing where there is no Java or no Avro."""
    libraries = require("avro") / "libs"
    command = [java(), "-Xmx512m", *QUICK, "-cp", f"{libraries}/*", str(Path(__file__).with_name("Resolution.java"))]
    done = subprocess.run(command, input="\n".join(map(json.dumps, asked)), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def kept() -> Iterator[tuple[str, str, list[str], list[str | None]]]:
    with gzip.open(KEPT, "rt", encoding="utf-8") as lines:
        for line in lines:
            writer, reader, bodies, answers = json.loads(line)
            yield writer, reader, bodies, answers


if __name__ == "__main__":
    asked = questions()
    entries = [(*question, answer) for question, answer in zip(asked, ask(asked), strict=True) if answer is not None]
    text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
    KEPT.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    bodies = [answer for entry in entries for answer in entry[3]]
    print(f"{len(entries)} of {len(asked)} schema pairs, {len(bodies)} records, {bodies.count(None)} not readable")
