"""The console."""

from __future__ import annotations

from typing import Final

from tidegate.components import broker, connect, events, registry
from tidegate.components.component import Assembly, Component, Face
from tidegate.kit.users import INTERNAL_USER
from tidegate.security import connect_token

__all__ = ["CONSOLE", "PAGES"]

PAGES: Final = Face("console", "127.0.0.1:8080", is_http=True)


def _properties(assembly: Assembly) -> dict[str, str]:
    def url(face: Face) -> str:
        """Nothing for a component that is left out, so that its pages are."""
        return assembly.url(face) if face.name in assembly.listening else ""

    made = {
        "http.listen": assembly.listening[PAGES.name],
        "bootstrap.servers": assembly.bootstrap_servers,
        "connect.url": url(connect.REST),
        "schema.registry.url": url(registry.REST),
        "events.url": url(events.REST),
        "broker.metrics.url": f"{address}/metrics" if (address := url(broker.METRICS)) else "",
        "data.dir": str(assembly.data),
    }
    if (security := assembly.security) is not None:
        made |= security.tls_server
        made |= {
            "events.user": "",  # each user's own
            "ssl.keystore.reload": "true",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(security.ca),
            "users.file": str(security.users_file),
            "monitor.user": INTERNAL_USER,
            "monitor.password": security.internal_password,
        }
        if not assembly.has_broker:  # a Kafka with users of its own
            made["kafka.client.login"] = "configured"
    elif assembly.connect_users is not None:
        made |= {
            "users.file": str(assembly.connect_users),
            "monitor.user": INTERNAL_USER,
            "monitor.password": connect_token(assembly.data) or "",
        }
    return made | {f"kafka.{key}": value for key, value in assembly.kafka_client.items()}


CONSOLE: Final = Component(
    "console", "tidegate.console.server:ConsoleServer", "tidegate.console.config:ConsoleConfig", (PAGES,), _properties
)
