"""How ``tidegate up`` plans the components (``tidegate.components``) and runs them together, and how a component runs
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import stat
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tidegate.components import COMPONENTS, Assembly
from tidegate.kit import service
from tidegate.kit.addresses import free_ports, host_port, is_loopback
from tidegate.kit.config import families_of, keys_of, nearest_key, nearest_name, unknown_keys
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.files import make_folder, write_whole
from tidegate.kit.other_users import other_users
from tidegate.kit.service import Service
from tidegate.kit.supervisor import DEFAULT_WATCHDOG_S, LOG_BACKUPS, LOG_MAX_BYTES, ChildSpec, ChildState, Supervisor
from tidegate.security import find_security, make_connect_token
from tidegate.state import State

__all__ = ["Plan", "Supervision", "make_plan", "serve", "up"]

_SHORTEST_WATCHDOG_S: Final = 10
_SHORTEST_LOG: Final = 1 << 20


def serve(
    name: str,
    properties: Mapping[str, str],
    *,
    ready_file: Path | None,
    stop_with_stdin: bool,
    connector_files: Sequence[Path] = (),
) -> int:
    """Run one component in this process until it is stopped. Returns the exit status.

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
    from connect.server.standalone.server import StandaloneServer, is_standalone

    if connector_files or is_standalone(properties):
        return StandaloneServer(properties, connector_files)
    return None


@dataclass(frozen=True)
class Supervision:
    """The table ``[supervisor]`` of a ``tidegate.toml``."""

    watchdog_s: float = DEFAULT_WATCHDOG_S
    log_max_bytes: int = LOG_MAX_BYTES
    log_backups: int = LOG_BACKUPS


@dataclass(frozen=True)
class Plan:
    """The plan of ``up``: the properties of each component, in starting order."""

    data: Path
    properties: Mapping[str, Mapping[str, str]]
    bootstrap_servers: str
    supervision: Supervision


def make_plan(
    data: Path,
    *,
    listen: Mapping[str, str | None],
    config_file: Path | None = None,
    bootstrap_servers: str | None = None,
    without: Sequence[str] = (),
    triggers: Path | None = None,
) -> Plan:
    """Determine every address and property.

    Tables of the config file are named after components and contain their keys; ``[kafka]`` contains client settings
    for the log. Triggers run if there is a folder of them. The data folder remembers it until a start without them.
    """
    tables = dict(_read_tables(config_file))
    if "triggers" in without:
        _remember_triggers(data, None)
    elif triggers is not None or "triggers.dir" not in tables.get("triggers", {}):
        folder = triggers.absolute() if triggers is not None else _remembered_triggers(data)
        if folder is not None:
            tables["triggers"] = {**tables.get("triggers", {}), "triggers.dir": str(folder)}
            _remember_triggers(data, folder)
    unknown = [name for name in without if name not in COMPONENTS]
    if unknown:
        raise UsageError(f"--without {unknown[0]!r}: there is no such component; there are: {', '.join(COMPONENTS)}")
    names = [n for n in COMPONENTS if n not in without and not (n == "broker" and bootstrap_servers)]
    if "triggers.dir" not in tables.get("triggers", {}):
        names = [name for name in names if name != "triggers"]
    if "broker" not in names and not bootstrap_servers:
        raise UsageError("without the broker --bootstrap-servers must name a Kafka")
    addresses = _configured_addresses(tables, config_file) | {name: a for name, a in listen.items() if a}
    if any(text.endswith(":0") for text in addresses.values()):
        # If one face has port 0, the others get free ports too, so that several platforms can run.
        addresses = {face.name: "127.0.0.1:0" for name in names for face in COMPONENTS[name].faces} | addresses
    faces = [face for name in names for face in COMPONENTS[name].faces]
    listening = _assign_ports({face.name: addresses.get(face.name, face.default) for face in faces})
    security, settings = find_security(data), _security_settings(tables.pop("security", {}), config_file)
    if security is None and settings["allow.insecure.listeners"] != "true":
        _refuse_open(data, listening)
    if security is not None:
        security.renew(host_port(address)[0] for address in listening.values())
    protocol = tables.get("kafka", {}).get("security.protocol", "PLAINTEXT")
    if protocol != "PLAINTEXT" and not bootstrap_servers and security is None and "broker" not in tables:
        raise UsageError(
            f"{config_file}: [kafka] has security.protocol {protocol}, which the embedded broker does not speak as it is: "
            "--bootstrap-servers names a Kafka elsewhere, `tidegate secure init` secures the broker"
        )
    kafka = bootstrap_servers or listening["broker"]
    client = {
        **(security.kafka_client if security is not None and not bootstrap_servers else {}),
        **tables.get("kafka", {}),
    }
    asks = security is None and "connect" in names and _asks_for_token(settings["connect.token"])
    connect_users = make_connect_token(data, needed=asks)
    assembly = Assembly(data, listening, kafka, client, security, connect_users)
    properties = {name: {**COMPONENTS[name].properties(assembly), **tables.get(name, {})} for name in names}
    if security is None and settings["allow.insecure.listeners"] != "true":
        for name in names:  # the config file may name further listeners
            for address in COMPONENTS[name].open_addresses(properties[name]):
                _refuse_open(data, {name: address})
    return Plan(data, properties, kafka, _supervision(tables.get("supervisor", {}), config_file))


def _configured_addresses(tables: Mapping[str, Mapping[str, str]], path: Path | None) -> dict[str, str]:
    """The addresses of faces whose component has ``listeners`` in the config file, so that the others learn them.

    Raises UsageError if the others could not connect there.
    """
    addresses = {}
    for name, table in tables.items():
        urls = [url.strip() for url in table.get("listeners", "").split(",") if url.strip()]
        if not urls:
            continue
        usable = "PLAINTEXT" if name == "broker" else "http"
        known = table if name == "broker" else {}
        protocols = dict(
            part.split(":", 1) for part in known.get("listener.security.protocol.map", "").split(",") if ":" in part
        )
        scheme, _, address = next(
            (parts for url in urls if protocols.get((parts := url.partition("://"))[0], parts[0]) == usable),
            ("", "", ""),
        )
        if scheme:
            host, port = host_port(address)
            addresses[name] = f"127.0.0.1:{port}" if host in ("", "0.0.0.0", "::") else address
        elif name != "broker" or not tables.get("kafka"):
            more = " or say in [kafka] how they log in;" if name == "broker" else ""
            raise UsageError(
                f"{path}: [{name}] listeners has no {usable} listener, so the other components cannot connect: add "
                f"{usable}://127.0.0.1:PORT,{more} `tidegate secure init` gives TLS and logins to all of them"
            )
    return addresses


def _remember_triggers(data: Path, folder: Path | None) -> None:
    path = data / _TRIGGERS
    if folder is not None:
        make_private(data)
        write_whole(path, f"{folder}\n")
    else:
        path.unlink(missing_ok=True)


def _remembered_triggers(data: Path) -> Path | None:
    """The folder of triggers from an earlier start on this data. Raises UsageError if it is gone."""
    try:
        folder = Path((data / _TRIGGERS).read_text(encoding="utf-8").strip())
    except OSError:
        return None
    if not folder.is_dir():
        raise UsageError(
            f"the triggers and flows of this platform are in {folder}, which is not there: name their folder with --triggers, or "
            "start with --without triggers, which forgets them"
        )
    return folder


def _supervision(table: Mapping[str, str], path: Path | None) -> Supervision:
    """Raises UsageError that names the key, the value and what would be right."""
    from_watchdog, from_log = f"{_SHORTEST_WATCHDOG_S} on", f"{_SHORTEST_LOG:,} on"
    keys = {
        "watchdog.sec": ("watchdog_s", _SHORTEST_WATCHDOG_S, f"give seconds from {from_watchdog}, or 0 for no restart"),
        "log.max.bytes": ("log_max_bytes", _SHORTEST_LOG, f"give bytes from {from_log}, or 0 for logs that grow"),
        "log.backups": ("log_backups", 1, "give the number of earlier logs to keep"),
    }
    settings = {}
    for name, text in table.items():
        if name not in keys:
            raise UsageError(f"{path}: [supervisor] has no key {name}; it has {', '.join(keys)}")
        attribute, lowest, right = keys[name]
        if not re.fullmatch(r"[0-9]{1,12}", text) or 0 < int(text) < lowest:
            raise UsageError(f"{path}: {name} is {text!r}; {right}")
        settings[attribute] = int(text)
    return Supervision(**settings)


_TRIGGERS: Final = "triggers.folder"
"""The file in the data folder that names the folder of triggers and flows."""

_SECURITY: Final = {
    "allow.insecure.listeners": ("false", "true"),
    "connect.token": ("auto", "always", "never"),
}
"""The keys of the table ``[security]``, with their values; the first is the default."""


def _security_settings(table: Mapping[str, str], path: Path | None) -> dict[str, str]:
    for name, text in table.items():
        if name not in _SECURITY:
            raise UsageError(f"{path}: [security] has no key {name}; it has {', '.join(_SECURITY)}")
        if text not in _SECURITY[name]:
            raise UsageError(f"{path}: {name} is {text!r}; it may be {', '.join(_SECURITY[name])}")
    return {name: table.get(name, values[0]) for name, values in _SECURITY.items()}


def _asks_for_token(setting: str) -> bool:
    """Anyone who can reach Connect can run code as this user, and everyone with an account on this machine can reach a
    loopback address.
    """
    if setting == "auto":
        setting = os.environ.get("TIDEGATE_CONNECT_TOKEN") or setting
    return setting == "always" or (setting == "auto" and bool(other_users()))


def _refuse_open(data: Path, listening: Mapping[str, str]) -> None:
    """Refuse to listen for other machines without users: anyone who can reach a face could do everything there."""
    for face, address in listening.items():
        if not is_loopback(host_port(address)[0]):
            raise UsageError(
                f"{face} would listen on {address}, where others may reach it without TLS and users: make them with "
                f"`tidegate secure init --data {data}`, or listen on 127.0.0.1"
            )


def _read_tables(path: Path | None) -> Mapping[str, Mapping[str, str]]:
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    allowed = {*COMPONENTS, "kafka", "security", "supervisor"}
    for name, table in document.items():
        if name not in allowed or not isinstance(table, dict):
            raise UsageError(f"{path}: {name!r} is not a table of {', '.join(sorted(allowed))}")
    tables = {name: dict(_flat(table)) for name, table in document.items()}
    for name, settings in tables.items():
        _refuse_unknown(path, name, settings)
    return tables


def _refuse_unknown(path: Path, name: str, table: Mapping[str, str]) -> None:
    """Refuse misspelt keys, which would silently change nothing.

    Tables that may contain any Kafka client's keys are not checked.
    """
    component = COMPONENTS.get(name)
    if component is None or (cls := component.config_class) is None:
        return
    if hasattr(cls, "known_names"):  # a broker takes any key and shows it
        known = cls.known_names()
        unknown = [key for key in table if key not in known and not key.startswith("listener.name.")]
        nearest = nearest_name(unknown[0], known) if unknown else None
    else:
        unknown = unknown_keys(table, keys_of(cls), [prefix for prefix, _ in families_of(cls) if prefix])
        nearest = nearest_key(unknown[0], keys_of(cls)) if unknown else None
    if unknown:
        hint = f"; did you mean {nearest}?" if nearest else ""
        raise UsageError(f"{path}: [{name}] has no key {unknown[0]}{hint}")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten dotted keys, which TOML nests, back to one level."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield prefix + name, "true" if value else "false"
        else:
            yield prefix + name, ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _assign_ports(listening: Mapping[str, str]) -> dict[str, str]:
    """Assign a free port to every face with port 0 now, so that all components know all addresses from the start."""
    open_ones = [name for name, address in listening.items() if host_port(address)[1] == 0]
    ports = free_ports([host_port(listening[name])[0] for name in open_ones])
    settled = {name: f"{host_port(listening[name])[0]}:{port}" for name, port in zip(open_ones, ports, strict=True)}
    return dict(listening) | settled


def up(plan: Plan, *, on_ready: Callable[[State], None]) -> int:
    """Run the planned components until SIGTERM or SIGINT. Returns the exit status.

    ``on_ready`` is called once all answer. Raises TidegateError if one can't start or another ``up`` uses the data.
    """
    make_private(plan.data)
    run = make_folder(plan.data / "run")
    with _locked(run / "lock", plan.data):
        return asyncio.run(_up(plan, run, on_ready))


def make_private(data: Path) -> None:
    """Create a platform's folder for its owner only, because it contains passwords, records and keys.

    Also restricts a folder of an earlier version.
    """
    make_folder(data)
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & 0o077 and (not any(data.iterdir()) or any((data / name).exists() for name in ("run", "security"))):
        with contextlib.suppress(PermissionError):  # a folder of another user is theirs to restrict
            data.chmod(mode & ~0o077)


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
                "silent_since": child.silent_since,
                "watchdog_s": child.spec.watchdog_s,
            }
        _write_json(run / "platform.json", vars(state))

    supervision = plan.supervision
    children = [_child(name, properties, run, supervision.watchdog_s) for name, properties in plan.properties.items()]
    supervisor = Supervisor(
        children,
        run_dir=run,
        log_dir=plan.data / "logs",
        log_max_bytes=supervision.log_max_bytes,
        log_backups=supervision.log_backups,
        on_change=note,
    )
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


def _child(name: str, properties: Mapping[str, str], run: Path, watchdog_s: float) -> ChildSpec:
    import javaproperties

    path = run / f"{name}.properties"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        javaproperties.dump(properties, file, timestamp=False)
    # -P: a file in the folder where `up` was called is no module. Connectors' modules lie on plugin.path or PYTHONPATH.
    command = [sys.executable, "-P", "-m", "tidegate.cli", "serve", name, str(path), "--stop-with-stdin"]
    return ChildSpec(name, command, watchdog_s=watchdog_s)


def _write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value))
