"""The worker properties that a task host of an owner gets: its owner's logins, and none of the worker's secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from connect.api import ConnectError, parse
from connect.config.connector import SourceConfig
from connect.config.worker import WorkerConfig
from connect.errors import Forbidden
from connect.herder.herder import Herder
from connect.task.control import TaskControl
from connect.task.parts import TaskParts
from connect.task.sources.clients import SourceEnds
from connect.worker.owners import WORKER, Owners
from tidegate.kit.errors import ConfigError
from tidegate.kit.users import INTERNAL_USER, PlatformUser, Right, Users, write_users

SECRET = "the-worker's-own"


def worker(folder: Path, **more: str) -> dict[str, str]:
    users = [
        PlatformUser("alice", rights=(Right.parse("read topic a"), Right.parse("read file /srv/*"))),
        PlatformUser("frozen", active=False),
        PlatformUser(INTERNAL_USER, rights=(Right.parse("admin"),)),
    ]
    write_users(folder / "users.json", Users(users).with_delegation_key())
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="w" password="{SECRET}";'
    return {
        "bootstrap.servers": "127.0.0.1:9092",
        "connector.rights": "owner",
        "users.file": str(folder / "users.json"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login,
        "producer.sasl.jaas.config": login,
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.location": f"/{SECRET}.pem",
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": f"w:{SECRET}",
        "value.converter.basic.auth.user.info": f"w:{SECRET}",
        "listeners.https.ssl.keystore.location": f"/{SECRET}.pem",
        **more,
    }


def test_an_owners_host_has_the_owners_logins_and_no_secret_of_the_worker(tmp_path: Path) -> None:
    setup = Owners(worker(tmp_path)).host_setup("alice")
    assert SECRET not in str(setup) and str(tmp_path / "users.json") not in setup.worker.values()
    assert 'username="tidegate/alice"' in setup.worker["sasl.jaas.config"]
    assert setup.worker["basic.auth.user.info"].startswith("tidegate/alice:")
    assert setup.worker["security.protocol"] == "SASL_SSL" and setup.worker["ssl.truststore.location"] == "/ca.pem"
    assert setup.files == {
        "user": "alice",
        "rights": ["read file /srv/*"],
        "readable": ["/ca.pem"],
        "hidden": [str(tmp_path)],
    }


def test_connectors_of_nobody_and_of_the_platform_itself_are_the_workers(tmp_path: Path) -> None:
    owners = Owners(worker(tmp_path))
    assert owners.of("") == owners.of(INTERNAL_USER) == WORKER and owners.of("alice") == "alice"
    assert owners.properties("")["basic.auth.user.info"] == f"w:{SECRET}"
    assert owners.host_setup(WORKER).files is None


def test_without_rights_of_owners_every_connector_is_the_workers(tmp_path: Path) -> None:
    owners = Owners(worker(tmp_path, **{"connector.rights": "worker"}))
    assert owners.of("alice") == WORKER
    owners.require("nobody")


@pytest.mark.parametrize("owner", ["frozen", "nobody"])
def test_an_owner_who_may_not_log_in_has_no_properties(tmp_path: Path, owner: str) -> None:
    with pytest.raises(Forbidden, match=f"belongs to {owner}, who may not log in"):
        Owners(worker(tmp_path)).properties(owner)


def test_rights_of_owners_need_a_file_of_users(tmp_path: Path) -> None:
    properties = worker(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere"):
        Owners({**properties, "users.file": str(tmp_path / "nowhere")})
    del properties["users.file"]
    with pytest.raises(ConfigError, match=r"connector\.rights=owner needs users\.file"):
        Owners(properties)


def test_an_exactly_once_source_of_an_owner_needs_a_topic_of_its_own_for_positions() -> None:
    """Before anything is connected: the owner could not write to the worker's topic in a transaction."""
    worker = {
        "bootstrap.servers": "127.0.0.1:9",
        "connector.rights": "owner",
        "exactly.once.source.support": "enabled",
        "offset.storage.topic": "connect-offsets",
    }
    config = {"name": "orders", "connector.class": "x"}
    nothing: Any = None
    parts = TaskParts(
        "orders", 0, nothing, None, config, config, worker, nothing, TaskControl(), [], *[lambda *_: None] * 5
    )
    with ExitStack() as made, pytest.raises(ConnectError, match=r"to connect-offsets.*set offsets\.storage\.topic"):
        SourceEnds(parts, parse(WorkerConfig, worker), parse(SourceConfig, config), made)


class _Offsets:
    def __init__(self) -> None:
        self.written: list[tuple[bytes, Mapping[str, Any]]] = []

    async def put_all(self, positions: list[tuple[bytes, Mapping[str, Any]]]) -> None:
        self.written += positions


def test_a_task_has_the_worker_write_positions_of_its_own_connector_only() -> None:
    herder, offsets = Herder.__new__(Herder), _Offsets()
    herder.offsets = offsets  # type: ignore[assignment]
    asyncio.run(herder.keep_offsets("a", [('["a",{"file":"x"}]', {"position": 1})]))
    assert offsets.written == [(b'["a",{"file":"x"}]', {"position": 1})]
    for key in ('["b",{"file":"x"}]', "[]", "{", '"a"', "1"):
        with pytest.raises(Forbidden, match="a task of a may write positions of a only"):
            asyncio.run(herder.keep_offsets("a", [(key, {"position": 1})]))
    assert len(offsets.written) == 1
