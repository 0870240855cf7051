"""Assembly: which components there are, how each is built from its properties, and how ``tidegate up`` runs them together."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import json
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from tidegate.kit import service
from tidegate.kit.addresses import free_ports, host_port
from tidegate.kit.config import families_of, keys_of, nearest_key, parse, unknown_keys
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.service import Service
from tidegate.kit.supervisor import ChildSpec, ChildState, Supervisor

__all__ = ["COMPONENTS", "Component", "Plan", "State", "make_folder", "make_plan", "read_state", "serve", "up"]


@dataclass(frozen=True, slots=True)
class Component:
    """One component by import path, so that only what runs is imported: its service class, and the configuration class
    that it takes; None where it takes the properties themselves, because it hands them on to Kafka clients.

    ``many_connections`` is as ``tidegate.kit.service.run`` has it.
    """

    name: str
    service: str
    config: str | None
    many_connections: bool = False

    def build(self, properties: Mapping[str, str]) -> Service:
        """The service for these properties; raises ConfigError with everything wrong in them."""
        given = properties if self.config is None else parse(_load(self.config), properties)
        made: Service = _load(self.service)(given)
        return made


COMPONENTS: Final = {
    component.name: component
    for component in (
        Component("broker", "broker.server:BrokerServer", "broker.config:BrokerConfig"),
        Component("registry", "registry.server:RegistryServer", "registry.config:RegistryConfig"),
        Component("connect", "connect.server:ConnectServer", None),
        Component("events", "events.server:EventsServer", "events.config:EventsConfig", many_connections=True),
        Component("triggers", "events.triggers.server:TriggersServer", "events.triggers.config:TriggersConfig"),
    )
}
"""In the order in which they start; they stop in the reverse."""


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def serve(
    name: str,
    properties: Mapping[str, str],
    *,
    ready_file: Path | None,
    stop_with_stdin: bool,
    connector_files: Sequence[Path] = (),
) -> int:
    """Run one component in this process until it is told to stop; returns the exit status.

    A worker with ``connector_files``, or with a standalone worker's properties, is connect-standalone.
    """
    made = _standalone(properties, connector_files) if name == "connect" else None
    return service.run(
        made or COMPONENTS[name].build(properties),
        ready_file=ready_file,
        stop_with_stdin=stop_with_stdin,
        many_connections=COMPONENTS[name].many_connections,
    )


def _standalone(properties: Mapping[str, str], connector_files: Sequence[Path]) -> Service | None:
    from connect.standalone.server import StandaloneServer, is_standalone

    if connector_files or is_standalone(properties):
        return StandaloneServer(properties, connector_files)
    return None


LISTEN_DEFAULTS: Final = {
    "broker": "127.0.0.1:9092",
    "broker-metrics": "127.0.0.1:9404",
    "registry": "127.0.0.1:8081",
    "connect": "127.0.0.1:8083",
    "events": "127.0.0.1:8090",
    "events-tls": "127.0.0.1:8443",
    "pubsub": "127.0.0.1:7443",
    "pubsub-plain": "127.0.0.1:7080",
}
"""The faces and where they listen unless told otherwise. A face given port 0 gets a free one."""

_FACES_OF: Final = {
    "broker": ("broker", "broker-metrics"),
    "registry": ("registry",),
    "connect": ("connect",),
    "events": ("events", "events-tls", "pubsub", "pubsub-plain"),
    "triggers": (),
}


@dataclass(frozen=True)
class Plan:
    """What ``up`` will run: the properties of each component, in starting order."""

    data: Path
    properties: Mapping[str, Mapping[str, str]]
    bootstrap_servers: str


@dataclass
class State:
    """What ``up`` says of itself in DATA/run/platform.json."""

    pid: int
    started: float
    bootstrap_servers: str
    components: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        """Every face's address by name."""
        return {name: address for c in self.components.values() for name, address in c["addresses"].items()}

    @property
    def running(self) -> bool:
        """Whether that very process is alive: after a crash or a reboot its id may be another program's."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).create_time() <= self.started + 1
        return False


def make_plan(
    data: Path,
    *,
    listen: Mapping[str, str | None],
    config_file: Path | None = None,
    bootstrap_servers: str | None = None,
    without: Sequence[str] = (),
    triggers: Path | None = None,
) -> Plan:
    """Settle every address and property. Tables of the config file are named for components and hold their own keys;
    ``[kafka]`` holds client settings for the log. Triggers run where there is a folder of them."""
    tables = dict(_read_tables(config_file))
    if triggers is not None:
        tables["triggers"] = {**tables.get("triggers", {}), "triggers.dir": str(triggers.absolute())}
    unknown = [name for name in without if name not in COMPONENTS]
    if unknown:
        raise UsageError(f"--without {unknown[0]!r}: there is no such component; there are: {', '.join(COMPONENTS)}")
    wanted = [n for n in COMPONENTS if n not in without and not (n == "broker" and bootstrap_servers)]
    if "triggers.dir" not in tables.get("triggers", {}):
        wanted = [name for name in wanted if name != "triggers"]
    if "broker" not in wanted and not bootstrap_servers:
        raise UsageError("without the broker --bootstrap-servers must name a Kafka")
    given = {name: address for name, address in listen.items() if address}
    if any(text.endswith(":0") for text in given.values()):
        # Who asks for a free port does not want the companions on fixed ones either: several platforms can then run.
        given = {name: "127.0.0.1:0" for face in wanted for name in _FACES_OF[face]} | given
    listening = _settle({n: a for n, a in (LISTEN_DEFAULTS | given).items() if any(n in _FACES_OF[w] for w in wanted)})
    kafka = bootstrap_servers or listening["broker"]
    properties = {name: _properties(name, data, listening, kafka, tables) for name in wanted}
    return Plan(data, properties, kafka)


def _read_tables(path: Path | None) -> Mapping[str, Mapping[str, str]]:
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    allowed = {*COMPONENTS, "kafka"}
    for name, table in document.items():
        if name not in allowed or not isinstance(table, dict):
            raise UsageError(f"{path}: {name!r} is not a table of {', '.join(sorted(allowed))}")
    tables = {name: dict(_flat(table)) for name, table in document.items()}
    for name, given in tables.items():
        _refuse_unknown(path, name, given)
    return tables


def _refuse_unknown(path: Path, name: str, given: Mapping[str, str]) -> None:
    """A misspelt key would change nothing and say nothing. Where any Kafka client's key may stand, all are let through."""
    component = COMPONENTS.get(name)
    if component is None or component.config is None:
        return
    cls = _load(component.config)
    unknown = unknown_keys(given, keys_of(cls), [prefix for prefix, _ in families_of(cls) if prefix])
    if unknown:
        nearest = nearest_key(unknown[0], keys_of(cls))
        hint = f"; did you mean {nearest}?" if nearest else ""
        raise UsageError(f"{path}: [{name}] has no key {unknown[0]}{hint}")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys, as TOML nests them, back to one level."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield prefix + name, "true" if value else "false"
        else:
            yield prefix + name, ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _settle(listening: Mapping[str, str]) -> dict[str, str]:
    """Give every face that asked for port 0 a free port now, so that all can know all from the start."""
    open_ones = [name for name, address in listening.items() if host_port(address)[1] == 0]
    ports = free_ports([host_port(listening[name])[0] for name in open_ones])
    settled = {name: f"{host_port(listening[name])[0]}:{port}" for name, port in zip(open_ones, ports, strict=True)}
    return dict(listening) | settled


def _properties(
    name: str, data: Path, listening: Mapping[str, str], kafka: str, tables: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    client = tables.get("kafka", {})
    registry = f"http://{listening['registry']}" if "registry" in listening else "http://127.0.0.1:8081"
    made: dict[str, str] = {}
    if name == "broker":
        made = {
            "listeners": f"PLAINTEXT://{listening['broker']}",
            "log.dirs": str(data / "broker"),
            "metrics.listen": listening["broker-metrics"],
            "group.initial.rebalance.delay.ms": "0",  # as in Kafka's own sample properties for one machine
            "offsets.topic.num.partitions": "8",
            "transaction.state.log.num.partitions": "8",  # the registry's claim on its log makes them at the first start
        }
    elif name == "registry":
        made = {"listeners": f"http://{listening['registry']}", "kafkastore.bootstrap.servers": kafka}
        if "broker" in listening:  # one broker: one replica, as intended and without a warning
            made["kafkastore.topic.replication.factor"] = "1"
        made |= {f"kafkastore.{key}": value for key, value in client.items()}
    elif name == "connect":
        made = {
            "listeners": f"http://{listening['connect']}",
            "bootstrap.servers": kafka,
            "group.id": "connect-cluster",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "key.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "key.converter.schema.registry.url": registry,
            "value.converter.schema.registry.url": registry,
            "offset.flush.interval.ms": "5000",
            "replication.factor.fit": "true",
        }
        if "broker" in listening:
            made |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
        made.update(client)
    elif name == "events":
        made = {
            "http.listen": listening["events"],
            "https.listen": listening["events-tls"],
            "pubsub.listen": listening["pubsub"],
            "pubsub.plain.listen": listening["pubsub-plain"],
            "bootstrap.servers": kafka,
            "schema.registry.url": registry,
            "data.dir": str(data / "events"),
        }
        made |= {f"kafka.{key}": value for key, value in client.items()}
    elif name == "triggers":
        made = {
            "bootstrap.servers": kafka,
            "schema.registry.url": registry,
            "events.url": f"http://{listening['events']}" if "events" in listening else "http://127.0.0.1:8090",
            "data.dir": str(data / "triggers"),
        }
        made |= {f"kafka.{key}": value for key, value in client.items()}
    return {**made, **tables.get(name, {})}


def read_state(data: Path) -> State | None:
    """What the platform that runs, or last ran, on ``data`` said of itself; None where none ever did."""
    try:
        return State(**json.loads((data / "run" / "platform.json").read_text()))
    except (OSError, json.JSONDecodeError, TypeError):
        return None


def up(plan: Plan, *, on_ready: Callable[[State], None]) -> int:
    """Run the planned components until SIGTERM or SIGINT; returns the exit status.

    ``on_ready`` is called once all answer. Raises TidegateError when one cannot start or another ``up`` has the data.
    """
    run = make_folder(plan.data / "run")
    with _locked(run / "lock", plan.data):
        return asyncio.run(_up(plan, run, on_ready))


def make_folder(path: Path) -> Path:
    """The folder, made where it is missing; raises UsageError where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def _locked(path: Path, data: Path) -> Iterator[IO[str]]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another tidegate is up on {data}: stop it with `tidegate down --data {data}`") from None
        yield lock


async def _up(plan: Plan, run: Path, on_ready: Callable[[State], None]) -> int:
    state = State(os.getpid(), time.time(), plan.bootstrap_servers)

    def note(children: Sequence[ChildState]) -> None:
        for child in children:
            state.components[child.spec.name] = {
                "pid": child.pid,
                "ready": child.ready,
                "restarts": child.restarts,
                "addresses": child.addresses,
            }
        _write_json(run / "platform.json", vars(state))

    children = [_child(name, properties, run) for name, properties in plan.properties.items()]
    supervisor = Supervisor(children, run_dir=run, log_dir=plan.data / "logs", on_change=note)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    stopped = asyncio.create_task(stopping.wait())
    starting = asyncio.create_task(supervisor.start())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            on_ready(state)
            await stopped
        return 0
    except TidegateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        starting.cancel()
        stopped.cancel()
        await supervisor.stop()


def _child(name: str, properties: Mapping[str, str], run: Path) -> ChildSpec:
    import javaproperties

    path = run / f"{name}.properties"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        javaproperties.dump(properties, file, timestamp=False)
    command = [sys.executable, "-m", "tidegate.cli", "serve", name, str(path), "--stop-with-stdin"]
    return ChildSpec(name, command)


def _write_json(path: Path, value: Any) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value))
    temporary.replace(path)
