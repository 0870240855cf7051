"""The demo's clients: Connect's REST, topic offsets, simple-salesforce and a Pub/Sub subscriber."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import requests

from tidegate.kit.errors import TidegateError
from tidegate.kit.users import INTERNAL_USER

__all__ = ["Connect", "DemoFailed", "Publisher", "connector_json", "records_held", "until"]

TIMEOUT_S = 600.0
"""Far more than anything takes. A wait ends earlier if what it waits for has failed."""


class DemoFailed(TidegateError):
    """The platform did not behave as the demo expects."""


def connector_json(name: str, **values: str) -> dict[str, Any]:
    """A connector of the demo with its placeholders filled in."""
    text = resources.files("tidegate.demo").joinpath("connectors", f"{name}.json").read_text()
    posted: dict[str, Any] = json.loads(Template(text).safe_substitute(values))
    for optional in ("connection.user", "connection.password"):
        if posted["config"].get(optional) == "":
            del posted["config"][optional]
    return posted


def until(
    what: str, condition: Callable[[], bool], *, check: Callable[[], None] = lambda: None, every_s: float = 0.1
) -> None:
    """Wait for a condition. Raises DemoFailed that names it. ``check`` may raise earlier."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        check()
        if time.monotonic() > deadline:
            raise DemoFailed(f"{what}: not after {TIMEOUT_S:.0f} s")
        time.sleep(every_s)


class Connect:
    """The part of Kafka Connect's REST API that the demo uses."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url, self._session = url, requests.Session()
        if token is not None:
            self._session.auth = (INTERNAL_USER, token)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._session.request(method, self._url + path, json=body, timeout=30)
        if not answer.ok:
            raise DemoFailed(f"{method} {path}: {answer.json().get('message', answer.text)}")
        return answer.json() if answer.content else None

    def create(self, connector: Mapping[str, Any]) -> None:
        """Post a connector and wait until it and its tasks run."""
        self._call("POST", "/connectors", connector)
        self._wait(connector["name"], "RUNNING")

    def pause(self, name: str) -> None:
        """Wait until the connector and its tasks are paused."""
        self._call("PUT", f"/connectors/{name}/pause")
        self._wait(name, "PAUSED")

    def resume(self, name: str) -> None:
        """Wait until the connector and its tasks run."""
        self._call("PUT", f"/connectors/{name}/resume")
        self._wait(name, "RUNNING")

    def _wait(self, name: str, state: str) -> None:
        until(f"{name} {state}", lambda: self._is(name, state), check=lambda: self.require_healthy(name))

    def _is(self, name: str, state: str) -> bool:
        answer = self._session.get(f"{self._url}/connectors/{name}/status", timeout=30)
        if answer.status_code == 404:
            return False
        status = answer.json()
        return bool(status["tasks"]) and all(task["state"] == state for task in status["tasks"])

    def require_healthy(self, name: str) -> None:
        """Raise DemoFailed with the trace if the connector or a task has failed."""
        answer = self._session.get(f"{self._url}/connectors/{name}/status", timeout=30)
        if answer.status_code == 404:
            return
        status = answer.json()
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                raise DemoFailed(f"connector {name} failed: {part.get('trace', '').strip()}")

    def offsets(self, name: str) -> list[dict[str, Any]]:
        offsets: list[dict[str, Any]] = self._call("GET", f"/connectors/{name}/offsets")["offsets"]
        return offsets

    def sink_position(self, name: str) -> int:
        """Records a sink has committed, over all its partitions."""
        return sum(entry["offset"]["kafka_offset"] for entry in self.offsets(name))

    def progress(self, name: str) -> list[dict[str, Any]]:
        tasks: list[dict[str, Any]] = self._call("GET", f"/tidegate/v1/connectors/{name}/progress")["tasks"]
        return tasks


def records_held(bootstrap_servers: str, topics: Sequence[str]) -> dict[str, int]:
    """Records in each topic by its first and end offsets, over its partitions; 0 for one that does not exist."""
    from broker.client import Admin, ClientConfig, TopicPartition

    async def ask() -> dict[str, int]:
        async with Admin(ClientConfig(bootstrap_servers)) as admin:
            there = [name for name in topics if name in await admin.list_topics()]
            described = await admin.describe_topics(there)
            partitions = [TopicPartition(name, p.partition) for name in there for p in described[name].partitions]
            starts, ends = await admin.beginning_offsets(partitions), await admin.end_offsets(partitions)
        counts = dict.fromkeys(topics, 0)
        for partition, end in ends.items():
            counts[partition.topic] += end - starts[partition]
        return counts

    return asyncio.run(ask())


class Publisher:
    """Publishes events with an unmodified simple-salesforce, 200 a call as the collections API takes them."""

    def __init__(self, url: str, ca: str, user: str, password: str) -> None:
        from simple_salesforce import Salesforce

        session = requests.Session()
        session.verify, session.trust_env = ca, False  # the user's REQUESTS_CA_BUNDLE would override it
        form = {"grant_type": "password", "username": user, "password": password}
        form |= {"client_id": "tidegate", "client_secret": password}
        login = session.post(f"{url}/services/oauth2/token", data=form, timeout=30).json()
        self._salesforce = Salesforce(session_id=login["access_token"], instance_url=url, session=session)

    def publish(self, event: str, rows: Sequence[Mapping[str, Any]], on_published: Callable[[int], None]) -> int:
        """Publish every row; returns how many the service accepted. Raises DemoFailed at the first it refused."""
        accepted = 0
        for start in range(0, len(rows), 200):
            records = [{"attributes": {"type": event}, **row} for row in rows[start : start + 200]]
            body = json.dumps({"allOrNone": False, "records": records})
            results = self._salesforce.restful("composite/sobjects", method="POST", data=body)
            for result in results:
                if not result["success"]:
                    raise DemoFailed(f"{event} was refused: {result['errors']}")
            accepted += len(results)
            on_published(accepted)
        return accepted
