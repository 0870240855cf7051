"""The worker properties that a task host of an owner gets: its owner's logins, and none of the worker's secrets."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from connect.api import ConnectError, parse
from connect.config.connector import SourceConfig
from connect.config.worker import WorkerConfig
from connect.errors import Forbidden
from connect.herder.herder import Herder
from connect.task.clients import TaskClients
from connect.task.control import TaskControl
from connect.task.measures import TaskMeasures
from connect.task.parts import TaskParts
from connect.task.sources.clients import SourceEnds
from connect.task.sources.deliveries import AtLeastOnce
from connect.task.sources.offsets import OffsetKeys, SubmittedBatches
from connect.task.sources.worker_offsets import KeptOffsets
from connect.worker.host.tasks import HostedTask, TaskSetup
from connect.worker.link import ThreadedLink, raised
from connect.worker.owners import WORKER, Owners
from tests.servers.process import wait_until
from tidegate.kit.errors import ConfigError, RetriableError
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


def test_the_whole_data_folder_of_a_platform_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "security").mkdir()
    setup = Owners(worker(tmp_path / "security")).host_setup("alice")
    assert setup.files is not None and setup.files["hidden"] == [str(tmp_path)]


def test_an_owners_host_has_no_variable_of_the_worker_but_those_that_connectors_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "TIDEGATE_PASSWORD", "SHOP_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("LANG", "C.UTF-8")
    providers = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "SHOP_.*",
    }
    environment = Owners(worker(tmp_path, **providers)).host_setup("alice").environment
    assert environment is not None and environment["LANG"] == "C.UTF-8" and environment["PGPASSFILE"] == "/dev/null"
    assert [name for name, value in environment.items() if value == SECRET] == ["SHOP_TOKEN"]


def test_the_login_of_an_owner_goes_to_no_other_cluster(tmp_path: Path) -> None:
    properties = Owners(worker(tmp_path)).properties("alice")
    here = TaskClients(properties, "orders", 0, {})
    assert "tidegate/alice" in here.producer().properties["sasl.jaas.config"]
    elsewhere = TaskClients(
        properties,
        "orders",
        0,
        {
            f"{kind}.override.{key}": value
            for kind in ("producer", "consumer", "admin")
            for key, value in {"bootstrap.servers": "127.0.0.1:1", "sasl.mechanism": "PLAIN"}.items()
        },
    )
    for config in (elsewhere.producer(), elsewhere.consumer(), elsewhere.admin(), elsewhere.dead_letter_producer()):
        assert config.bootstrap_servers == "127.0.0.1:1" and "tidegate/alice" not in str(config.properties)


def test_another_user_of_the_same_name_has_another_login() -> None:
    users = Users([PlatformUser("alice", id="1")]).with_delegation_key()
    again = users.without("alice").having(PlatformUser("alice", id="2"))
    assert users.delegate_password("alice") != again.delegate_password("alice")


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
        "orders", 0, nothing, None, config, config, worker, nothing, TaskControl(), [], *[lambda *_: None] * 6
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


class _Control(TaskControl):
    """Gives a task that is told to stop no time."""

    def time_left_s(self, longest_s: float) -> float:
        return min(0.0, longest_s)


class _Silent:
    """A link whose worker waits for a log that is away."""

    def __init__(self) -> None:
        self.asked: list[Future[Any]] = []

    def submit(self, _name: str, /, **_: Any) -> Future[Any]:
        self.asked.append(Future())
        return self.asked[-1]


def test_a_task_that_is_to_stop_does_not_wait_for_the_worker_to_write_its_positions() -> None:
    task, link = HostedTask.__new__(HostedTask), _Silent()
    task._setup = TaskSetup("a", 0, 1, {}, {}, [], {})
    task._link, task._control = link, _Control()  # type: ignore[assignment]
    outcome: Future[None] = Future()

    def keep() -> None:
        try:
            task._keep_offsets({b'["a",{}]': {"position": 1}})
            outcome.set_result(None)
        except RetriableError as error:
            outcome.set_exception(error)

    threading.Thread(target=keep, daemon=True).start()
    wait_until(lambda: bool(link.asked), "the question")
    task._control.stop(0)
    with pytest.raises(RetriableError, match="before the task had to stop"):
        outcome.result(60)
    assert link.asked[0].cancelled()


def test_an_answer_of_the_worker_that_comes_too_late_is_dropped() -> None:
    host, worker_end = socket.socketpair()
    link = ThreadedLink(host, {})
    serving = threading.Thread(target=link.serve, daemon=True)
    serving.start()
    with worker_end, worker_end.makefile("rwb") as lines:
        late, timely = link.submit("first"), link.submit("second")
        numbers = [json.loads(lines.readline())["id"] for _ in range(2)]
        assert late.cancel()
        for number in numbers:
            lines.write(json.dumps({"id": number, "result": number}).encode() + b"\n")
        lines.flush()
        assert timely.result(60) == numbers[1] and late.cancelled() and serving.is_alive()
    serving.join(60)
    host.close()


def test_positions_that_the_worker_cannot_write_now_are_written_with_the_next_ones() -> None:
    refusals, written = [1], list[Mapping[bytes, Mapping[str, Any]]]()

    def keep(offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        if refusals:
            refusals.pop()
            raise raised({"error": "the log is away", "status": 500, "retriable": True})
        written.append(dict(offsets))

    told: list[Any] = []
    submitted = SubmittedBatches(OffsetKeys("a", {}))
    control, measures = TaskControl(), TaskMeasures()
    delivery = AtLeastOnce(
        "a", submitted, KeptOffsets(keep), told.extend, control, interval_ms=1, timeout_ms=1, measures=measures
    )
    done: Future[None] = Future()
    done.set_result(None)
    submitted.add({"file": "x"}, {"position": 1}, [done])
    delivery.commit()
    assert written == [] == told
    submitted.add({"file": "y"}, {"position": 2}, [done])
    delivery.commit()
    assert [list(offsets.values()) for offsets in written] == [[{"position": 1}, {"position": 2}]]
    assert told == [({"file": "x"}, {"position": 1}), ({"file": "y"}, {"position": 2})]
