"""Inspects the records of a batch before it is appended, if the topic's configuration requires it, and recompresses it.

The cost depends on the number of records, not on the bytes received. So there is an allowance: a small one on the event
loop, a larger one in ``broker.storage.record_worker``, which inspects before ``PartitionLog.append`` gets the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.errors import BrokerError, CorruptMessage, InvalidRecord, MessageTooLarge, RequestTimedOut
from broker.protocol.compression import Codec, compress
from broker.protocol.records import HEADER_SIZE, BatchHeader, batch_at, with_payload
from broker.protocol.walks import checked, keyless, opened, renumbered
from broker.work import OFF_THE_LOOP, Allowance, TooMuchWork

__all__ = ["MOST_NAMED", "Inspected", "Rules", "inspect", "inspect_all", "inspect_here"]

MOST_NAMED: Final = 10_000
"""How many invalid records an answer names; a small compressed batch may have millions."""


class Rules(NamedTuple):
    """A topic's requirements for records: a key, and a codec with its level (None keeps the producer's).

    ``max_bytes`` limits a recompressed batch, unless it was larger on arrival.
    """

    needs_keys: bool
    codec: Codec | None
    level: int | None
    max_bytes: int


class Inspected(NamedTuple):
    """The result of inspecting a batch by ``rules``: a replacement batch, if it had to change, or an error."""

    rules: Rules
    records: bytes | None = None
    error: BrokerError | None = None


def inspect(
    batch: memoryview | bytes, rules: Rules, allowance: Allowance, *, from_client: bool = True
) -> bytes | memoryview:
    """The batch to write.

    Raises InvalidRecord for records that the rules refuse or that contradict the header (as Kafka does),
    MessageTooLarge, and TooMuchWork if the allowance is not enough.
    """
    header = BatchHeader.parse(batch)
    repacks = rules.codec is not None and rules.codec != header.codec
    if not repacks and not (rules.needs_keys and from_client):
        return batch
    try:
        data = opened(header, batch, allowance)
        if rules.needs_keys and from_client:
            _refuse_keyless(header, data, allowance)
        return _repacked(header, data, rules, allowance) if repacks else batch
    except CorruptMessage as error:
        # INVALID_RECORD, as in Kafka: on CORRUPT_MESSAGE a producer would retry.
        raise InvalidRecord(error.message) from error


def inspect_all(asked: Sequence[tuple[bytes, Rules]]) -> list[Inspected]:
    """Inspect the batches of one request, within one allowance. Runs in the inspection process."""
    allowance = Allowance(OFF_THE_LOOP)
    return [_inspected(batch, rules, allowance) for batch, rules in asked]


def inspect_here(batches: Sequence[memoryview], rules: Rules, *, from_client: bool) -> Sequence[bytes | memoryview]:
    """The batches to write, with the largest allowance. Raises the errors of ``inspect``, and RequestTimedOut."""
    allowance = Allowance(OFF_THE_LOOP)
    try:
        return [inspect(batch, rules, allowance, from_client=from_client) for batch in batches]
    except TooMuchWork:
        raise _gave_up(BatchHeader.parse(batches[0])) from None


def _inspected(batch: bytes, rules: Rules, allowance: Allowance) -> Inspected:
    try:
        header = batch_at(memoryview(batch), 0)
        made = inspect(memoryview(batch)[: header.size], rules, allowance)
    except CorruptMessage:
        return Inspected(rules)  # the log reports problems of the batch itself
    except BrokerError as error:
        return Inspected(rules, error=error)
    except TooMuchWork:
        return Inspected(rules, error=_gave_up(header))
    return Inspected(rules, made if isinstance(made, bytes) else None)


def _gave_up(header: BatchHeader) -> BrokerError:
    return RequestTimedOut(
        f"a batch of {header.size} bytes with {header.record_count} records was not looked into within "
        f"{OFF_THE_LOOP.seconds:.0f} s; send smaller batches"
    )


def _refuse_keyless(header: BatchHeader, data: bytes | memoryview, allowance: Allowance) -> None:
    count, named = keyless(header, data, allowance, most_named=MOST_NAMED)
    if count:
        error = InvalidRecord(
            f"{count} records of a batch have no key, which a compacted topic needs; the first is record {named[0]}"
        )
        error.records = [(index, "a record of a compacted topic needs a key") for index in named]
        raise error


def _repacked(header: BatchHeader, data: bytes | memoryview, rules: Rules, allowance: Allowance) -> bytes:
    """The same records in another codec, with correct offsets and largest timestamp."""
    codec, most = rules.codec or Codec.NONE, max(rules.max_bytes, header.size)
    if codec is Codec.NONE:
        _refuse_larger(header, HEADER_SIZE + len(data), most, codec)
    newest, in_order = checked(header, data, allowance)
    if not in_order:
        data = renumbered(header, data, allowance)
    payload = compress(codec, data, rules.level, allowance)
    made = with_payload(header, payload, codec, header.base_timestamp + newest)
    _refuse_larger(header, len(made), most, codec)
    return made


def _refuse_larger(header: BatchHeader, size: int, most: int, codec: Codec) -> None:
    if size > most:
        name = "uncompressed" if codec is Codec.NONE else codec.name.lower()
        raise MessageTooLarge(
            f"a batch of {header.size} bytes becomes {size} with compression.type={name}, "
            f"more than max.message.bytes, {most}"
        )
