"""Unusual values for every declared key of plugins, validated by Kafka Connect and by ours, and the table of permitted
differences.

The table is "Values of keys" in docs/reference/connect-differences.md: plugins and keys as patterns, who refuses, which
values.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import requests

__all__ = ["Case", "Difference", "Row", "cases", "declared", "differences", "sampled", "table", "unlisted"]

_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "reference" / "connect-differences.md"
_FILE: Final = "org.apache.kafka.connect.file.FileStream"
_MIRROR: Final = {
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}
_DATABASE: Final = {
    "database.hostname": "127.0.0.1",
    "database.port": "1",
    "database.user": "u",
    "database.password": "p",
    "topic.prefix": "p",
}
_CONNECTORS: Final[Mapping[str, Mapping[str, str]]] = {
    f"{_FILE}SourceConnector": {"topic": "t", "file": "/nowhere/x"},
    f"{_FILE}SinkConnector": {"topics": "t", "file": "/nowhere/x"},
    "io.debezium.connector.postgresql.PostgresConnector": {**_DATABASE, "database.dbname": "d"},
    "io.debezium.connector.mariadb.MariaDbConnector": {
        **_DATABASE,
        "database.server.id": "5",
        "schema.history.internal.kafka.topic": "h",
        "schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:1",
    },
    **{f"org.apache.kafka.connect.mirror.Mirror{kind}Connector": _MIRROR for kind in ("Source", "Checkpoint", "Heartbeat")},
}  # fmt: skip
_PREFIXES: Final = {
    "transformation": ("transforms.x.", {"transforms": "x"}, "transforms.x.type"),
    "predicate": ("predicates.x.", {"predicates": "x"}, "predicates.x.type"),
    "converter": ("value.converter.", {}, "value.converter"),
}
_VALUES: Final = ("a,a", "", " ", "odd?", "-1", "-2", "0", "1.5", "99999999999999999999", "TRUE", "a,,b", "(")
OTHER_CASE: Final = "other case"
"""Stands for the default, or an allowed value, in capitals or in small letters."""
_LOOKED_UP: Final = ("connector.class", "database.hostname", "*bootstrap.servers")
"""Keys that are left alone: their values are looked up in the network, or make it another plugin."""


@dataclass(frozen=True)
class Case:
    """One unusual value. ``key`` is the plugin's name of the key, ``name`` the configuration's."""

    plugin: str
    key: str
    label: str
    name: str
    value: str
    connector: str
    base: Mapping[str, str] = field(hash=False)

    @property
    def given(self) -> dict[str, str]:
        return {**self.base, self.name: self.value}


@dataclass(frozen=True)
class Difference:
    """``refused_by`` is who finds fault where the other does not."""

    case: Case
    refused_by: str
    said: str

    def __str__(self) -> str:
        case = self.case
        return f"{case.plugin} | {case.key} | {self.refused_by} | {case.label!r} ({case.value!r}): {self.said[:300]}"


def _validate(url: str, connector: str, config: Mapping[str, str]) -> requests.Response:
    path = f"{url}/connector-plugins/{connector.rpartition('.')[2]}/config/validate"
    return requests.put(path, json=dict(config), timeout=120)


def cases(theirs: str, ours: str) -> Iterator[Case]:
    """Every key that Kafka Connect declares, of plugins that both have."""
    common: set[str] = set()
    for connector, more in _CONNECTORS.items():
        base = {"name": "n", "connector.class": connector, **more}
        shown = _validate(theirs, connector, base).json()["configs"]
        for definition in shown:
            if definition["definition"]["name"] not in common:
                yield from _of_key(
                    connector.rpartition(".")[2],
                    definition["definition"],
                    definition["value"]["recommended_values"],
                    "",
                    base,
                )
        if connector.startswith(_FILE):
            common |= {definition["definition"]["name"] for definition in shown} - {"file", "topic", "batch.size"}
    base = {"name": "n", "connector.class": f"{_FILE}SourceConnector", **_CONNECTORS[f"{_FILE}SourceConnector"]}
    for plugin in requests.get(f"{theirs}/connector-plugins?connectorsOnly=false", timeout=60).json():
        if plugin["type"] not in _PREFIXES:
            continue
        if requests.get(f"{ours}/connector-plugins/{plugin['class']}/config", timeout=60).status_code != 200:
            continue
        prefix, more, type_key = _PREFIXES[plugin["type"]]
        declared = requests.get(f"{theirs}/connector-plugins/{plugin['class']}/config", timeout=60).json()
        needed = {prefix + definition["name"]: "a" for definition in declared if definition["required"]}
        for definition in declared:
            config = {**base, **more, type_key: plugin["class"], **needed}
            yield from _of_key(plugin["class"].rpartition(".")[2], definition, (), prefix, config)


def _of_key(
    plugin: str, declared: Mapping[str, Any], recommended: Iterable[str], prefix: str, base: Mapping[str, str]
) -> Iterator[Case]:
    name = declared["name"]
    if any(fnmatchcase(name, pattern) for pattern in _LOOKED_UP):
        return
    words = [word for word in (*recommended, declared["default_value"]) if word and not re.search(r"\d", word)]
    other = {word.upper() for word in words[:2]} | {word.lower() for word in words[:2]} - set(words)
    values = [*((value, value) for value in _VALUES), *((OTHER_CASE, value) for value in sorted(other - {"TRUE"}))]
    for label, value in values:
        yield Case(plugin, name, label, prefix + name, value, base["connector.class"], base)


def declared(url: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Plugin, key and definition of what a worker's plugins declare, without what all connectors have."""
    common = {
        definition["name"]
        for definition in requests.get(f"{url}/connector-plugins/{_FILE}SinkConnector/config", timeout=60).json()
    }
    common |= {
        definition["name"]
        for definition in requests.get(f"{url}/connector-plugins/{_FILE}SourceConnector/config", timeout=60).json()
    }
    for plugin in requests.get(f"{url}/connector-plugins?connectorsOnly=false", timeout=60).json():
        answer = requests.get(f"{url}/connector-plugins/{plugin['class']}/config", timeout=60)
        name = plugin["class"].rpartition(".")[2]
        for definition in answer.json() if answer.status_code == 200 else ():
            if plugin["type"] not in ("source", "sink") or definition["name"] not in common:
                yield name, definition["name"], definition


def sampled(all_cases: Iterable[Case], every: int) -> list[Case]:
    """One case in ``every``, always the same ones."""
    return [case for case in all_cases if zlib.crc32(f"{case.plugin} {case.key} {case.label}".encode()) % every == 0]


def differences(theirs: str, ours: str, chosen: Iterable[Case]) -> list[Difference]:
    """Cases in which the two report errors at different keys.

    Errors that the configuration has without the unusual value do not count, nor do the texts of errors.
    """
    known: dict[tuple[str, frozenset[tuple[str, str]]], set[str]] = {}

    def faults(url: str, connector: str, config: Mapping[str, str]) -> tuple[int, dict[str, str]]:
        answer = _validate(url, connector, config)
        if answer.status_code != 200:
            return answer.status_code, {"": answer.text}
        shown = (entry["value"] for entry in answer.json()["configs"])
        return 200, {entry["name"]: entry["errors"][0] for entry in shown if entry["errors"]}

    def of_base(url: str, case: Case) -> set[str]:
        base_key = (url, frozenset(case.base.items()))
        if base_key not in known:
            known[base_key] = set(faults(url, case.connector, case.base)[1])
        return known[base_key]

    def look(case: Case) -> Difference | None:
        (status, them), (our_status, us) = (faults(url, case.connector, case.given) for url in (theirs, ours))
        assert our_status == 200, f"{case}: {us}"
        if status != 200:
            return Difference(case, "Kafka Connect (500)", str(them))
        # A fault of the key itself counts always.
        by_them = {name for name in them if name == case.name or name not in of_base(theirs, case)}
        by_us = {name for name in us if name == case.name or name not in of_base(ours, case)}
        if by_them == by_us:
            return None
        more, less = by_us - by_them, by_them - by_us
        said = str({name: us.get(name) or them.get(name) for name in more | less})
        return Difference(
            case, "both, at other keys" if more and less else "Tidegate" if more else "Kafka Connect", said
        )

    with ThreadPoolExecutor(2) as pool:
        return [difference for difference in pool.map(look, chosen) if difference is not None]


@dataclass
class Row:
    """One line of the table; ``values`` is None for any."""

    plugins: list[str]
    keys: list[str]
    refused_by: str
    values: set[str] | None
    seen: set[str] = field(default_factory=set)

    def covers(self, difference: Difference) -> bool:
        case = difference.case
        return (
            difference.refused_by == self.refused_by
            and any(fnmatchcase(case.plugin, pattern) for pattern in self.plugins)
            and any(case.key == key or fnmatchcase(case.key, key) for key in self.keys)
            and (self.values is None or case.label in self.values)
        )


def table() -> list[Row]:
    """The rows of "Values of keys"."""
    text = _DOCUMENT.read_text(encoding="utf-8")
    (part,) = re.findall(r"^## Values of keys\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = []
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| `") else []
        if cells:
            plugins, keys, refused_by, values = (
                [*re.findall(r"`([^`]*)`", cell)] for cell in (*cells[:2], "", cells[3])
            )
            rows.append(Row(plugins, keys, cells[2], None if cells[3] == "any" else set(values)))
    return rows


def unlisted(differences: Iterable[Difference], rows: list[Row]) -> list[Difference]:
    """The differences that no row of the table covers; rows take note of what they cover."""
    left = []
    for difference in differences:
        covering = [row for row in rows if row.covers(difference)]
        for row in covering:
            row.seen.add(difference.case.label)
        if not covering:
            left.append(difference)
    return left
