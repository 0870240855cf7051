"""Applies the transformations of a connector in order, each to the records that its predicate selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connect.api import PluginType, Predicate, RecordBatch, Transformation
from connect.config.connector import CommonConfig, TransformConfig, sub_properties
from connect.errors import UnknownPlugin
from connect.plugins.registry import PluginRegistry
from connect.transforms.filter import Filter
from tidegate.kit.config import parse

__all__ = ["Guard", "TransformChain"]


class Guard(Protocol):
    """Runs an operation on a batch so that invalid records are handled as ``errors.*`` says (see
    ``connect.task.error_policy``).
    """

    def __call__(
        self, stage: str, component: str, batch: RecordBatch, operation: Callable[[RecordBatch], Sequence[Any]]
    ) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class _Step:
    alias: str
    transformation: Transformation
    predicate: Predicate | None
    negate: bool


class TransformChain:
    """Created once per task and used on its thread."""

    def __init__(self, steps: Sequence[_Step] = ()) -> None:
        self._steps = tuple(steps)

    @classmethod
    def configured(cls, plugins: PluginRegistry, config: CommonConfig, properties: Mapping[str, str]) -> TransformChain:
        """The chain that ``transforms`` and ``predicates`` describe. Raises ConfigError and UnknownPlugin."""
        predicates: dict[str, Predicate] = {}
        for alias in config.predicates:
            predicates[alias] = _made(plugins, PluginType.PREDICATE, f"predicates.{alias}.", properties)
        steps = []
        for alias in config.transforms:
            prefix = f"transforms.{alias}."
            parsed = parse(TransformConfig, sub_properties(properties, prefix))
            made = _made(plugins, PluginType.TRANSFORMATION, prefix, properties)
            predicate = predicates[parsed.predicate] if parsed.predicate else None
            steps.append(_Step(alias, made, predicate, parsed.negate))
        return cls(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def apply(self, batch: RecordBatch, guard: Guard) -> list[RecordBatch]:
        """The resulting batches, in order; empty ones are dropped."""
        batches = [batch]
        for step in self._steps:
            name = type(step.transformation).__name__
            made: list[RecordBatch] = []
            for part in batches:
                made.extend(guard("TRANSFORMATION", name, part, lambda rows, step=step: _apply(step, rows)))  # type: ignore[misc]
            batches = [part for part in made if len(part)]
        return batches

    @property
    def traces_fields(self) -> bool:
        """Whether every transformation of values tells what becomes of their fields."""
        return all(step.transformation.traces_fields for step in self._of_values())

    def field_after(self, path: str) -> str | None:
        """Which field has the data of a field of the value after all transformations (``Transformation.field_after``)."""
        for step in self._of_values():
            made = step.transformation.field_after(path)
            if made is None:
                return None
            path = made
        return path

    def _of_values(self) -> Iterator[_Step]:
        return (step for step in self._steps if getattr(step.transformation, "side", "value") == "value")

    def close(self) -> None:
        for step in self._steps:
            step.transformation.close()


def _made(plugins: PluginRegistry, kind: PluginType, prefix: str, properties: Mapping[str, str]) -> Any:
    values = sub_properties(properties, prefix)
    plugin = plugins.find(values.get("type", "").strip(), kind)
    if plugin is None:
        raise UnknownPlugin(f"{prefix}type={values.get('type')}: no {kind.value} goes by that name")
    loaded = plugin.load()
    return loaded(parse(loaded.config_class, values))


def _apply(step: _Step, batch: RecordBatch) -> Sequence[RecordBatch]:
    """Split a batch where the predicate's result changes, so that records keep their order."""
    import pyarrow.compute as pc

    if step.predicate is None:
        return step.transformation.apply(batch)
    mask = step.predicate.mask(batch)
    if step.negate:
        mask = pc.invert(mask)
    if pc.all(mask).as_py():
        return step.transformation.apply(batch)
    if not pc.any(mask).as_py():
        return [batch]
    if isinstance(step.transformation, Filter):
        return [batch.filter(pc.invert(mask))]
    made: list[RecordBatch] = []
    for start, stop, holds in _runs(mask):
        part = batch.slice(start, stop - start)
        made.extend(step.transformation.apply(part) if holds else [part])
    return made


def _runs(mask: Any) -> list[tuple[int, int, bool]]:
    import numpy as np

    values = mask.to_numpy(zero_copy_only=False)
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    starts = [0, *edges.tolist()]
    stops = [*edges.tolist(), len(values)]
    return [(start, stop, bool(values[start])) for start, stop in zip(starts, stops, strict=True)]
