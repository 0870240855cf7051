"""The headers of the batches in a file, without their records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import CorruptMessage
from broker.log.files import FileHandle
from broker.protocol.records import HEADER_SIZE, MAGIC, BatchHeader

__all__ = ["headers_in"]

_CHUNK: Final = 16 * 1024


def headers_in(handle: FileHandle, position: int, end: int, path: str) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers from the batch at ``position`` on. Raises CorruptMessage for an incomplete batch."""
    while position < end:
        chunk = handle.read(position, min(_CHUNK, end - position))
        at = 0
        while at + HEADER_SIZE <= len(chunk):
            header = BatchHeader.parse(chunk, at)
            if header.magic != MAGIC or header.size < HEADER_SIZE or position + at + header.size > end:
                raise CorruptMessage(f"{Path(path).name} has no whole batch at position {position + at}")
            yield position + at, header
            at += header.size
        if at == 0:
            raise CorruptMessage(f"{Path(path).name} has no whole batch at position {position}")
        position += at
