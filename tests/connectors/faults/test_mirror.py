"""The mirror passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from connect.testing import Forwarder
from connectors.mirror.source import MirrorSourceConnector
from tests.connectors.faults.parts import ROWS, NumberedRows
from tests.servers.process import free_ports
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.proof, pytest.mark.servers]

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.mark.long
class TestMirrorSource(NumberedRows):
    """From one of our brokers; all connections to it are cut, including the one that writes offset syncs."""

    connector_class = MirrorSourceConnector

    @pytest.fixture(scope="class")
    @classmethod
    def way(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forwarder]:
        """The way to the source cluster, which tells its clients to come by it."""
        (port,) = free_ports(1)
        with Forwarder.to(port) as forwarder:
            advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{forwarder.port}"}
            broker = TidegateBroker(tmp_path_factory.mktemp("west"), advertised, port)
            broker.start()
            yield forwarder
            broker.stop()

    @pytest.fixture
    def parties(self, way: Forwarder) -> Iterator[Sequence[Forwarder]]:
        yield [way]
        way.mend()

    @pytest.fixture
    def properties(self, parties: Sequence[Forwarder]) -> Mapping[str, str]:
        servers, topic = f"127.0.0.1:{parties[0].port}", f"rows{time.time_ns()}"
        config = ClientConfig(servers)
        with Admin(config) as admin:
            admin.create_topics([NewTopic(topic, 2)])
        with BatchProducer(config) as producer:
            for n in range(1, ROWS + 1):
                producer.enqueue(topic, None, json.dumps({"id": n}).encode(), partition=n % 2)
                if n % 10 == 0:
                    producer.flush()
        return {
            "source.cluster.alias": "west",
            "target.cluster.alias": "east",
            "source.cluster.bootstrap.servers": servers,
            "target.cluster.bootstrap.servers": self._kafka.bootstrap_servers,
            "topics": topic,
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "consumer.poll.timeout.ms": "100",
            "source.consumer.max.partition.fetch.bytes": "300",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
        }
