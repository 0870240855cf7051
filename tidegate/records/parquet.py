"""Records as a Parquet file, made in a process of its own so that who exports loads no Arrow.

``python -m tidegate.records.parquet``: standard input is records as ``consume`` shows them, a JSON object in each line; standard
output is the file. Keys and values have the columns of their JSON where all of them agree on its types, and are text otherwise.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

__all__ = ["write_parquet"]

_BLOCK_BYTES: Final = 8_000_000
_ROWS: Final = 10_000
_PLACE: Final = (("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()))
_TIME: Final = ("timestamp", pa.timestamp("ms", tz="UTC"))
_PARTS: Final = ("key", "value", "headers")
_TEXTS: Final = pa.schema([*_PLACE, _TIME, *((name, pa.string()) for name in _PARTS)])


def write_parquet(lines: BinaryIO, output: BinaryIO) -> None:
    """``lines`` is read twice where its types don't agree, so it is a file."""
    for typed in (True, False):
        lines.seek(0)
        with tempfile.TemporaryFile() as made:
            try:
                _write(_typed(lines) if typed else _texts(lines), made)
            except (pa.ArrowException, ValueError):
                if not typed:
                    raise
                continue
            made.seek(0)
            shutil.copyfileobj(made, output)
            return


def _write(batches: Iterable[pa.RecordBatch], made: Any) -> None:
    writer = None
    for batch in batches:
        writer = writer or pq.ParquetWriter(made, batch.schema, compression="zstd")
        writer.write_batch(batch)
    with writer or pq.ParquetWriter(made, _TEXTS, compression="zstd"):
        pass


def _typed(lines: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Raises ArrowInvalid for JSON whose types don't agree with those of its first block."""
    if not lines.read(1):
        return
    lines.seek(0)
    fixed = pa.schema([*_PLACE, ("timestamp", pa.int64())])
    reader = pj.open_json(
        pa.PythonFile(lines, mode="r"),
        read_options=pj.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=fixed, unexpected_field_behavior="infer"),
    )
    for batch in reader:
        yield batch.set_column(batch.schema.get_field_index("timestamp"), *_timed(batch))


def _timed(batch: pa.RecordBatch) -> tuple[pa.Field, pa.Array]:
    return pa.field(*_TIME), batch.column("timestamp").cast(_TIME[1])


def _texts(lines: BinaryIO) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        shown = json.loads(line)
        rows.append({**shown, **{name: _text(shown.get(name)) for name in _PARTS}})
        if len(rows) >= _ROWS:
            yield pa.RecordBatch.from_pylist(rows, _TEXTS)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, _TEXTS)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def main() -> None:
    with tempfile.TemporaryFile() as lines:
        shutil.copyfileobj(sys.stdin.buffer, lines)
        write_parquet(lines, sys.stdout.buffer)


if __name__ == "__main__":
    main()
