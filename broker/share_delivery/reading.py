"""Reads the log for share groups: positions of its batches, and which belong to aborted transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from broker.log.partition import LogSlice, PartitionLog
from broker.protocol.records import HEADER_SIZE, BatchHeader, decode_batch, decode_marker
from broker.share_delivery.values import Acquired, BatchSpan

__all__ = ["PlacedBatch", "aborted_spans", "batches_in", "cut"]

_CHUNK: Final = 32 * 1024


class PlacedBatch(NamedTuple):
    """A batch and its distance from the beginning of its slice."""

    position: int
    header: BatchHeader

    @property
    def span(self) -> BatchSpan:
        return BatchSpan(self.header.base_offset, self.header.last_offset)


def batches_in(records: LogSlice) -> list[PlacedBatch]:
    """The complete batches of a slice. Only their headers are read."""
    return list(_walk(records))


def _walk(records: LogSlice) -> Iterator[PlacedBatch]:
    position, size = 0, records.size
    while position + HEADER_SIZE <= size:
        chunk = os.pread(records.fd, min(_CHUNK, size - position), records.position + position)
        at = 0
        while at + HEADER_SIZE <= len(chunk):
            header = BatchHeader.parse(chunk, at)
            if header.size < HEADER_SIZE or position + at + header.size > size:
                return
            yield PlacedBatch(position + at, header)
            at += header.size
        position += at


def cut(records: LogSlice, batches: Sequence[PlacedBatch], acquired: Sequence[Acquired]) -> LogSlice:
    """The slice without unacquired batches at its beginning and end."""
    first, last = acquired[0].first, acquired[-1].last
    kept = [batch for batch in batches if batch.header.last_offset >= first and batch.header.base_offset <= last]
    if not kept:
        return records
    begin, end = kept[0].position, kept[-1].position + kept[-1].header.size
    return LogSlice(records.handle, records.position + begin, end - begin)


def aborted_spans(log: PartitionLog, records: LogSlice, batches: Sequence[PlacedBatch]) -> list[BatchSpan]:
    """The batches whose transactions were aborted."""
    ended = sorted(
        log.reader.aborted_transactions(batches[0].header.base_offset, batches[-1].header.last_offset + 1),
        key=lambda transaction: transaction.first_offset,
    )
    if not ended:
        return []
    aborted: set[int] = set()
    spans: list[BatchSpan] = []
    for batch in batches:
        header = batch.header
        while ended and ended[0].first_offset <= header.last_offset:
            aborted.add(ended.pop(0).producer_id)
        if header.is_control:
            if not _commits(records, batch):
                aborted.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborted:
            spans.append(batch.span)
    return spans


def _commits(records: LogSlice, batch: PlacedBatch) -> bool:
    data = os.pread(records.fd, batch.header.size, records.position + batch.position)
    committed, _ = decode_marker(decode_batch(data)[0])
    return committed
