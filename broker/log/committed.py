"""The records of a log that count: those of open and aborted transactions do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker.errors import CorruptMessage
from broker.protocol.records import BatchHeader, Record, decode_batch, decode_marker
from tidegate.kit.logs import get_logger

__all__ = ["committed_records"]

logger = get_logger(__name__)


def committed_records(
    batches: Iterable[memoryview | bytes], still_open: dict[int, list[Record]] | None = None
) -> Iterator[Record]:
    """Each record once it counts: at its place, or where its transaction was committed.

    Records of a transaction that had not ended when the log did are left in ``still_open``, by producer id, if that is
    given. A batch that cannot be read is reported and left out.
    """
    pending: dict[int, list[Record]] = {} if still_open is None else still_open
    for batch in batches:
        header = BatchHeader.parse(batch)
        try:
            records = decode_batch(batch)
            if header.is_control:
                ended = pending.pop(header.producer_id, [])
                if any(decode_marker(marker)[0] for marker in records):
                    yield from ended
                continue
        except CorruptMessage as error:
            logger.error("batch cannot be read", offsets=f"{header.base_offset}-{header.last_offset}", error=str(error))
            continue
        if header.is_transactional:
            pending.setdefault(header.producer_id, []).extend(records)
        else:
            yield from records
