"""Two registries over one real log, used by Confluent's client."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from cryptography.x509.oid import NameOID

from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.certificates import Authority
from tests.support.registries import RegistryProcess

pytestmark = pytest.mark.servers

KINDS = ("int", "long", "float", "bytes")


@contextmanager
def running(directory: Path, settings: list[dict[str, str]]) -> Iterator[list[RegistryProcess]]:
    registries = [RegistryProcess(directory, config) for config in settings]
    try:
        yield registries
    finally:
        for registry in registries:
            registry.end(signal.SIGKILL)


def shared(broker: KafkaBroker | TidegateBroker, **more: str) -> dict[str, str]:
    name = uuid.uuid4().hex[:8]
    return {
        "kafkastore.bootstrap.servers": broker.bootstrap_servers,
        "kafkastore.topic": f"_schemas-{name}",
        "schema.registry.group.id": name,
        **more,
    }


@pytest.mark.parametrize("kafka", ["apache_kafka", "tidegate_broker"])
def test_the_other_goes_on_when_the_one_that_writes_stops(
    request: pytest.FixtureRequest, kafka: str, tmp_path: Path
) -> None:
    common = shared(request.getfixturevalue(kafka))
    ports = free_ports(2)
    settings = [{**common, "listeners": f"http://127.0.0.1:{port}"} for port in ports]

    with running(tmp_path, settings) as registries, ExitStack() as stack:
        clients = [stack.enter_context(SchemaRegistryClient({"url": registry.url})) for registry in registries]
        ids = [
            clients[n % 2].register_schema(f"s{n}", Schema(json.dumps(kind), "AVRO")) for n, kind in enumerate(KINDS)
        ]
        assert ids == [1, 2, 3, 4]
        # A registry that did not write reads the log a moment later.
        everything = [["s0", "s1", "s2", "s3"]] * 2
        wait_until(lambda: [client.get_subjects() for client in clients] == everything, "both know every subject")
        log = registries[0].log.read_text()
        writer = next(
            n for n, registry in enumerate(registries) if re.search(f'"url": "{registry.url}", "me": true', log)
        )
        registries[writer].end()
        assert clients[1 - writer].register_schema("t", Schema('"string"', "AVRO")) == 5
        assert "cannot be fenced" not in registries[0].log.read_text()


def test_writes_are_passed_on_over_https(tidegate_broker: TidegateBroker, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = {
        "ssl.keystore.location": str(authority.issue((NameOID.COMMON_NAME, "registry"))),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.truststore.type": "PEM",
        "inter.instance.protocol": "https",
    }
    common = shared(tidegate_broker, listeners="https://127.0.0.1:0", **tls)
    with running(tmp_path, [common]) as (writes,):
        wait_until(lambda: '"me": true' in writes.log.read_text(), "the first to be elected")
        with running(tmp_path, [{**common, "leader.eligibility": "false"}]) as (follows,):
            with SchemaRegistryClient({"url": follows.url, "ssl.ca.location": str(authority.certificate)}) as client:
                assert client.register_schema("s", Schema(json.dumps("int"), "AVRO")) == 1
                wait_until(lambda: client.get_subjects() == ["s"], "the follower to have read the log")
                assert client.get_schema(1).schema_str == '"int"'
