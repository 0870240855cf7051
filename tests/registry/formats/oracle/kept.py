"""Reads and writes recorded questions and answers: gzipped JSON lines, with the same bytes for the same content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(name: str) -> Iterator[Any]:
    with gzip.open(HERE / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def write(name: str, entries: Iterable[Any]) -> int:
    text = "".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n" for entry in entries)
    data = gzip.compress(text.encode("utf-8", "surrogatepass"), 9, mtime=0)
    (HERE / f"{name}.jsonl.gz").write_bytes(data)
    return len(data)
