"""One active writer of a partition among several, on both brokers."""

from __future__ import annotations

import pytest

from broker.client import BatchConsumer, ClientConfig, FencedWriter, TopicPartition
from broker.client.errors import IllegalUse, InvalidProducerEpoch, MessageTooLarge, ProducerFenced

pytestmark = [pytest.mark.servers, pytest.mark.anyio]


async def values(config: ClientConfig, topic: str, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek_to_beginning((topic, 0))
        while len(values) < count:
            values += [record.value for batch in await consumer.fetch() for record in batch.records()]
    return values


async def test_a_writer_that_was_replaced_is_refused_by_the_log(config: ClientConfig, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    async with (
        FencedWriter(config, partition, f"w-{topic}") as old,
        FencedWriter(config, partition, f"w-{topic}") as new,
    ):
        with pytest.raises(IllegalUse):
            await old.write([(b"k", b"unclaimed")])
        await old.claim()
        assert await old.write([(b"k", b"1"), (b"k", b"2")]) == 0
        assert await old.write([(b"k", b"3")]) == 2
        await new.claim()
        assert await new.write([(b"k", b"4"), (b"k", None)]) == 3
        with pytest.raises((InvalidProducerEpoch, ProducerFenced)):
            await old.write([(b"k", b"too late")])
        with pytest.raises(IllegalUse):
            await old.write([(b"k", b"still")])
        with pytest.raises(MessageTooLarge):
            await new.write([(b"k", b"x" * (5 << 20))])
        assert await new.write([(b"k", b"5")]) == 5
        await old.claim()
        assert await old.write([(b"k", b"6")]) == 6
    assert await values(config, topic, 7) == [b"1", b"2", b"3", b"4", None, b"5", b"6"]
