"""The whole registry over a real Kafka, used by Confluent's own client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.schema_registry_client import ConfigCompatibilityLevel, ServerConfig
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.registries import RegistryProcess

Start = Callable[..., RegistryProcess]


Broker = KafkaBroker | TidegateBroker


@pytest.fixture(params=["apache_kafka", "tidegate_broker"])
def kafka(request: pytest.FixtureRequest) -> Broker:
    """The tests run over Apache Kafka and over our own broker: the promises hold with both."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture
def start(kafka: Broker, tmp_path: Path) -> Iterator[Start]:
    """Starts registries on one topic of their own; each can be started again on it."""
    servers: list[RegistryProcess] = []
    topic = f"_schemas-{uuid.uuid4().hex[:8]}"
    (port,) = free_ports(1)  # one that comes back at its address need not wait for its old session to end

    def start_one(**more: str) -> RegistryProcess:
        settings = {
            "listeners": f"http://127.0.0.1:{port}",
            "schema.registry.group.id": topic,
            "kafkastore.bootstrap.servers": kafka.bootstrap_servers,
            "kafkastore.topic": topic,
            **more,
        }
        servers.append(RegistryProcess(tmp_path, settings))
        return servers[-1]

    start_one.topic = topic  # type: ignore[attr-defined]
    yield start_one
    for server in servers:
        server.end(signal.SIGKILL)


Connect = Callable[[RegistryProcess], SchemaRegistryClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes Confluent's client of a registry."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(SchemaRegistryClient({"url": server.url}))


@contextmanager
def refused(status: int, code: int) -> Iterator[None]:
    with pytest.raises(SchemaRegistryError) as caught:
        yield
    assert (caught.value.http_status_code, caught.value.error_code) == (status, code)


ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        ],
    }
)


@pytest.mark.servers
def test_confluents_client_does_its_work(start: Start, connect: Connect) -> None:
    client = connect(start())
    schema_id = client.register_schema("orders-value", Schema(ORDER, "AVRO"))
    assert client.register_schema("orders-copy", Schema(ORDER, "AVRO")) == schema_id
    assert json.loads(client.get_schema(schema_id).schema_str or "") == json.loads(ORDER)
    assert client.lookup_schema("orders-value", Schema(ORDER, "AVRO")).version == 1
    assert client.get_subjects() == ["orders-copy", "orders-value"]
    assert client.get_latest_version("orders-value").schema_id == schema_id
    assert client.get_version("orders-value", 1).schema_id == schema_id
    assert client.get_versions("orders-value") == [1]

    narrower = Schema(ORDER.replace('"long"', '"int"'), "AVRO")
    assert client.test_compatibility("orders-value", narrower) is False
    with refused(409, 40901):
        client.register_schema("orders-value", narrower)
    client.set_compatibility("orders-value", "NONE")
    assert client.get_compatibility("orders-value") == "NONE"
    assert client.register_schema("orders-value", narrower) == schema_id + 1
    client.set_config("orders-value", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config("orders-value").compatibility_level == ConfigCompatibilityLevel.FULL

    user = Schema(
        '{"type":"record","name":"Box","fields":[{"name":"order","type":"shop.Order"}]}',
        "AVRO",
        references=[SchemaReference("shop.Order", "orders-value", 1)],
    )
    client.register_schema("boxes-value", user)
    references = client.get_latest_version("boxes-value").schema.references or []
    assert [reference.subject for reference in references] == ["orders-value"]
    with refused(422, 42206):
        client.delete_version("orders-value", 1)
    assert client.delete_version("orders-value", 2) == 2
    with refused(404, 40402):
        client.get_version("orders-value", 2)
    assert client.delete_subject("orders-copy") == [1]
    assert client.delete_subject("orders-copy", permanent=True) == [1]
    with refused(404, 40401):
        client.get_versions("orders-copy")


@pytest.mark.servers
def test_confluents_serializers_round_trip(start: Start, connect: Connect) -> None:
    client = connect(start())
    context = SerializationContext("orders", MessageField.VALUE)
    value = {"id": 7, "note": "hällo", "total": Decimal("12.34")}
    written = AvroSerializer(client, ORDER)(value, context)
    assert written is not None
    assert written[:5] == b"\0\0\0\0\1"
    assert AvroDeserializer(client)(written, context) == value
    assert client.get_subjects() == ["orders-value"]


@pytest.mark.servers
def test_a_killed_registry_resumes_where_it_was(start: Start, connect: Connect) -> None:
    server = start()
    client = connect(server)
    ids = {
        name: client.register_schema(name, Schema(f'{{"type":"fixed","name":"F","size":{size}}}', "AVRO"))
        for size, name in enumerate(["a", "b", "c"])
    }
    client.set_compatibility(level="FULL_TRANSITIVE")
    client.delete_subject("b")
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    again = connect(start())
    assert again.get_subjects() == ["a", "c"]
    assert again.get_compatibility() == "FULL_TRANSITIVE"
    for name in ("a", "c"):
        assert again.get_latest_version(name).schema_id == ids[name]
    assert again.register_schema("d", Schema('"string"', "AVRO")) == max(ids.values()) + 1


@pytest.mark.servers
def test_the_log_holds_confluents_records(
    start: Start, connect: Connect, kafka_tools: Callable[..., str], kafka: Broker
) -> None:
    client = connect(start())
    client.register_schema("s", Schema('"string"', "AVRO"))
    client.set_compatibility(level="NONE")
    client.set_compatibility("s", "FULL")
    client.delete_subject("s")
    client.delete_subject("s", permanent=True)
    told = kafka_tools(
        "kafka-console-consumer",
        *("--bootstrap-server", kafka.bootstrap_servers, "--topic", start.topic),  # type: ignore[attr-defined]
        *("--from-beginning", "--formatter-property", "print.key=true", "--max-messages", "7", "--timeout-ms", "20000"),
    )
    assert told.splitlines()[:7] == [
        '{"keytype":"NOOP","magic":0}\tnull',
        '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}\t{"subject":"s","version":1,"id":1,'
        '"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}',
        '{"keytype":"CONFIG","magic":0}\t{"compatibilityLevel":"NONE"}',
        '{"keytype":"CONFIG","subject":"s","magic":0}\t{"subject":"s","compatibilityLevel":"FULL"}',
        '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}\t{"subject":"s","version":1}',
        '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}\tnull',
        '{"keytype":"CONFIG","subject":"s","magic":0}\tnull',
    ]
    described = kafka_tools(
        "kafka-configs",
        *("--bootstrap-server", kafka.bootstrap_servers, "--describe"),
        *("--entity-type", "topics", "--entity-name", start.topic),  # type: ignore[attr-defined]
    )
    assert "cleanup.policy=compact" in described


@pytest.mark.servers
@pytest.mark.parametrize(
    "make", [pytest.param(KafkaBroker, marks=[pytest.mark.proof, pytest.mark.long]), TidegateBroker]
)
def test_the_registry_waits_for_a_broker_and_refuses_writes_without_one(
    make: Callable[[Path], Broker], tmp_path: Path
) -> None:
    broker = or_skip(lambda: make(tmp_path / "kafka"))
    settings = {
        "listeners": "http://127.0.0.1:0",
        "kafkastore.bootstrap.servers": broker.bootstrap_servers,
        "kafkastore.timeout.ms": "2000",
    }
    server = RegistryProcess(tmp_path, settings)
    try:
        wait_until(lambda: b"cannot be opened yet" in server.log.read_bytes(), "the registry to say that it waits")
        broker.start()
        url = server.url
        body = {"schema": '"string"'}
        assert requests.post(f"{url}/subjects/s/versions", json=body, timeout=60).json()["id"] == 1
        broker.kill()
        answer = requests.post(f"{url}/subjects/t/versions", json=body, timeout=60)
        assert answer.status_code == 500
        assert answer.json()["error_code"] in (50001, 50002, 50004)
        assert requests.get(f"{url}/schemas/ids/1", timeout=60).status_code == 200
        broker.start()
        wait_until(lambda: _registers(url, body), "writes to work again")
        assert requests.get(f"{url}/subjects", timeout=60).json() == ["s", "t"]
        assert requests.get(f"{url}/subjects/t/versions", timeout=60).json() == [1]
    finally:
        server.end(signal.SIGKILL)
        broker.stop()


def _registers(url: str, body: dict[str, Any]) -> bool:
    return requests.post(f"{url}/subjects/t/versions", json=body, timeout=60).status_code == 200


@pytest.mark.servers
def test_a_topic_that_would_lose_schemas_is_refused(
    start: Start, kafka_tools: Callable[..., str], kafka: Broker
) -> None:
    kafka_tools(
        "kafka-topics",
        *("--bootstrap-server", kafka.bootstrap_servers, "--create", "--topic", start.topic),  # type: ignore[attr-defined]
        *("--config", "cleanup.policy=delete"),
    )
    server = start()
    assert server.process.wait(60) == 1
    assert "cleanup.policy=delete" in server.log.read_text()


def test_the_server_loads_no_heavy_library() -> None:
    code = (
        "import sys, registry.server.service\n"
        "print([m for m in ('pyarrow', 'numpy', 'fastavro', 'pandas', 'grpc', 'sqlalchemy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_a_bad_listener_is_one_clear_line(tmp_path: Path) -> None:
    server = RegistryProcess(tmp_path, {"listeners": "http://127.0.0.1"})
    assert server.process.wait(60) == 1
    assert "listeners" in server.log.read_text()
    assert "http://127.0.0.1:8081" in server.log.read_text()
