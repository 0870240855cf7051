"""The clients' own metrics, and the contract with the private parts of aiokafka that broker.client.network uses."""

from __future__ import annotations

import inspect
from uuid import uuid4

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import NotReachable
from broker.client.network import ClientMeasures, client_measures
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = pytest.mark.anyio


def test_the_private_names_are_there() -> None:
    """Private names that an upgrade of aiokafka may remove; network.py has to be adapted then."""
    assert list(inspect.signature(AIOKafkaClient._get_conn).parameters) == ["self", "node_id", "group", "no_hint"]
    assert list(inspect.signature(AIOKafkaClient._on_connection_closed).parameters) == ["self", "conn", "reason"]
    assert list(inspect.signature(AIOKafkaConnection._handle_frame).parameters) == ["self", "resp"]
    assert "await self.send(" in inspect.getsource(AIOKafkaConnection._do_version_lookup)
    assert "protocol = AIOKafkaProtocol(self._closed_fut" in inspect.getsource(AIOKafkaConnection.connect)
    sends = inspect.getsource(AIOKafkaConnection.send)
    assert (
        sends.index("self._writer.write(") < sends.index("self._writer.drain()") < sends.index("self._requests.append(")
    )
    assert "self._requests[0]" in inspect.getsource(AIOKafkaConnection._handle_frame)


def of(client_id: str) -> list[ClientMeasures]:
    return [measures for measures in client_measures() if measures.client_id == client_id]


async def test_a_producer_and_a_consumer_tell_what_they_did(tidegate_broker: TidegateBroker) -> None:
    name = f"n-{uuid4().hex[:8]}"
    config = ClientConfig(tidegate_broker.bootstrap_servers, {"client.id": name, "auto.offset.reset": "earliest"})
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(name, 1, 1)])
        async with BatchProducer(config) as producer:
            for n in range(3):
                await producer.send(name, None, b"%d" % n, partition=0)
            (sent,) = [measures for measures in of(name) if measures.kind == "producer"]
            assert sent.sending()["record-send-total"] == 3 and sent.sending()["request-latency-max"] > 0
            network = sent.network()
            assert network["connection-count"] == network["connection-creation-total"] == 1
            assert network["request-total"] == network["response-total"] >= 3
            assert network["outgoing-byte-total"] > 3 * 70 and network["incoming-byte-total"] > 3 * 30
            assert network["network-io-rate"] == pytest.approx(
                network["request-rate"] + network["response-rate"], abs=0.01
            )
            assert 0 < network["io-ratio"] < 1 and network["successful-authentication-total"] == 0
            ((node, by_node),) = sent.nodes().items()
            assert node == "node-1" and by_node["outgoing-byte-total"] == network["outgoing-byte-total"]
        async with BatchConsumer(config.with_properties({"group.id": name})) as consumer:
            await consumer.subscribe([name])
            while not await consumer.fetch(1000):
                pass
            await consumer.commit()
            (read,) = [measures for measures in of(name) if measures.kind == "consumer"]
            fetching, coordinating = read.fetching(), read.coordinating()
            assert fetching["records-consumed-total"] == 3 and fetching["fetch-total"] >= 1
            assert fetching["fetch-size-max"] > fetching["bytes-consumed-total"] > 3 * 60
            assert all(coordinating[f"{what}-total"] >= 1 for what in ("join", "sync", "commit"))
        assert [measures.kind for measures in of(name)] == ["admin"]
    assert of(name) == []


async def test_a_client_that_cannot_connect_is_not_listed() -> None:
    name = f"n-{uuid4().hex[:8]}"
    with pytest.raises(NotReachable):
        await Admin(ClientConfig("127.0.0.1:1", {"client.id": name})).start()
    assert of(name) == []
