"""Transactions that a producer leaves open and another client commits, against real brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.client import Admin, BatchProducer, ClientConfig, TopicPartition, TransactionalProducer
from broker.client.errors import IllegalUse
from tidegate.kit.errors import TidegateError

pytestmark = pytest.mark.anyio


async def left_open(config: ClientConfig, topic: str, name: str, *, records: int = 1) -> TransactionalProducer | None:
    """The transaction of a producer that has stopped."""
    async with BatchProducer(config.with_properties({"transactional.id": name})) as producer:
        await producer.begin_transaction()
        for n in range(records):
            await producer.send(topic, None, str(n).encode(), partition=0)
        return await producer.leave_transaction()


async def stable_end(admin: Admin, topic: str) -> int:
    """The offset before which readers of committed records read."""
    partition = TopicPartition(topic, 0)
    return (await admin.end_offsets([partition], committed=True))[partition]


async def stable_end_is(admin: Admin, topic: str, offset: int) -> None:
    """Wait: Apache Kafka answers a commit before its markers are in the log."""
    while await stable_end(admin, topic) < offset:
        await asyncio.sleep(0.02)
    assert await stable_end(admin, topic) == offset


async def test_a_transaction_is_committed_after_its_producer_has_stopped(
    config: ClientConfig, topic: str, name: Callable[[], str]
) -> None:
    async with Admin(config) as admin:
        first, second = name(), name()
        transactions = [await left_open(config, topic, first), await left_open(config, topic, second)]
        assert await stable_end(admin, topic) == 0
        await admin.commit_transactions(transactions)
        await stable_end_is(admin, topic, 4)  # two records, two markers
        await admin.commit_transactions(transactions)  # again, as after an answer that was lost
        assert await left_open(config, topic, first, records=0) is None


async def test_a_later_producer_of_the_same_id_aborts_an_open_transaction(
    config: ClientConfig, topic: str, name: Callable[[], str]
) -> None:
    async with Admin(config) as admin:
        shared = name()
        aborted = await left_open(config, topic, shared)
        later, other = await left_open(config, topic, shared), await left_open(config, topic, name())
        with pytest.raises(TidegateError, match=f"transactional.id={shared}") as refused:
            await admin.commit_transactions([aborted, other])
        assert not refused.value.retriable
        await admin.commit_transactions([later])
        await stable_end_is(admin, topic, 6)  # three records; the markers of an abort and of two commits


async def test_a_claimed_id_is_current_until_it_is_fenced(config: ClientConfig, name: Callable[[], str]) -> None:
    async with Admin(config) as admin:
        mark = name()
        first = await admin.claim_producer(mark)
        assert await admin.is_current(first)
        await admin.fence_producers([mark])
        assert not await admin.is_current(first)
        assert await admin.is_current(await admin.claim_producer(mark))


async def test_a_producer_without_a_transaction_leaves_none(config: ClientConfig) -> None:
    async with BatchProducer(config) as producer:
        with pytest.raises(IllegalUse, match="no open transaction"):
            await producer.leave_transaction()
