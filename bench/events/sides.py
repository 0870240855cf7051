"""An events server under measurement: a process of its own on one core, over our broker and our registry."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import requests

from bench.broker.sides import our_broker
from bench.registry.sides import ours as our_registry
from tests.servers.process import ServerProcess, free_ports
from tests.support.events import ORDER_SHIPPED, PASSWORD, USER
from events.model.definitions import EventDefinition, to_avro_text
from tidegate.kit.certificates import CA_FILE

__all__ = ["EventsSide", "events_server"]


@dataclass
class EventsSide:
    """A running events server with ``definition`` defined."""

    url: str
    https_url: str
    pubsub: str
    pubsub_tls: str
    ca: Path
    """The certificate that clients of the TLS addresses trust."""
    bootstrap: str
    pid: int
    definition: EventDefinition

    def cpu_s(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        """Memory of its own (PSS: shared libraries counted in part)."""
        return psutil.Process(self.pid).memory_full_info().pss / 1e6

    def token(self) -> str:
        form = {
            "grant_type": "password",
            "client_id": "tidegate",
            "client_secret": PASSWORD,
            "username": USER,
            "password": PASSWORD,
        }
        answer = requests.post(f"{self.url}/services/oauth2/token", data=form, timeout=10)
        return str(answer.json()["access_token"])


@contextlib.contextmanager
def events_server(folder: Path, **settings: str) -> Iterator[EventsSide]:
    """On the machine's last core; ``settings`` (``_`` for ``.``) are the events server's."""
    with our_broker(folder / "broker") as broker, our_registry(folder, broker.bootstrap, "_schemas") as registry:
        http, https, pubsub, plain = free_ports(4)
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "schema.registry.url": registry.url,
            "data.dir": str(folder / "events"),
            "http.listen": f"127.0.0.1:{http}",
            "https.listen": f"127.0.0.1:{https}",
            "pubsub.listen": f"127.0.0.1:{pubsub}",
            "pubsub.plain.listen": f"127.0.0.1:{plain}",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        file = folder / "events.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        url = f"http://127.0.0.1:{http}"
        process = ServerProcess(
            "the events server",
            [sys.executable, "-m", "tidegate.cli", "serve", "events", str(file), "--log-level", "WARNING"],
            log=folder / "events.log",
            ready=lambda: _answers(f"{url}/services/data"),
            environment={"PYTHONDONTWRITEBYTECODE": ""},
        )
        process.start()
        try:
            psutil.Process(process.pid).cpu_affinity([(os.cpu_count() or 1) - 1])
            side = EventsSide(
                url,
                f"https://127.0.0.1:{https}",
                f"127.0.0.1:{plain}",
                f"127.0.0.1:{pubsub}",
                folder / "events" / "tls" / CA_FILE,
                broker.bootstrap,
                process.pid,
                replace(ORDER_SHIPPED),
            )
            answer = requests.post(
                f"{url}/tidegate/v1/events",
                data=to_avro_text(side.definition),
                headers={"Authorization": f"Bearer {side.token()}", "Content-Type": "application/json"},
                timeout=20,
            )
            answer.raise_for_status()
            time.sleep(0.5)
            yield side
        finally:
            process.stop()


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).ok
    except requests.RequestException:
        return False
