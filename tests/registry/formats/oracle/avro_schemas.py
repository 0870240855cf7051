"""Random Avro schemas in pairs that differ slightly, many of them invalid."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS = {
    "int": 3, "long": 1 << 40, "string": "s", "double": 0.1, "float": 1e8, "boolean": False, "bytes": "\u00ff", "null": None,
}  # fmt: skip


class Schemas:
    """Chance with a seed. ``wild`` schemas break rules now and then."""

    def __init__(self, seed: int, *, wild: bool = False) -> None:
        self.random = random.Random(seed)
        self.wild = wild
        self.defined: list[str] = []
        self.made: list[dict[str, Any]] = []

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def maybe(self, chance: float = 0.3) -> bool:
        return self.random.random() < chance

    def schema(self) -> Any:
        self.defined, self.made = [], []
        made = self.type(3, None)
        # A bare primitive tells little.
        return made if (isinstance(made, dict) and "name" in made) or self.maybe(0.1) else self.record(3, None)

    def type(self, depth: int, space: str | None, *, in_union: bool = False) -> Any:
        kinds = [
            "primitive",
            "primitive",
            "logical",
            "record",
            "record",
            "enum",
            "enum",
            "fixed",
            "fixed",
            "array",
            "map",
        ]
        kinds += ["name", "name"] + ([] if in_union and not self.wild else ["union", "union"])
        kind = "primitive" if depth == 0 else self.one(*kinds)
        if self.wild and depth and self.maybe(0.12):
            # names defined later, never, or twice
            return self.one("R", "S", "T", "n.R", *(copy.deepcopy(made) for made in self.made[-1:]))
        match kind:
            case "logical":
                return self.one(
                    {"type": "long", "logicalType": "timestamp-millis"},
                    {"logicalType": "decimal", "type": "bytes", "scale": 2, "precision": 4},
                    {"type": "bytes", "logicalType": "decimal", "precision": 0},
                    {"type": "string", "logicalType": "nobody-knows"},
                    {"type": "int", "x": {"b": 1.5, "a": [1e10, 1e-5, 123456789.125, None, "é\u0001"]}},
                    {"type": "string", "avro.java.string": "String"},
                )
            case "array":
                return {"type": "array", "items": self.type(depth - 1, space)}
            case "map":
                return {"values": self.type(depth - 1, space), "type": "map", **({"p": 1} if self.maybe() else {})}
            case "union":
                return self.union(depth, space)
            case "name" if self.defined and (self.wild or not in_union):
                return self.one(*self.defined)
            case "enum":
                return self.enum(space)
            case "fixed":
                return {"type": "fixed", "size": self.one(4, 8, 16), **self.named(space)[0]}
            case "record":
                return self.record(depth, space)
        return self.one(*PRIMITIVES)

    def union(self, depth: int, space: str | None) -> list[Any]:
        branches = [self.type(depth - 1, space, in_union=True) for _ in range(self.random.randint(1, 3))]
        if self.wild:
            return branches
        union_branches: dict[str, Any] = {}
        for branch in branches:
            kind = branch if isinstance(branch, str) else branch.get("name") or branch["type"]
            union_branches.setdefault(kind, branch)
        return list(union_branches.values())

    def enum(self, space: str | None) -> dict[str, Any]:
        symbols = self.random.sample(["A", "B", "C", "D"], self.random.randint(1, 4))
        made = {"type": "enum", "symbols": symbols, **self.named(space)[0]}
        if self.maybe(0.25):
            made["default"] = self.one("A", "B") if self.wild else self.one(*symbols)
        self.made.append(made)
        return made

    def named(self, space: str | None) -> tuple[dict[str, Any], str | None]:
        free = [name for name in ("R", "S", "T", "U", "V", "W", "X", "Y", "Z", "P", "Q") if name not in self.names()]
        name = (
            self.one("R", "S", "T", "n.R", "1R", "R-S", "", "m..n.S")
            if self.wild and self.maybe()
            else self.one(*free or ["R"])
        )
        if not self.wild and self.maybe(0.15):
            name = f"{self.one('n', 'm.n')}.{name}"
        made: dict[str, Any] = {"name": name}
        if self.maybe():
            made["namespace"] = self.one("n", "m.n", "")
        if self.maybe(0.35):
            made["aliases"] = self.random.sample(
                ["R", "S", "T", "U", "n.R", "n.S", "x.T", ".V"], self.random.randint(1, 3)
            )
        if self.maybe(0.15):
            made["doc"] = self.one("", 'quote " and \\', "täxt\n")
        inner = name.rpartition(".")[0] or made.get("namespace", space) or None
        self.defined.append(f"{inner}.{name.rpartition('.')[2]}" if inner else name)
        return made, inner

    def names(self) -> set[str]:
        return {name.rpartition(".")[2] for name in self.defined}

    def record(self, depth: int, space: str | None) -> dict[str, Any]:
        head, inner = self.named(space)
        made = {"type": self.one("record", "record", "record", "record", "error"), **head}
        names = self.random.sample(["a", "b", "c", "d"], self.random.randint(0, 4))
        made["fields"] = [self.field(name, depth, inner) for name in names]
        if self.wild and self.maybe(0.1) and made["fields"]:
            made["fields"].append(made["fields"][0])
        self.made.append(made)
        return made

    def field(self, name: str, depth: int, space: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.type(depth - 1, space)}
        if self.wild and self.maybe():
            made["default"] = self.one(None, 1, 0, "x", True, 1.5, [], {}, 1e20, "A", "NaN", "1.5", 1 << 40)
        elif isinstance(made["type"], str) and made["type"] in DEFAULTS and self.maybe(0.5):
            made["default"] = DEFAULTS[made["type"]]
        if self.maybe(0.15):
            made["aliases"] = self.random.sample(["a", "b", "e"], self.random.randint(1, 2))
        if self.maybe(0.1):
            made["order"] = self.one("ignore", "descending", "ASCENDING")
        if self.maybe(0.1):
            made["doc"] = "d"
        if self.maybe(0.1):
            made["custom"] = {"z": 1, "a": 2}
        return made

    # -- what may become of a schema

    def changed(self, schema: Any) -> Any:
        """The schema with one or two places changed in one of the ways that matter."""
        holder = {"root": copy.deepcopy(schema)}
        for _ in range(self.one(1, 1, 1, 2)):
            slots: list[tuple[Any, Any]] = []
            self.places(holder, "root", slots)
            changes: list[Callable[[], None]] = []
            for where, key in slots:
                changes += self.changes(where, key)
            if changes:
                self.one(*changes)()
        return holder["root"]

    def places(self, holder: Any, key: Any, slots: list[tuple[Any, Any]]) -> None:
        slots.append((holder, key))
        value = holder[key]
        if isinstance(value, list):
            for index in range(len(value)):
                self.places(value, index, slots)
        elif isinstance(value, dict):
            for inner in ("items", "values"):
                if inner in value:
                    self.places(value, inner, slots)
            for field in value.get("fields", ()):
                self.places(field, "type", slots)

    def changes(self, holder: Any, key: Any) -> list[Callable[[], None]]:
        value = holder[key]
        if isinstance(value, list):
            drop = lambda: value.pop(self.random.randrange(len(value)))  # noqa: E731
            return [drop, drop, lambda: holder.__setitem__(key, value[0])] if value else []
        if not isinstance(value, dict) or "name" not in value:
            return [lambda: holder.__setitem__(key, self.one(*PRIMITIVES, ["null", "int"]))]
        made: list[Callable[[], None]] = [
            lambda: value.update(name=self.one("R", "S", "T", "Other")),
            lambda: value.update(namespace=self.one("n", "m.n", "other", "")),
            lambda: value.update(aliases=self.random.sample(["R", "S", "T", "n.R", "x.T", "U", "V"], 2)),
        ]
        match value["type"]:
            case "fixed":
                made += [lambda: value.update(size=self.one(2, 32))] * 4
            case "enum":
                made += [
                    lambda: value.update(symbols=self.random.sample(["A", "B", "C", "D", "E"], self.one(1, 2)))
                ] * 3
                made += [lambda: value.pop("default", None)]
            case _:
                fields = value["fields"]
                made += [lambda: fields.append({"name": self.one("e", "f"), "type": self.one("int", "string")})] * 3
                made += [lambda: fields.append({"name": "g", "type": "int", "default": 1})]
                if fields:
                    made += [lambda: fields.pop(self.random.randrange(len(fields)))] * 2
                    made += [lambda: self.one(*fields).update(name=self.one("a", "b", "h"))]
        return made
