"""Observes what a task moves: from which dataset to which topic or back, and which field becomes which, as far as transforms tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from connect.api import Dataset, RecordBatch, Schema, SchemaType, Task
from connect.transforms.chain import TransformChain
from tidegate.kit.logs import get_logger

__all__ = ["Flow", "FlowObserver", "Flows"]

logger = get_logger(__name__)

_Pairs: TypeAlias = tuple[tuple[str, str], ...]
_MOST_FLOWS: Final = 1000
"""Of one task: a sink may write to as many tables as records name."""
_MOST_SCHEMAS: Final = 50
"""Of one topic, in the life of a task: later ones change no lineage."""
_MOST_FIELDS: Final = 2000
_DEEPEST: Final = 6
_ENVELOPE: Final = frozenset({"before", "after", "source", "op"})
"""Fields of a change event, in Debezium's form."""
_ROW: Final = "after."


@dataclass(frozen=True, slots=True)
class Flow:
    """From a dataset to a topic (of a source), or from a topic to a dataset (of a sink)."""

    topic: str
    dataset: Dataset | None
    """None where the connector does not tell it."""
    columns: tuple[tuple[str, str], ...] | None
    """Columns of the dataset, each with the field of the topic's values that has its data; None where a transform does not tell it."""
    fields: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The fields of the topic's values with their types."""

    def to_json(self) -> dict[str, Any]:
        dataset = None if self.dataset is None else self.dataset._asdict()
        columns = None if self.columns is None else [list(pair) for pair in self.columns]
        return {"topic": self.topic, "dataset": dataset, "columns": columns}


class Flows:
    """Tells each flow of a task once, and again when its columns change. Used on the task's thread."""

    def __init__(self, task: Task[Any], *listeners: Callable[[Flow], None]) -> None:
        self._task, self._listeners = task, listeners
        self._told: dict[tuple[str, Dataset | None], Flow] = {}

    def topic(self, topic: str) -> None:
        """A job has read or written this topic."""
        self.tell(topic, topic, None)

    def tell(
        self,
        outer: str,
        topic: str,
        columns: tuple[tuple[str, str], ...] | None,
        fields: Sequence[tuple[str, str]] = (),
    ) -> None:
        """``outer`` is the topic's name on the dataset's side of the transforms."""
        try:
            dataset = self._task.dataset(outer)
        except Exception as error:  # noqa: BLE001 - a plugin's own code: records flow all the same
            logger.warning("a connector can't tell its dataset", topic=outer, error=str(error))
            dataset = None
        known = self._told.get((topic, dataset))
        if known is None and len(self._told) >= _MOST_FLOWS:
            return
        flow = Flow(topic, dataset, columns, tuple(fields))
        if known is not None:  # records of several schemas: each has moved its columns
            flow = replace(
                flow, columns=_united(known.columns, columns), fields=_united(known.fields, flow.fields) or ()
            )
        if known == flow:
            return
        self._told[topic, dataset] = flow
        for listener in self._listeners:
            listener(flow)


def _united(known: _Pairs | None, more: _Pairs | None) -> _Pairs | None:
    if known is None or more is None:
        return known or more
    return tuple(dict.fromkeys((*known, *more)))[:_MOST_FIELDS]


class FlowObserver:
    """Sees the batches of a task before and after its transforms. A batch like the last one costs a comparison."""

    def __init__(self, flows: Flows, chain: TransformChain, *, is_source: bool) -> None:
        self._flows, self._chain, self._is_source = flows, chain, is_source
        self._seen: dict[tuple[str, str], list[Schema | None]] = {}

    def saw(self, before: RecordBatch, after: RecordBatch) -> None:
        """Rows of ``before`` became ``after``."""
        known = self._seen.get((before.topic, after.topic))
        if known is None:
            if len(self._seen) >= _MOST_FLOWS:
                return
            known = self._seen[before.topic, after.topic] = []
        schema = before.value_schema
        if any(each is schema for each in known) or schema in known or len(known) >= _MOST_SCHEMAS:
            return
        known.append(schema)
        inside, outside = (after, before) if self._is_source else (before, after)
        topic = inside.topic if self._is_source or inside.origin is None else inside.origin.topic
        fields = _listed(inside.value_schema)
        self._flows.tell(outside.topic, topic, self._columns(before.value_schema, after.value_schema), fields)

    def _columns(self, before: Schema | None, after: Schema | None) -> tuple[tuple[str, str], ...] | None:
        """Pairs of a column and a field."""
        if before is None or before.type is not SchemaType.STRUCT or not self._chain.traces_fields:
            return None
        left = {path for path, _ in _listed(after)}
        pairs: list[tuple[str, str]] = []
        for path, _ in _listed(before):
            made = self._chain.field_after(path)
            if made is None or made not in left:
                continue
            pairs.append((_column(before, path), made) if self._is_source else (_column(after, made), path))
        return tuple(pairs)


def _listed(schema: Schema | None) -> list[tuple[str, str]]:
    """The paths of a struct's fields that have no fields themselves, with their types; of a change event those of the row."""
    if schema is None or schema.type is not SchemaType.STRUCT:
        return []
    listed = []
    for path, type_ in _leaves(schema, "", 0):
        if not _is_envelope(schema) or path.startswith(_ROW):
            listed.append((path, type_))
        if len(listed) >= _MOST_FIELDS:
            break
    return listed


def _leaves(schema: Schema, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for member in schema.fields:
        inner = member.schema
        if inner.type is SchemaType.STRUCT and inner.fields and depth < _DEEPEST:
            yield from _leaves(inner, f"{prefix}{member.name}.", depth + 1)
        else:
            yield f"{prefix}{member.name}", (inner.name or inner.type.value).rpartition(".")[2]


def _column(schema: Schema | None, path: str) -> str:
    return path.removeprefix(_ROW) if schema is not None and _is_envelope(schema) else path


def _is_envelope(schema: Schema) -> bool:
    return {member.name for member in schema.fields} >= _ENVELOPE
