"""The lineage of a platform: tables, files and topics, and the connectors and triggers that move records between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, TypeVar

from tidegate.clients.rest import NotThere, Rest
from tidegate.clients.worker import path_of
from tidegate.kit.datasets import Dataset

__all__ = ["Flow", "Lineage", "Node", "lineage_of", "open_lineage_events"]

T = TypeVar("T")
Kind = Literal["dataset", "topic", "connector", "trigger"]
Column = tuple["Node", str]

_MOST_ASKED: Final = 200
"""Connectors of a worker that has no lineage are asked for their topics one by one."""
_JOB_EVENT: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent"
_COLUMN_FACET: Final = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"


class Node(NamedTuple):
    """A thing of the picture. The name of a dataset is its namespace and name, as in ``postgres://db:5432/shop.orders``."""

    kind: Kind
    name: str

    @property
    def id(self) -> str:
        """Text from which ``Lineage.find`` makes it again."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Flow:
    """A connector's flow between a topic and a dataset outside."""

    connector: str
    is_source: bool
    topic: str
    dataset: Dataset | None = None
    """None where the connector tells none."""
    columns: Sequence[tuple[str, str]] | None = None
    """Columns of the dataset with fields of the topic's values; None where a transform does not tell them."""


def _along(edges: Iterable[tuple[Node, Node]]) -> dict[tuple[Node, Node], None]:
    """The edges along the ways from each beginning, in the order of names where a way forks; circles come last."""
    ends: dict[Node, list[Node]] = {}
    for start, end in sorted(edges):
        ends.setdefault(start, []).append(end)
    begun = {end for following in ends.values() for end in following}
    ordered: dict[tuple[Node, Node], None] = {}
    for first in sorted(ends, key=lambda node: (node in begun, node)):
        waiting = [(first, end) for end in reversed(ends[first])]
        while waiting:
            edge = waiting.pop()
            if edge not in ordered:
                ordered[edge] = None
                waiting += [(edge[1], end) for end in reversed(ends.get(edge[1], ()))]
    return ordered


class _Step(NamedTuple):
    """From a topic or dataset by a connector or trigger to another; None where that is not told, or there is none."""

    start: Node | None
    mover: Node
    end: Node | None


@dataclass
class Lineage:
    """``kafka`` is the namespace of the topics. ``readers`` are triggers with the topics that they read."""

    kafka: str
    flows: Sequence[Flow]
    readers: Sequence[tuple[str, Node]] = ()
    _steps: set[_Step] = field(default_factory=set)
    _columns: dict[tuple[Column, Column], str] = field(default_factory=dict)
    """Pairs of columns, each with the connector between them."""

    def __post_init__(self) -> None:
        for flow in self.flows:
            topic, outside = Node("topic", flow.topic), self._outside(flow.dataset)
            start, end = (outside, topic) if flow.is_source else (topic, outside)
            self._steps.add(_Step(start, Node("connector", flow.connector), end))
            if start is None or end is None:
                continue
            for column, member in flow.columns or ():
                pair = (column, member) if flow.is_source else (member, column)
                self._columns[(start, pair[0]), (end, pair[1])] = flow.connector
        self._steps |= {_Step(Node("topic", topic), reader, None) for topic, reader in self.readers}

    def _outside(self, dataset: Dataset | None) -> Node | None:
        """A dataset that is a topic of the same cluster is that topic."""
        if dataset is None:
            return None
        return Node("topic", dataset.name) if dataset.namespace == self.kafka else Node("dataset", str(dataset))

    @property
    def edges(self) -> list[tuple[Node, Node]]:
        """Of the picture: to connectors and triggers, and from them. Each follows, as far as it can, the one that it goes on."""
        made = {(step.start, step.mover) for step in self._steps if step.start is not None}
        made |= {(step.mover, step.end) for step in self._steps if step.end is not None}
        return list(_along(made))

    @property
    def nodes(self) -> list[Node]:
        return sorted({node for step in self._steps for node in step if node is not None})

    def find(self, text: str) -> list[Node]:
        """The nodes with this name, or whose ``id`` it is; else those whose name ends in it."""
        exact = [node for node in self.nodes if text in (node.name, node.id)]
        return exact or [node for node in self.nodes if node.name.endswith(text)]

    def around(self, nodes: Iterable[Node]) -> Lineage:
        """The part from which records come to these nodes, and to which they go from them.

        Of a connector that moves several topics only those are in it that lie on such a way.
        """
        chosen = {*nodes}
        part = Lineage(self.kafka, ())
        through = {step for step in self._steps if step.mover in chosen}
        for first, last in (("start", "end"), ("end", "start")):
            by_first: dict[Node | None, list[_Step]] = {}
            for step in self._steps:
                by_first.setdefault(getattr(step, first), []).append(step)
            seen: set[_Step] = set()
            waiting = [*through, *(step for node in chosen for step in by_first.get(node, ()))]
            while waiting:
                step = waiting.pop()
                if step not in seen:
                    seen.add(step)
                    following = getattr(step, last)
                    waiting += by_first.get(following, ()) if following is not None else ()
            part._steps |= seen
        kept = {*part.nodes}
        part._columns = {pair: name for pair, name in self._columns.items() if {pair[0][0], pair[1][0]} <= kept}
        return part

    def columns(self, node: Node) -> list[tuple[str, list[Column], list[Column]]]:
        """The known columns of a dataset or topic: each with those that it has the data of, and those that have its data."""
        names = {column for pair in self._columns for at, column in pair if at == node}
        return [
            (
                name,
                sorted(start for start, end in self._columns if end == (node, name)),
                sorted(end for start, end in self._columns if start == (node, name)),
            )
            for name in sorted(names)
        ]

    def trace(self, column: Column) -> list[tuple[Column, Column, str]]:
        """All pairs of columns, with their connectors, on the way to a column and from it."""
        return sorted((*pair, self._columns[pair]) for pair in _reached(self._columns, [column]))


def _reached(edges: Iterable[tuple[T, T]], starts: Iterable[T]) -> set[tuple[T, T]]:
    """The edges on the ways to some nodes, and on the ways from them."""
    following: dict[T, list[T]] = {}
    before: dict[T, list[T]] = {}
    for start, end in edges:
        following.setdefault(start, []).append(end)
        before.setdefault(end, []).append(start)
    reached: set[tuple[T, T]] = set()
    firsts = set(starts)
    for neighbours in (following, before):
        seen, waiting = set(firsts), list(firsts)
        while waiting:
            node = waiting.pop()
            for other in neighbours.get(node, ()):
                reached.add((node, other) if neighbours is following else (other, node))
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return reached


def lineage_of(rest: Rest, readers: Sequence[tuple[str, Node]] = ()) -> Lineage:
    """The flows of the connectors that the user may see. Kafka Connect's own workers tell the topics alone."""
    try:
        told = rest.call("GET", "/tidegate/v1/lineage")
    except NotThere:
        return Lineage("", list(_of_topics(rest)), readers)
    return Lineage(told["kafka"], [_flow(entry) for entry in told["flows"]], readers)


def _flow(entry: Mapping[str, Any]) -> Flow:
    dataset = None if entry["dataset"] is None else Dataset(**entry["dataset"])
    columns = None if entry["columns"] is None else [(column, member) for column, member in entry["columns"]]
    return Flow(entry["connector"], entry["type"] == "source", entry["topic"], dataset, columns)


def _of_topics(rest: Rest) -> Iterator[Flow]:
    listed = rest.call("GET", "/connectors", expand="info")
    for name in sorted(listed)[:_MOST_ASKED]:
        is_source = listed[name]["info"]["type"] == "source"
        for topic in rest.call("GET", path_of(name, "/topics"))[name]["topics"]:
            yield Flow(name, is_source, topic)


def open_lineage_events(lineage: Lineage) -> list[dict[str, Any]]:
    """OpenLineage's job events, one for each connector, as JSON objects. https://openlineage.io/docs/spec/object-model"""
    now = datetime.now(UTC).isoformat()
    by_connector: dict[str, list[Flow]] = {}
    for flow in lineage.flows:
        by_connector.setdefault(flow.connector, []).append(flow)
    return [
        {
            "eventTime": now,
            "producer": "urn:tidegate",
            "schemaURL": _JOB_EVENT,
            "job": {"namespace": lineage.kafka or "kafka-connect", "name": connector},
            "inputs": _datasets(lineage, flows, outputs=False),
            "outputs": _datasets(lineage, flows, outputs=True),
        }
        for connector, flows in sorted(by_connector.items())
    ]


def _datasets(lineage: Lineage, flows: Collection[Flow], *, outputs: bool) -> list[dict[str, Any]]:
    made: dict[Dataset, dict[str, Any]] = {}
    for flow in flows:
        topic = Dataset(lineage.kafka, flow.topic)
        is_topic = flow.is_source is outputs
        name, other = (topic, flow.dataset) if is_topic else (flow.dataset, topic)
        if name is None:
            continue
        entry = made.setdefault(name, dict(name._asdict()))
        if outputs and flow.columns and other is not None:
            pairs = flow.columns if not is_topic else [(member, column) for column, member in flow.columns]
            facet = entry.setdefault("facets", {}).setdefault(
                "columnLineage", {"_producer": "urn:tidegate", "_schemaURL": _COLUMN_FACET, "fields": {}}
            )
            for made_field, field_name in pairs:
                source = {**other._asdict(), "field": field_name}
                facet["fields"].setdefault(made_field, {"inputFields": []})["inputFields"].append(source)
    return list(made.values())
