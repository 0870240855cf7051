"""``tidegate up``, ``down`` and ``status``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from tidegate import platform
from tidegate.cli.connectors.reach import rest_of
from tidegate.cli.options import echo_error, folder_option, json_option, print_json, print_table, running_state
from tidegate.clients.summary import summaries_of, troubles
from tidegate.components import COMPONENTS
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.files import make_folder
from tidegate.kit.supervisor import request_restart
from tidegate.kit.users import INTERNAL_USER
from tidegate.security import connect_token
from tidegate.state import State, component_state, read_state, with_memory

__all__ = ["down", "restart", "status", "tasks_text", "up"]

_RESTART_S: Final = 180
_PAUSE_S: Final = 0.1
_SILENT_S: Final = 15.0
"""How long a start takes before it is told what it waits for."""
_LOG_CHARACTERS: Final = 500
_LOG_FRAME: Final = ("event", "logger", "level", "time", "exception")
_CONNECT_S: Final = 5.0
"""How long ``status`` waits for the worker."""
_LISTEN_OPTIONS: Final = {
    "broker_listen": "broker",
    "registry_listen": "registry",
    "connect_listen": "connect",
    "events_listen": "events",
    "pubsub_listen": "pubsub",
    "console_listen": "console",
}


@click.command()
@folder_option
@click.option("--config", "config_file", type=click.Path(dir_okay=False, path_type=Path), help="A tidegate.toml.")
@click.option("--detach", is_flag=True, help="Return once everything answers.")
@click.option("--broker-listen", metavar="H:P", help="Where the broker listens.")
@click.option("--registry-listen", metavar="H:P", help="Where the registry listens.")
@click.option("--connect-listen", metavar="H:P", help="Where Connect listens.")
@click.option("--events-listen", metavar="H:P", help="Where the events service listens (REST, CometD).")
@click.option("--pubsub-listen", metavar="H:P", help="Where the Pub/Sub API listens, with TLS.")
@click.option("--console-listen", metavar="H:P", help="Where the console, the pages for a browser, listens.")
@click.option("--bootstrap-servers", metavar="LIST", help="Use this Kafka instead of the embedded broker.")
@click.option(
    "--triggers",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run the triggers and flows of this folder, now and at later starts.",
)
@click.option("--without", multiple=True, metavar="NAME", help=f"Leave out a component: {', '.join(COMPONENTS)}.")
def up(
    data: Path,
    config_file: Path | None,
    detach: bool,
    bootstrap_servers: str | None,
    without: tuple[str, ...],
    triggers: Path | None,
    **listen: str | None,
) -> None:
    """Start the platform and keep it running until Ctrl-C or `tidegate down`."""
    if config_file is None and Path("tidegate.toml").is_file():
        echo_error("this folder has a tidegate.toml, which is not read: --config tidegate.toml reads it")
    if detach:
        _detach(data)
        return
    plan = platform.make_plan(
        data.absolute(),
        listen={_LISTEN_OPTIONS[name]: address for name, address in listen.items()},
        config_file=config_file,
        bootstrap_servers=bootstrap_servers,
        without=without,
        triggers=triggers,
    )
    raise click.exceptions.Exit(platform.up(plan, on_ready=lambda state: _announce(state, data)))


def _detach(data: Path) -> None:
    """Start the same command without --detach in a separate session, and wait until it is ready."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    logs = make_folder(data / "logs")
    patience = _Patience(data)
    with (logs / "up.log").open("a") as log:  # another process that runs on this data may be writing to it
        before = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tidegate.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while process.poll() is None:
        state = read_state(data)
        if state is not None and state.pid == process.pid and _all_ready(state):
            _announce(state, data)
            return
        patience.tell(state if state is not None and state.pid == process.pid else None)
        time.sleep(0.02)
    raise TidegateError(
        (logs / "up.log").read_bytes()[before:].decode(errors="replace").strip().removeprefix("error: ")
        or "it ended without a word"
    )


class _Patience:
    """Tells now and then what a start waits for."""

    def __init__(self, data: Path) -> None:
        self._data, self._next_s = data, time.monotonic() + _SILENT_S
        self._sizes = {log.name: log.stat().st_size for log in (data / "logs").glob("*.log")}
        """What earlier runs have left in the logs."""

    def tell(self, state: State | None) -> None:
        if state is not None and time.monotonic() > self._next_s:
            self._next_s = time.monotonic() + _SILENT_S
            for line in _starting(state, self._data, self._sizes):
                click.echo(line, err=True)


def _starting(state: State, data: Path, sizes: Mapping[str, int] | None = None) -> list[str]:
    """A line for each component that does not answer yet, with the end of its log behind the ``sizes`` of the logs."""
    waiting = [name for name, component in state.components.items() if not component["ready"]]
    logs = {name: data / "logs" / f"{name}.log" for name in waiting}
    said = {name: _last_line(log, (sizes or {}).get(log.name, 0))[:_LOG_CHARACTERS] for name, log in logs.items()}
    return [f"{name} is starting; its log ends with: {line}" for name, line in said.items()]


def _all_ready(state: State) -> bool:
    return bool(state.components) and all(component["ready"] for component in state.components.values())


def _announce(state: State, data: Path) -> None:
    from tidegate.cli.move import moved_text

    if moved := moved_text(data):
        echo_error(f"{moved}. Its connectors run there: do not start them here too")
    addresses = state.addresses
    rows = [[name, address] for name, address in addresses.items() if name != "ca"]
    if "broker" not in addresses:
        rows.insert(0, ["kafka", state.bootstrap_servers])
    print_table(["face", "address"], rows)
    if "ca" in addresses:
        click.echo("\nClients of the TLS faces trust it with:")
        for variable in ("REQUESTS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NODE_EXTRA_CA_CERTS"):
            click.echo(f"  export {variable}={addresses['ca']}")
    if connect_token(data) is not None:
        click.echo(
            "\nOther users may log in to this machine, so Connect asks for a login (docs/how-to/secure.md, Other users):"
        )
        click.echo(
            f"  curl -u {INTERNAL_USER}:$(cat {data.absolute()}/connect.token) {addresses.get('connect', '')}/connectors"
        )
        if "console" in addresses:
            click.echo(f"The console asks for the same: user {INTERNAL_USER}, with the password in that file.")
    click.echo(f"\nData and logs: {data.absolute()}. Stop with: tidegate down --data {data}")


@click.command()
@folder_option
def down(data: Path) -> None:
    """Stop the platform in order; returns when it has ended."""
    state = read_state(data)
    if state is None or not state.running:
        click.echo(f"no tidegate is up on {data}")
        return
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + 120
    while state.running:
        if time.monotonic() > deadline:
            raise TidegateError(
                f"process {state.pid} has not ended within 120 s of SIGTERM; its logs are in {data}/logs"
            )
        time.sleep(0.05)
    click.echo(f"the platform on {data} has stopped", err=True)


@click.command()
@click.argument("components", nargs=-1, required=True, type=click.Choice(list(COMPONENTS)), metavar="COMPONENT...")
@folder_option
@json_option
def restart(components: tuple[str, ...], data: Path, as_json: bool) -> None:
    """Restart components of a running platform, one after another, and wait until each is ready. The others go on.

    After a restart of connect, it also waits until the tasks that ran before run again, 180 s in all at most.

    A component gets the properties of the last `tidegate up`; for a changed tidegate.toml stop and start the platform.
    A restart of connect finds newly installed plugins.

    Example: tidegate restart connect
    """
    state = running_state(data)
    if missing := [name for name in components if name not in state.components]:
        raise UsageError(f"the platform on {data} runs without {missing[0]}; it has {', '.join(state.components)}")
    done = []
    for name in dict.fromkeys(components):
        began = time.monotonic()
        before = _running_tasks(data) if name == "connect" else frozenset()
        pid = _restart(data, name)
        told: dict[str, Any] = {"component": name, "pid": pid}
        if before:
            told["tasks"] = _await_tasks(data, before, began + _RESTART_S)
        done.append(told | {"seconds": round(time.monotonic() - began, 1)})
        if not as_json:
            click.echo(f"{name} is ready again{tasks_text(told['tasks']) if before else ''}")
    if as_json:
        print_json(done)


_Task: TypeAlias = tuple[str, int]
"""A connector's name and a task's number."""


def _running_tasks(data: Path) -> frozenset[_Task]:
    """The tasks that run on the worker of a platform; none if it does not answer."""
    with contextlib.suppress(TidegateError):
        return frozenset(task for task, state in _task_states(data).items() if state == "RUNNING")
    return frozenset()


def _task_states(data: Path) -> dict[_Task, str]:
    """The states of the platform's tasks. Those of its worker count as running only once the worker has them."""
    rest = rest_of(data, None, timeout_s=_CONNECT_S)
    here = rest.call("GET", "/tidegate/v1/connectors")
    loaded = {(name, task["id"]) for name, tasks in here["connectors"].items() for task in tasks}
    return {
        (name, task["id"]): "STARTING"
        if task["worker_id"] == here["worker_id"] and task["state"] == "RUNNING" and (name, task["id"]) not in loaded
        else task["state"]
        for name, entry in rest.call("GET", "/connectors", expand="status").items()
        for task in entry["status"]["tasks"]
    }


def _await_tasks(data: Path, before: frozenset[_Task], deadline: float) -> dict[str, list[str]]:
    """Wait until the tasks that ran before run again, or have failed; the names of tasks by what became of them."""
    while True:
        states: dict[_Task, str] = {}
        with contextlib.suppress(TidegateError):
            states = _task_states(data)
        by_state: dict[str, list[str]] = {"running": [], "failed": [], "starting": []}
        for task in sorted(before):
            state = states.get(task, "").lower()
            by_state[state if state in by_state else "starting"].append(f"{task[0]}-{task[1]}")
        if not by_state["starting"] or time.monotonic() > deadline:
            return by_state
        time.sleep(_PAUSE_S)


def tasks_text(tasks: Mapping[str, list[str]]) -> str:
    """The states of the tasks that ran before."""
    count, running = sum(map(len, tasks.values())), len(tasks["running"])
    share = f"{running} of {count} tasks" if running < count else "1 task" if count == 1 else f"{count} tasks"
    text = f", {share} {'runs' if running == 1 else 'run'} again"
    if tasks["failed"]:
        text += f"; failed: {', '.join(tasks['failed'])} (`tidegate connectors status NAME` says why)"
    if tasks["starting"]:
        text += f"; still starting: {', '.join(tasks['starting'])}"
    return text


def _restart(data: Path, name: str) -> int:
    """Returns the new process id once the component is ready. Raises TidegateError."""
    before = running_state(data).components[name]
    try:
        request_restart(data / "run", name)
    except OSError as error:
        raise UsageError(f"cannot write to {data / 'run'}: {error.strerror}") from error
    log, deadline = data / "logs" / f"{name}.log", time.monotonic() + _RESTART_S
    while time.monotonic() < deadline:
        component = running_state(data).components[name]
        if component["ready"] and component["pid"] not in (None, before["pid"]):
            return int(component["pid"])
        if component["restarts"] > before["restarts"]:
            raise TidegateError(
                f"{name} has ended at its start: {_last_line(log)} (log: {log}); the supervisor goes on starting it"
            )
        time.sleep(0.05)
    raise TidegateError(f"{name} is not ready {_RESTART_S} s after its restart was requested; its log is {log}")


def _last_line(log: Path, since: int = 0) -> str:
    """The last line of a component's log, in words. The first ``since`` bytes do not count, unless the log is shorter by now."""
    try:
        content = log.read_bytes()
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    lines = content[since if len(content) >= since else 0 :].decode(errors="replace").splitlines()
    if not lines:
        return "it said nothing"
    with contextlib.suppress(ValueError, AttributeError, KeyError):
        entry = json.loads(lines[-1])
        facts = (str(value) for name, value in entry.items() if name not in _LOG_FRAME)
        return ": ".join(filter(None, (str(entry["event"]), ", ".join(facts))))
    return lines[-1].removeprefix("error: ")


@click.command()
@folder_option
@json_option
def status(data: Path, as_json: bool) -> None:
    """Show what runs, where, and how much memory it takes (PSS: shared pages counted in shares)."""
    state = running_state(data)
    components = {name: with_memory(component) for name, component in state.components.items()}
    summaries = _connectors(state, data)
    if as_json:
        print_json({**vars(state), "components": components, "addresses": state.addresses, "connectors": summaries})
        return
    rows = [
        [
            name,
            component_state(c),
            str(c["pid"] or "-"),
            c["restarts"],
            f"{c['memory_mb']:.0f} MB",
            address,
        ]
        for name, c in components.items()
        for address in [", ".join(a for n, a in c["addresses"].items() if n != "ca")]
    ]
    print_table(["component", "state", "pid", "restarts", "memory", "addresses"], rows)
    total = sum(component["memory_mb"] for component in components.values())
    click.echo(f"\n{total:.0f} MB in all")
    for name, component in components.items():
        if (since := component.get("silent_since")) is not None:
            click.echo(_late(name, time.time() - since, component["watchdog_s"], data))
    for line in [*_starting(state, data), *troubles(summaries or ())]:
        click.echo(line)


def _connectors(state: State, data: Path) -> list[dict[str, Any]] | None:
    """The connectors in short; None if no worker runs or it does not answer."""
    if not state.components.get("connect", {}).get("ready"):
        return None
    with contextlib.suppress(TidegateError):
        return summaries_of(rest_of(data, None, timeout_s=_CONNECT_S))
    return None


def _late(name: str, silent_s: float, watchdog_s: float, data: Path) -> str:
    then = f"after {watchdog_s:g} s it is restarted" if watchdog_s else "it is not restarted (watchdog.sec = 0)"
    return f"{name} has given no sign of life for {silent_s:.0f} s; {then}. Its log is {data / 'logs' / name}.log"
