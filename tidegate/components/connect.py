"""The Connect worker."""

from __future__ import annotations

from typing import Final

from tidegate.components import registry
from tidegate.components.component import Assembly, Component, Face

__all__ = ["CONNECT", "REST"]

REST: Final = Face("connect", "127.0.0.1:8083", is_http=True)


def _properties(assembly: Assembly) -> dict[str, str]:
    schemas = assembly.url(registry.REST)
    made = {
        "listeners": assembly.url(REST),
        "bootstrap.servers": assembly.bootstrap_servers,
        "group.id": "connect-cluster",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "key.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "schema.registry.url": schemas,
        # A NULL stays one where the column has a default: otherwise a copy of a table differs from it.
        "key.converter.ignore.default.for.nullables": "true",
        "value.converter.ignore.default.for.nullables": "true",
        "offset.flush.interval.ms": "5000",
        "replication.factor.fit": "true",
        # Triggers, events and Spark write in transactions: what they undo is nothing for a sink.
        "consumer.isolation.level": "read_committed",
    }
    made |= assembly.registry_client
    if assembly.security is not None:
        tls = {
            **assembly.security.tls_server,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(assembly.security.ca),
        }
        made |= {f"listeners.https.{key}": value for key, value in tls.items()}
        made |= {"ssl.keystore.reload": "true", "users.file": str(assembly.security.users_file)}
        if assembly.has_broker:  # which, as the registry, reads the same users
            made |= {"connector.rights": "owner"}
    elif assembly.connect_users is not None:
        made |= {"users.file": str(assembly.connect_users)}
    if assembly.has_broker:
        made |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return {**made, **assembly.kafka_client}


CONNECT: Final = Component(
    "connect",
    "connect.server.distributed:ConnectServer",
    None,
    (REST,),
    _properties,
    listeners="connect.config.worker:WorkerConfig",
)
