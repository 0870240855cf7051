"""A Connect worker: its REST API, the counts of its tasks, and configurations without secrets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from tidegate.clients.credentials import Credentials
from tidegate.clients.rest import NotThere, Rest
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError

__all__ = [
    "Worker",
    "change_offsets",
    "declared_passwords",
    "masked_config",
    "path_of",
    "states_of",
    "statistics_of",
    "workers_in",
]

_NAMED_CONNECTOR: Final = re.compile(r"/connectors/([^/]+)")
_OTHER_WORKER_S: Final = 10.0
_TASKS_END_S: Final = 60.0
_PAUSE_S: Final = 0.2
_NOT_YET: Final = ("haven't stopped completely", "must be in the STOPPED state")
"""Parts of the answers of a worker whose tasks are about to end."""


class Worker(Rest):
    """A worker whose answer for a connector that it does not have names the nearest."""

    def __init__(self, url: str, credentials: Credentials | None = None, *, timeout_s: float = 95) -> None:
        super().__init__(url, "Connect worker", credentials, timeout_s=timeout_s)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        try:
            return super().call(method, path, body, **query)
        except NotThere as error:
            if (matched := _NAMED_CONNECTOR.search(path)) is None:
                raise
            name, known = unquote(matched[1]), super().call("GET", "/connectors")
            near = None if name in known else nearest_name(name, known)
            if near is None:
                raise
            raise NotThere(f"{error}; did you mean {near}?") from error


def path_of(name: str, rest: str = "") -> str:
    """The path of a connector's resource."""
    return f"/connectors/{quote(name, safe='')}{rest}"


def change_offsets(rest: Rest, name: str, changes: Sequence[Mapping[str, Any]] | None) -> str:
    """Change the offsets of a stopped connector, or with None forget them all. Returns the worker's message (KIP-875).

    Waits for up to a minute until the connector's tasks have ended.
    """
    deadline = time.monotonic() + _TASKS_END_S
    while True:
        try:
            if changes is None:
                return str(rest.call("DELETE", path_of(name, "/offsets"))["message"])
            return str(rest.call("PATCH", path_of(name, "/offsets"), {"offsets": list(changes)})["message"])
        except TidegateError as error:
            if time.monotonic() > deadline or not any(part in str(error) for part in _NOT_YET):
                raise
        time.sleep(_PAUSE_S)


def states_of(rest: Rest) -> dict[str, str]:
    """Each connector with its state, ``UNASSIGNED`` where it was created just now and has none."""
    names, listed = rest.call("GET", "/connectors"), rest.call("GET", "/connectors", expand=["status"])
    states = {name: entry["status"]["connector"]["state"] for name, entry in listed.items()}
    return {name: states.get(name, "UNASSIGNED") for name in names}


def statistics_of(rest: Rest, workers: Iterable[str], tell: Callable[[str], object] = lambda _: None) -> dict[str, Any]:
    """The counts of tasks and the memory of their hosts by connector: of the worker that is asked and of ``workers``.

    ``tell`` gets a line for each worker that does not answer. Empty if they are Apache Kafka's, which tell this to JMX only.
    """
    try:
        answer = rest.call("GET", "/tidegate/v1/connectors")
    except NotThere:
        return {}
    made = _by_connector(answer)
    for worker_id in sorted({*workers} - {answer["worker_id"]}):
        other = rest.at(worker_id, timeout_s=_OTHER_WORKER_S)
        try:
            more = _by_connector(other.call("GET", "/tidegate/v1/connectors"))
        except TidegateError as error:
            tell(f"nothing is known of the tasks on {worker_id}: {error}")
            continue
        for name, tasks in more.items():
            made.setdefault(name, {}).update(tasks)
    return made


def _by_connector(answer: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    return {name: {task["id"]: task for task in tasks} for name, tasks in answer["connectors"].items()}


def masked_config(rest: Rest, config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration for people: without values of keys that its plugins declare as passwords, or whose names say so.

    Placeholders (``${file:...}``) stay: they are no secrets.
    """
    from tidegate.kit.scrubbing import HIDDEN, masked

    secret = set(declared_passwords(rest, config))
    shown = {}
    for key, value in sorted(config.items()):
        if not isinstance(value, str) or _is_placeholder(value):
            shown[key] = value
        else:
            shown[key] = HIDDEN if key in secret and value else masked(key, value)
    return shown


def _is_placeholder(value: str) -> bool:
    return re.fullmatch(r"\$\{[^}]+\}", value.strip()) is not None


_PLUGIN_KEY: Final = re.compile(
    r"(?P<prefix>)connector\.class|(?P<converter>(key|value|header)\.converter)|(?P<chain>(transforms|predicates)\.[^.]+)\.type"
)


def declared_passwords(rest: Rest, config: Mapping[str, Any]) -> Iterable[str]:
    """The keys of a configuration that its plugins declare as passwords."""
    for key, value in config.items():
        matched = _PLUGIN_KEY.fullmatch(key)
        if matched is None or not isinstance(value, str):
            continue
        stem = matched["converter"] or matched["chain"]
        prefix = f"{stem}." if stem else ""
        try:
            keys = rest.call("GET", f"/connector-plugins/{quote(value, safe='')}/config")
        except TidegateError:
            continue  # a class that this worker does not have; names of keys must do
        yield from (prefix + declared["name"] for declared in keys if declared["type"] == "PASSWORD")


def workers_in(statuses: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of the workers that run the tasks of these statuses."""
    return {task["worker_id"] for status in statuses for task in status["tasks"]}
