"""Confluent's serializers for Python, of each schema type, over our registry and our broker."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.servers.tidegate_broker import TidegateBroker

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
WIDER = (
    '{"type":"record","name":"Order","fields":['
    '{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}'
)
VALUE = {"id": 7, "note": "hällo"}


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as made:
        yield made


@pytest.mark.servers
def test_serializers_round_trip_over_our_broker(client: SchemaRegistryClient, tidegate_broker: TidegateBroker) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from google.type.date_pb2 import Date

    text = json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Order",
            "type": "object",
            "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["id"],
        }
    )
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    kinds: list[tuple[str, Any, Any, Any]] = [
        ("avro", AvroSerializer(client, WIDER), AvroDeserializer(client), VALUE),
        ("json", JSONSerializer(text, client), JSONDeserializer(text), VALUE),
        ("proto", ProtobufSerializer(Date, client), ProtobufDeserializer(Date), Date(year=2026, month=11, day=21)),
    ]
    producer = Producer({"bootstrap.servers": tidegate_broker.bootstrap_servers})
    for kind, serializer, _, value in kinds:
        context = SerializationContext(f"{topic}-{kind}", MessageField.VALUE)
        producer.produce(f"{topic}-{kind}", serializer(value, context))
    assert producer.flush(60) == 0
    settings = {
        "bootstrap.servers": tidegate_broker.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([f"{topic}-{kind}" for kind, *_ in kinds])
    received: dict[str, bytes] = {}
    while len(received) < len(kinds):
        (message,) = consumer.consume(1, 60) or [None]
        assert message is not None and message.error() is None
        received[message.topic()] = message.value()
    consumer.close()
    for kind, _, deserializer, value in kinds:
        written = received[f"{topic}-{kind}"]
        assert written[0] == 0
        assert deserializer(written, SerializationContext(f"{topic}-{kind}", MessageField.VALUE)) == value
    assert client.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]
    types = {name: client.get_latest_version(f"{topic}-{name}-value").schema.schema_type for name in ("json", "proto")}
    assert types == {"json": "JSON", "proto": "PROTOBUF"}


def test_the_latest_version_is_what_serializers_can_be_told_to_use(client: SchemaRegistryClient) -> None:
    client.register_schema("orders-value", Schema(WIDER, "AVRO"))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    serializer = AvroSerializer(client, ORDER, conf=settings)
    written = serializer(VALUE, SerializationContext("orders", MessageField.VALUE))
    assert written is not None
    assert AvroDeserializer(client)(written, SerializationContext("orders", MessageField.VALUE)) == VALUE
    strict = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError, match="40403"):
        strict(VALUE, SerializationContext("orders", MessageField.VALUE))
