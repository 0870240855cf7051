"""The effective records of a log, without those of open and aborted transactions."""

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
    """Each effective record, at its offset or at the commit marker of its transaction.

    Records of transactions that are open at the end of the log go to ``still_open``, by producer id, if it is passed.
    An unreadable batch is logged and skipped.
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
