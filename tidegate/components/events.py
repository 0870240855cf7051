"""The events service."""

from __future__ import annotations

from typing import Final

from tidegate.components import registry
from tidegate.components.component import Assembly, Component, Face
from tidegate.kit.users import INTERNAL_USER

__all__ = ["EVENTS", "REST"]

REST: Final = Face("events", "127.0.0.1:8090", is_http=True)
TLS: Final = Face("events-tls", "127.0.0.1:8443")
PUBSUB: Final = Face("pubsub", "127.0.0.1:7443")
PUBSUB_PLAIN: Final = Face("pubsub-plain", "127.0.0.1:7080")


def _properties(assembly: Assembly) -> dict[str, str]:
    made = {
        "http.listen": assembly.listening[REST.name],
        "https.listen": assembly.listening[TLS.name],
        "pubsub.listen": assembly.listening[PUBSUB.name],
        "pubsub.plain.listen": assembly.listening[PUBSUB_PLAIN.name],
        "bootstrap.servers": assembly.bootstrap_servers,
        "schema.registry.url": assembly.url(registry.REST),
        "data.dir": str(assembly.data / "events"),
    }
    made |= {f"registry.client.{key}": value for key, value in assembly.registry_client.items()}
    if (security := assembly.security) is not None:
        made |= {
            "users.file": str(security.users_file),
            "tls.dir": str(security.ca.parent),
            "http.tls": "true",
            "pubsub.plain.listen": "",  # a session sent there could be read on its way: whoever wants it says so
            "events.user": INTERNAL_USER,
            "events.password": security.internal_password,
            "events.client.id": INTERNAL_USER,
            "events.client.secret": security.internal_password,
        }
    return made | {f"kafka.{key}": value for key, value in assembly.kafka_client.items()}


EVENTS: Final = Component(
    "events",
    "events.server.service:EventsServer",
    "events.config:EventsConfig",
    (REST, TLS, PUBSUB, PUBSUB_PLAIN),
    _properties,
    many_connections=True,
)
