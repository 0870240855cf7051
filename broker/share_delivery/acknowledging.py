"""Acknowledgements by members: accept, release, reject, or renew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from broker.errors import BrokerError, InvalidRecordState, InvalidRequest, UnknownServerError
from broker.share_coordinator.values import StateBatch
from broker.share_delivery.delivery import Delivery, InFlightBatch, RecordState
from broker.share_delivery.partition import Change, SharePartition
from broker.share_delivery.values import GAP, RENEW, AcknowledgeBatch

__all__ = ["acknowledge", "release"]

_BECOMES: Final[Mapping[int, RecordState]] = {
    GAP: RecordState.ARCHIVED,
    1: RecordState.ACKNOWLEDGED,
    2: RecordState.AVAILABLE,
    3: RecordState.ARCHIVED,
}
"""The new state of a record by acknowledgement type: gap, accept, release, reject."""


def acknowledge(share: SharePartition, member_id: str, batches: Sequence[AcknowledgeBatch]) -> asyncio.Future[None]:
    """Apply all acknowledgements or none. Done when the change is durable.

    Fails with InvalidRecordState if this member has not acquired a record, InvalidRequest if no member ever did, and
    with the errors of writing the state.
    """
    future: asyncio.Future[None] = share.clock.create_future()
    changes: list[Change] = []
    renewed: list[Delivery] = []
    failure: BrokerError | None = None
    try:
        for batch in batches:
            wrong = next((number for number in batch.types if number != RENEW and number not in _BECOMES), None)
            if wrong is not None:
                raise InvalidRequest(f"Acknowledge type {wrong} is not known: 0 to 4 are.")
            if batch.last >= share.start_offset:
                _acknowledge(share, member_id, batch, changes, renewed)
        for delivery in renewed:
            delivery.locked_until_ms = share.lock_until()
    except BrokerError as error:
        failure = error
    share.finish(changes, failure, future)
    return future


def _acknowledge(
    share: SharePartition,
    member_id: str,
    batch: AcknowledgeBatch,
    changes: list[Change],
    renewed: list[Delivery],
) -> None:
    for range_ in _in_flight_of(share, batch):
        if range_.whole is not None:
            _check(range_.whole, member_id, f"The batch {range_.first}-{range_.last}")
        in_one = (
            range_.is_within(batch.first, batch.last) and len(batch.types) == 1 and not share.has_start_within(range_)
        )
        if range_.whole is not None and in_one:
            _change(share, range_.first, range_.last, range_.whole, batch.types[0], changes, renewed)
            continue
        for begin, end, kind in _types_of(
            batch, max(batch.first, share.start_offset, range_.first), min(batch.last, range_.last)
        ):
            for first, last, delivery in range_.between(begin, end):
                _check(delivery, member_id, f"Offset {first}")
                _change(share, first, last, range_.part(first, last), kind, changes, renewed)


def _types_of(batch: AcknowledgeBatch, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """(first, last, type) for adjacent records with the same acknowledgement."""
    if len(batch.types) == 1:
        yield first, last, batch.types[0]
        return
    for kind, same in groupby(batch.types[first - batch.first : last - batch.first + 1]):
        behind = first + sum(1 for _ in same)
        yield first, behind - 1, kind
        first = behind


def _in_flight_of(share: SharePartition, batch: AcknowledgeBatch) -> list[InFlightBatch]:
    """The batches in flight that an acknowledgement covers."""
    holder = share.in_flight.floor(max(batch.first, share.start_offset))
    if holder is None:
        raise InvalidRecordState(f"Offsets {batch.first}-{batch.last} of {share} are not in flight.")
    batches = share.in_flight.between(holder.first, batch.last)
    if batches[-1].last < batch.first:
        raise InvalidRequest(f"Offset {batch.first} of {share} lies behind all that was acquired.")
    if batches[-1].last < batch.last:
        raise InvalidRequest(f"Offset {batch.last} of {share} lies behind all that was acquired.")
    return batches


def _check(delivery: Delivery, member_id: str, what: str) -> None:
    if delivery.state is not RecordState.ACQUIRED:
        raise InvalidRecordState(f"{what} cannot be acknowledged: it is not acquired.")
    if delivery.is_changing:
        raise InvalidRecordState(f"{what} is being acknowledged already.")
    if delivery.member != member_id:
        raise InvalidRecordState(f"{what} was acquired by another member than {member_id}.")


def _change(
    share: SharePartition,
    first: int,
    last: int,
    delivery: Delivery,
    kind: int,
    changes: list[Change],
    renewed: list[Delivery],
) -> None:
    if kind == RENEW:
        if not share.settings.renew_enabled:
            raise InvalidRecordState("Locks of this group cannot be renewed: share.renew.acknowledge.enable is false.")
        renewed.append(delivery)
        return
    _begin(share, first, last, delivery, _BECOMES[kind], changes)


def _begin(
    share: SharePartition, first: int, last: int, delivery: Delivery, to: RecordState, changes: list[Change]
) -> None:
    if not delivery.begin_to_leave(to, share.settings.delivery_count_limit):
        raise UnknownServerError(f"Offsets {first}-{last} of {share} cannot become {to.name.lower()}.")
    changes.append((delivery, StateBatch(first, last, delivery.count, delivery.state)))
    if delivery.state.is_final:
        share.complete += share.in_window(first, last)


def release(share: SharePartition, member_id: str) -> asyncio.Future[None]:
    """Release all unacknowledged records of a member that is gone."""
    future: asyncio.Future[None] = share.clock.create_future()
    changes: list[Change] = []
    for batch in share.in_flight:
        if share.has_start_within(batch):
            batch.divide_at(share.start_offset)
        for first, last, delivery in batch.runs():
            if delivery.member == member_id and delivery.state is RecordState.ACQUIRED and not delivery.is_changing:
                to = RecordState.ARCHIVED if last < share.start_offset else RecordState.AVAILABLE
                _begin(share, first, last, delivery, to, changes)
    share.finish(changes, None, future)
    return future
