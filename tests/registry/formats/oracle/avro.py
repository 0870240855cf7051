"""Asks Java Avro about generated schemas and keeps the answers.

python -m tests.servers fetch avro
python -m tests.registry.formats.oracle.avro
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from tests.registry.formats.oracle.avro_schemas import Schemas
from tests.registry.formats.oracle.kept import HERE, write
from tests.servers.fetch import require
from tests.servers.java import QUICK, java

PAIRS = range(1600)
WILD = range(10_000, 11_200)


def questions() -> Iterator[list[str]]:
    """Pairs of good schemas, then schemas that may be wrong, each by itself."""
    for seed in PAIRS:
        schemas = Schemas(seed)
        old = schemas.schema()
        yield [json.dumps(schema, ensure_ascii=False) for schema in (old, schemas.changed(old))]
    for seed in WILD:
        yield [json.dumps(Schemas(seed, wild=True).schema(), ensure_ascii=False)]


def ask(asked: Sequence[list[str]]) -> list[dict[str, Any]]:
    """Java's answers; raises ServerMissing where there is no Java or no Avro."""
    libraries = require("avro") / "libs"
    command = [java(), "-Xmx512m", *QUICK, "-cp", f"{libraries}/*", str(HERE / "Avro.java")]
    done = subprocess.run(command, input="\n".join(map(json.dumps, asked)), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def entries() -> list[dict[str, Any]]:
    asked = list(questions())
    return [{"texts": texts, **answer} for texts, answer in zip(asked, ask(asked), strict=True)]


if __name__ == "__main__":
    kept = entries()
    print(f"avro: {len(kept)} entries, {write('avro', kept)} bytes")
