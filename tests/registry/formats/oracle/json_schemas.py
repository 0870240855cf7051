"""Random JSON Schemas in pairs that differ slightly."""

from __future__ import annotations

import copy
import random
from typing import Any

DRAFTS = (
    None,
    None,
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
)
TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
NAMES = ("a", "b", "c", "d1")


class Schemas:
    """Chance with a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.draft = self.random.choice(DRAFTS)
        self.modern = "/draft/20" in (self.draft or "")
        self.old = "draft-04" in (self.draft or "")

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def root(self) -> dict[str, Any]:
        made = self.object(3)
        if self.maybe(0.5):
            made.setdefault(self.one("definitions", "$defs"), {})
            for name in ("x", "y"):
                made.setdefault("definitions", {})[name] = self.schema(2)
        if self.draft:
            made["$schema"] = self.draft
        if self.maybe(0.15):
            made["id" if self.old else "$id"] = self.one("urn:one", "http://example.com/one", "http://example.com/two")
        return made

    def schema(self, depth: int) -> Any:
        chance = self.random.random()
        if not self.old and chance < 0.06:
            return self.one(True, False)
        if chance < 0.1:
            return {}
        if chance < 0.17:
            return {"$ref": self.one("#/definitions/x", "#/$defs/y", "#/definitions/y", "#")}
        if depth and chance < 0.32:
            keyword = self.one("allOf", "anyOf", "oneOf", "anyOf", "oneOf")
            made = {keyword: [self.schema(depth - 1) for _ in range(self.one(1, 2, 2, 3))]}
            return {**made, **self.about(self.one(*TYPES), depth)} if self.maybe(0.15) else made
        if chance < 0.38:
            return {"enum": self.random.sample(["A", "B", "C", 1, 2, 1.5, None, True], self.one(1, 2, 3, 4))}
        if not self.old and chance < 0.42:
            return {"const": self.one("A", 1, 2.5, True, {"k": 1}, [1])}
        if depth and chance < 0.46:
            return {"not": self.schema(depth - 1)}
        if depth and not self.old and chance < 0.49:
            return {"if": self.schema(depth - 1), "then": self.schema(depth - 1)}
        if chance < 0.56:
            types = self.random.sample(TYPES, self.one(1, 2, 2, 3))
            return {"type": types, **(self.about(types[0], depth) if self.maybe(0.6) else {})}
        if chance < 0.62:
            return self.about(self.one(*TYPES), depth)
        name = self.one(*TYPES)
        made = {"type": name, **self.about(name, depth)}
        if self.maybe(0.1):
            made.update(self.about(self.one(*TYPES), depth))
        if self.maybe(0.1):
            made["enum"] = self.random.sample(["A", "B", "C"], 2)
        return self.annotated(made)

    def annotated(self, made: dict[str, Any]) -> dict[str, Any]:
        for keyword, values in (
            ("title", ("t", "u")),
            ("description", ("d", "täxt")),
            ("default", (None, 1, 1.50, "x", {"b": 1, "a": [1e10, 1e-7, -0.0]})),
            ("connect.type", ("bytes", "int8")),
            ("format", ("date", "time")),
        ):
            if self.maybe(0.06):
                made[keyword] = self.one(*values)
        return made

    def about(self, name: str, depth: int) -> dict[str, Any]:
        """Keywords about values of a type."""
        match name:
            case "string":
                options = {"minLength": (0, 1, 5), "maxLength": (5, 6, 10), "pattern": ("^a", "b+")}
                return {keyword: self.one(*values) for keyword, values in options.items() if self.maybe(0.35)}
            case "integer" | "number":
                limits = {"minimum": (0, 1, 1.0, 1.5), "maximum": (10, 10.0, 20), "multipleOf": (1, 2, 0.5, 3, 4)}
                made = {keyword: self.one(*values) for keyword, values in limits.items() if self.maybe(0.35)}
                # A lowered exclusive maximum is left to a test of our own: there Confluent reads another keyword.
                if self.maybe(0.25):
                    made["exclusiveMinimum"] = self.one(True, False) if self.old else self.one(0, 1, 2.5)
                return made
            case "array":
                return self.array(depth)
            case "object":
                return self.object(depth, typed=False)
        return {}

    def array(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if depth and self.maybe(0.7):
            if self.maybe(0.6):
                made["items"] = self.schema(depth - 1)
            else:
                first = [self.schema(depth - 1) for _ in range(self.one(1, 2, 3))]
                made["prefixItems" if self.modern else "items"] = first
                if self.maybe(0.5):
                    made["items" if self.modern else "additionalItems"] = self.openness(depth)
        for keyword, values in (("minItems", (0, 1, 2)), ("maxItems", (3, 4, 5)), ("uniqueItems", (True, False))):
            if self.maybe(0.2):
                made[keyword] = self.one(*values)
        if depth and self.modern and self.maybe(0.2):
            made["unevaluatedItems"] = self.openness(depth)
        if depth and self.modern and self.maybe(0.2):
            made["contains"] = self.schema(depth - 1)
            made["minContains"] = self.one(1, 2)
            if self.maybe(0.5):
                made["maxContains"] = self.one(3, 4)
        return made

    def openness(self, depth: int) -> Any:
        return self.one(True, False, False, self.schema(depth - 1) if not self.old else {"type": "string"})

    def object(self, depth: int, *, typed: bool = True) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object"} if typed else {}
        names = self.random.sample(NAMES, self.one(0, 1, 2, 3, 4))
        if depth and names:
            made["properties"] = {name: self.schema(depth - 1) for name in names}
        if self.maybe(0.3):
            made["required"] = self.random.sample(NAMES, self.one(1, 2))
        if depth and self.maybe(0.5):
            made["additionalProperties"] = self.openness(depth)
        if depth and self.maybe(0.12):
            made["patternProperties"] = {self.one("^d", "[ab]"): self.schema(depth - 1)}
        if depth and self.modern and self.maybe(0.15):
            made["unevaluatedProperties"] = self.openness(depth)
        for keyword, values in (("minProperties", (0, 1, 2)), ("maxProperties", (5, 6, 7))):
            if self.maybe(0.12):
                made[keyword] = self.one(*values)
        if depth and self.maybe(0.12):
            if self.modern:
                made["dependentRequired"] = {self.one("a", "b"): self.random.sample(["c", "d1", "e"], self.one(1, 2))}
            else:
                dependency: Any = self.one(["c"], ["c", "d1"], ["d1"], self.schema(depth - 1))
                made["dependencies"] = {self.one("a", "b"): dependency}
        if depth and self.modern and self.maybe(0.1):
            made["dependentSchemas"] = {"a": self.schema(depth - 1)}
        return made

    def changed(self, schema: Any) -> Any:
        """The schema with one to three places changed."""
        made = copy.deepcopy(schema)
        for _ in range(self.one(1, 1, 2, 3)):
            self.change(made)
        return made

    def change(self, made: dict[str, Any]) -> None:
        slots: list[tuple[Any, Any, int]] = []
        self.places(made, 3, slots)
        holder, key, depth = self.random.choice(slots)
        inner = holder[key]
        chance = self.random.random()
        if chance < 0.35 or not isinstance(inner, dict):
            holder[key] = self.schema(depth)
        elif chance < 0.6 and len(inner) > 1:
            inner.pop(self.random.choice([name for name in inner if name != "$schema"]))
        else:
            kind = inner.get("type")
            inner.update(self.about(kind if isinstance(kind, str) else self.one(*TYPES), depth))
            for keyword in ("properties",):
                if keyword in inner and self.maybe(0.5):
                    inner[keyword] = {**inner[keyword], self.one(*NAMES): self.schema(depth)}

    def places(self, schema: Any, depth: int, slots: list[tuple[Any, Any, int]]) -> None:
        for keyword in ("properties", "patternProperties", "definitions", "dependentSchemas"):
            for name, value in schema.get(keyword, {}).items():
                slots.append((schema[keyword], name, max(depth - 1, 0)))
                if isinstance(value, dict):
                    self.places(value, max(depth - 1, 0), slots)
        for keyword in ("items", "additionalProperties", "additionalItems", "not", "if", "then", "contains",
                        "allOf", "anyOf", "oneOf", "prefixItems"):  # fmt: skip
            value = schema.get(keyword)
            if isinstance(value, list):
                for index, item in enumerate(value):
                    slots.append((value, index, max(depth - 1, 0)))
                    if isinstance(item, dict):
                        self.places(item, max(depth - 1, 0), slots)
            elif value is not None:
                slots.append((schema, keyword, max(depth - 1, 0)))
                if isinstance(value, dict):
                    self.places(value, max(depth - 1, 0), slots)
        if not slots:
            slots.append(({"root": schema}, "root", depth))
