"""The state of a comparison: its position, the changes found, and the results of compared pairs.

A pair of parts may be reached on many paths, and recursively. Each pair is compared once, and its changes are stored
with paths relative to the pair. A pair that recurs within itself is assumed to be compatible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from registry.formats.effort import Effort
from registry.formats.json_schema.changes import Change
from registry.formats.json_schema.model import ReferenceSchema, Schema
from tidegate.kit.linear_regex import PatternError, compiled

__all__ = ["Context", "Memory", "Pair", "bound", "compare"]

_MAX_CHANGES: Final = 1000
Pair = tuple[int, int]


class Memory:
    """One pass's results per pair. The schemas stay alive throughout, so that their identities are valid keys."""

    def __init__(
        self,
        compare_kinds: Callable[[Context, Schema, Schema], None],
        compatible: Collection[str],
        known: dict[Pair, list[Change]],
        effort: Effort,
    ) -> None:
        """``known`` are the pairs that earlier passes found incompatible."""
        self.compare_kinds = compare_kinds
        self.compatible = compatible
        self.known = known
        self.compared: dict[Pair, list[Change]] = {}
        self.under_way: set[Pair] = set()
        self.guessed = False
        self.effort = effort
        self._patterns: dict[str, Any] = {}

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a pattern occurs in a name. RE2 takes time proportional to the name, whatever the pattern."""
        if pattern not in self._patterns:
            self._patterns[pattern] = _compiled(pattern)
        compiled = self._patterns[pattern]
        return compiled is not None and compiled.search(name) is not None

    def harmless(self, changes: list[Change]) -> bool:
        return all(change.kind in self.compatible for change in changes)


def _compiled(pattern: str) -> Any:
    """The RE2 pattern; None for text that RE2 can't parse, which matches no name."""
    try:
        return compiled(pattern)
    except PatternError:
        return None


class Context:
    """The position of the comparison, and the changes found since this context was created."""

    def __init__(self, memory: Memory, path: tuple[str, ...] = ()) -> None:
        self.memory = memory
        self.changes: list[Change] = []
        self._path = path

    @contextmanager
    def at(self, *path: str) -> Iterator[None]:
        outer = self._path
        self._path = (*outer, *path)
        try:
            yield
        finally:
            self._path = outer

    def aside(self) -> Context:
        """A context at the same position, for a trial."""
        return Context(self.memory, self._path)

    @property
    def effort(self) -> Effort:
        return self.memory.effort

    @property
    def compatible(self) -> bool:
        return self.memory.harmless(self.changes)

    def add(self, kind: str, *path: str) -> None:
        self.take([Change(kind, "#/" + "/".join((*self._path, *path)))])

    def take(self, changes: list[Change]) -> None:
        # Parts used twice at every level double the changes per level; more than the limit would help no user. Omitted
        # changes must not hide the first incompatible change.
        room = _MAX_CHANGES - len(self.changes)
        if len(changes) <= room:
            self.changes += changes
        elif self.compatible:
            self.changes += (
                changes[: max(room, 0)]
                + [change for change in changes[max(room, 0) :] if change.kind not in self.memory.compatible][:1]
            )

    def pair(self, original: Schema, update: Schema) -> None:
        """Compare two schemas here, unless they were compared before."""
        key = (id(original), id(update))
        memory = self.memory
        changes = memory.compared.get(key)
        if changes is None and key in memory.under_way:
            changes = memory.known.get(key)
            if changes is None:
                memory.guessed = True
                changes = []
        elif changes is None:
            memory.effort.pair()
            memory.under_way.add(key)
            inner = Context(memory)
            memory.compare_kinds(inner, original, update)
            memory.under_way.discard(key)
            changes = memory.compared[key] = inner.changes
        if self._path:
            pointer = "#/" + "/".join(self._path)
            changes = [
                Change(made.kind, pointer if len(made.path) <= 2 else pointer + made.path[1:]) for made in changes
            ]
        self.take(changes)


def compare(context: Context, original: Schema | None, update: Schema | None) -> None:
    if original is None or update is None:
        if original is not update:
            context.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
        return
    context.pair(_referred(original), _referred(update))


def _referred(schema: Schema) -> Schema:
    if isinstance(schema, ReferenceSchema) and schema.target.schema is not None:
        return schema.target.schema
    return schema


def bound(context: Context, keyword: str, name: str, before: object, after: object) -> None:
    """Record an added, removed, increased or decreased limit. Numbers with equal text are equal."""
    if before == after:
        return
    if before is None:
        context.add(f"{name}_ADDED", keyword)
    elif after is None:
        context.add(f"{name}_REMOVED", keyword)
    else:
        context.add(f"{name}_INCREASED" if before < after else f"{name}_DECREASED", keyword)  # type: ignore[operator]
