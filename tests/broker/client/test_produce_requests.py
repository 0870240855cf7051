"""Produce requests sent in pieces have the same bytes as aiokafka's, on any broker."""

from __future__ import annotations

import asyncio
import inspect

import pyarrow as pa
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.producer.sender import SendProduceReqHandler
from aiokafka.protocol.produce import ProduceRequest, ProduceRequest_v3, ProduceRequest_v7

from broker.client import BatchConsumer, BatchProducer, ClientConfig, TopicPartition
from broker.client.columns import encode_batches
from broker.client.produce_requests import PiecewiseRequest, _gathered

pytestmark = pytest.mark.anyio


def test_the_private_names_are_there() -> None:
    """Private names that an upgrade of aiokafka may remove; produce_requests.py has to be adapted then."""
    send = inspect.getsource(AIOKafkaConnection.send)
    for name in ("_writer", "_versions", "_next_correlation_id", "_client_id", "_requests.append", "_request_timeout"):
        assert f"self.{name}" in send
    assert "self._conns[(node_id, group)]" in inspect.getsource(AIOKafkaClient.send)
    handler = inspect.getsource(SendProduceReqHandler)
    used = {part.split("(")[0].split()[0] for part in handler.split("self._client.")[1:]}
    assert used == {"send", "force_metadata_update", "_maybe_wait_metadata"}


@pytest.mark.parametrize("transactional", [None, "a task"])
def test_the_pieces_are_what_aiokafka_encodes(transactional: str | None) -> None:
    large, other = bytes(range(256)) * 400, b"small"
    whole = ProduceRequest(transactional, -1, 30_000, [("t", [(0, large), (7, other)]), ("ü", [(1, other)])])
    pieces = PiecewiseRequest(
        transactional,
        -1,
        30_000,
        [("t", [(0, [large[:61], memoryview(large)[61:]]), (7, [other])]), ("ü", [(1, [bytearray(other)])])],
    )
    for form in (ProduceRequest_v3, ProduceRequest_v7):
        assert b"".join(pieces.body()) == whole.build(form).encode()
    assert b"".join(_gathered(list(pieces.body()))) == whole.build(ProduceRequest_v7).encode()


def test_large_pieces_are_handed_on_as_they_are() -> None:
    large = memoryview(bytes(100_000))
    gathered = list(_gathered([b"a", b"b", large, b"c", b"d"]))
    assert (gathered[0], gathered[2]) == (b"ab", b"cd")
    assert gathered[1] is large


@pytest.mark.parametrize("acks", ["all", "0"])
async def test_large_and_small_batches_arrive(config: ClientConfig, topic: str, acks: str) -> None:
    values = [b"x" * 300_000, b"y", None, b"z" * 700_000]
    changed = config.with_properties({"acks": acks, "enable.idempotence": str(acks == "all").lower()})
    # With acks=0 a broker that does not lead a new partition yet drops what it gets; this one is told when it does.
    async with BatchProducer(config.with_properties({"acks": "all"})) as producer:
        await producer.send(topic, None, b"first", partition=0)
    values = [b"first", *values]
    async with BatchProducer(changed) as producer:
        for batch in encode_batches(None, pa.array(values[1:], pa.binary()), max_bytes=400_000):
            await (await producer.send_batch(topic, 0, batch))
    received: list[bytes | None] = []
    async with BatchConsumer(config.with_properties({"auto.offset.reset": "earliest"})) as consumer:
        await consumer.assign([TopicPartition(topic, 0)])
        async with asyncio.timeout(60):
            while len(received) < len(values):
                for fetched in await consumer.fetch(1000):
                    received += [record.value for record in fetched.records()]
    assert received == values
