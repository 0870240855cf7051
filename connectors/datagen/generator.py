"""Generates values for an Avro schema: random within the limits that its ``arg.properties`` set, or counted.

The properties are those of Confluent's avro-random-generator: ``options``, ``iteration``, ``range``, ``length``,
``regex``, ``prefix``, ``suffix``, ``odds``, ``keys``. The same record number and the same seed always give the same
value.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

from connect.api import DECIMAL, TIMESTAMP, ConnectError, Schema, SchemaType
from connectors.datagen.texts import texts_of

__all__ = ["Generate", "generator_of"]

Generate = Callable[[Random, int], Any]
"""Makes the value of the record with a given number, in the Python form of its Connect schema; numbers in the form of
its storage type.
"""

_LETTERS: Final = string.ascii_letters + string.digits
_INTEGERS: Final[Mapping[str, tuple[int, int]]] = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63)}
_YEARS_MS: Final = (946_684_800_000, 1_893_456_000_000)
"""The limits of a timestamp without a ``range``: the years 2000 to 2030."""
_DAY_MS: Final = 86_400_000
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "array": frozenset({"length", "options"}),
    "boolean": frozenset({"odds", "options", "iteration"}),
    "bytes": frozenset({"length", "range", "options"}),
    "double": frozenset({"range", "options", "iteration"}),
    "enum": frozenset({"options"}),
    "fixed": frozenset({"range", "options"}),
    "float": frozenset({"range", "options", "iteration"}),
    "int": frozenset({"range", "options", "iteration"}),
    "long": frozenset({"range", "options", "iteration"}),
    "map": frozenset({"length", "keys", "options"}),
    "null": frozenset(),
    "record": frozenset({"options"}),
    "string": frozenset({"length", "regex", "options", "iteration", "prefix", "suffix"}),
}


def generator_of(form: Any, schema: Schema) -> Generate:
    """A function that generates values of an Avro schema (given as JSON) whose Connect schema is ``schema``.

    Raises ConnectError that names the field whose properties are invalid.
    """
    return _Compiler().compiled(form, schema, "")


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def compiled(self, form: Any, schema: Schema, path: str) -> Generate:
        try:
            return self._compiled(form, schema, path)
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ConnectError(f"{path or 'the schema'}: arg.properties are not right: {error!r}") from error

    def _compiled(self, form: Any, schema: Schema, path: str) -> Generate:
        if isinstance(form, list):
            return self._union(form, schema, path)
        if isinstance(form, str):
            form = self._named.get(form.rpartition(".")[2]) or {"type": form}
        kind = form["type"]
        if isinstance(kind, list | Mapping):
            return self.compiled(kind, schema, path)
        if kind not in _KINDS:
            return self.compiled(kind, schema, path)
        if "name" in form:
            self._named[form["name"].rpartition(".")[2]] = form
        properties = form.get("arg.properties", {})
        if unknown := set(properties) - _KINDS[kind]:
            known = ", ".join(sorted(_KINDS[kind])) or "none"
            raise ConnectError(
                f"{path or 'the schema'}: {kind} has no arg.properties {sorted(unknown)}; it has: {known}"
            )
        if "options" in properties:
            return _options(properties["options"], schema, path)
        if "iteration" in properties:
            return _iteration(kind, properties)
        return self._plain(kind, form, properties, schema, path)

    def _plain(self, kind: str, form: Any, properties: Mapping[str, Any], schema: Schema, path: str) -> Generate:
        match kind:
            case "record":
                return self._record(form, schema, path)
            case "array":
                assert schema.value_schema is not None
                size, item = _length(properties), self.compiled(form["items"], schema.value_schema, f"{path}[]")
                return lambda random, n: [item(random, n) for _ in range(size(random))]
            case "map":
                return self._map(form, properties, schema, path)
            case "enum":
                symbols = form["symbols"]
                return lambda random, n: random.choice(symbols)
            case "string":
                return _string(properties)
            case "boolean":
                odds = float(properties.get("odds", 0.5))
                return lambda random, n: random.random() < odds
            case "null":
                return lambda random, n: None
        return _number(kind, form, properties, schema)

    def _record(self, form: Any, schema: Schema, path: str) -> Generate:
        fields = [
            (member["name"], self.compiled(member["type"], field.schema, f"{path}.{member['name']}".lstrip(".")))
            for member, field in zip(form["fields"], schema.fields, strict=True)
        ]
        return lambda random, n: {name: made(random, n) for name, made in fields}

    def _map(self, form: Any, properties: Mapping[str, Any], schema: Schema, path: str) -> Generate:
        assert schema.value_schema is not None
        size, keys = _length(properties), _keys(properties.get("keys", {}))
        item = self.compiled(form["values"], schema.value_schema, f"{path}{{}}")
        return lambda random, n: [
            (key, item(random, n)) for key in {keys(random, n): None for _ in range(size(random))}
        ]

    def _union(self, branches: Sequence[Any], schema: Schema, path: str) -> Generate:
        others = [branch for branch in branches if branch not in ("null", {"type": "null"})]
        if len(others) == 1:
            made = [self.compiled(others[0], schema, path)]
        else:
            made = [
                _member(field.name, self.compiled(branch, field.schema, path))
                for branch, field in zip(others, schema.fields, strict=True)
            ]
        every: list[Generate] = [*made, *([lambda random, n: None] if len(others) < len(branches) else [])]
        return lambda random, n: random.choice(every)(random, n)


def _member(name: str, generate: Generate) -> Generate:
    return lambda random, n: {name: generate(random, n)}


def _number(kind: str, form: Any, properties: Mapping[str, Any], schema: Schema) -> Generate:
    bounds = properties.get("range", {})
    if schema.name == DECIMAL:
        return _decimal(form, bounds)
    if kind in ("bytes", "fixed"):
        size = _length(properties) if kind == "bytes" else lambda random: int(form["size"])
        return lambda random, n: random.randbytes(size(random))
    if kind in ("float", "double"):
        low, high = float(bounds.get("min", 0.0)), float(bounds.get("max", 1.0))
        _ordered(low, high)
        return lambda random, n: random.uniform(low, high)
    least, most = _INTEGERS[kind]
    if schema.name == TIMESTAMP:
        least, most = _YEARS_MS
    elif form.get("logicalType") == "date":
        least, most = (bound // _DAY_MS for bound in _YEARS_MS)
    elif form.get("logicalType") == "time-millis":
        least, most = 0, _DAY_MS
    first, end = int(bounds.get("min", least)), int(bounds.get("max", most))
    _ordered(first, end)
    return lambda random, n: random.randrange(first, end)


def _decimal(form: Any, bounds: Mapping[str, Any]) -> Generate:
    unit = Decimal(1).scaleb(-int(form.get("scale", 0)))
    bound = 10 ** min(int(form.get("precision", 38)), 38) - 1
    low = -bound if "min" not in bounds else int(Decimal(str(bounds["min"])) / unit)
    high = bound if "max" not in bounds else int(Decimal(str(bounds["max"])) / unit)
    low, high = max(low, -bound), min(high, bound)
    _ordered(low, high)
    return lambda random, n: Decimal(random.randrange(low, high)) * unit


def _ordered(low: float, high: float) -> None:
    if low >= high:
        raise ValueError(f"the min of range, {low}, should be below its max, {high}")


def _string(properties: Mapping[str, Any]) -> Generate:
    before, behind = str(properties.get("prefix", "")), str(properties.get("suffix", ""))
    if "regex" in properties:
        if "length" in properties:
            raise ValueError("give regex or length, not both")
        text = texts_of(properties["regex"])
        return lambda random, n: f"{before}{text(random)}{behind}"
    size = _length(properties)
    return lambda random, n: f"{before}{''.join(random.choices(_LETTERS, k=size(random)))}{behind}"


def _keys(properties: Mapping[str, Any]) -> Generate:
    if "options" in properties:
        return _options(properties["options"], Schema(SchemaType.STRING), "keys")
    return _string(properties)


def _length(properties: Mapping[str, Any]) -> Callable[[Random], int]:
    bounds = properties.get("length", {"min": 8, "max": 16})
    if not isinstance(bounds, Mapping):
        exact = int(bounds)
        return lambda random: exact
    first, end = int(bounds.get("min", 0)), int(bounds.get("max", 1 << 16))
    if not 0 <= first < end:
        raise ValueError(f"length is from {first} to before {end}; min should be below max")
    return lambda random: random.randrange(first, end)


def _options(options_form: Any, schema: Schema, path: str) -> Generate:
    if not isinstance(options_form, list) or not options_form:
        raise ValueError("options should be a list that is not empty; a file is not supported")
    options = [_option(option, schema, path) for option in options_form]
    return lambda random, n: random.choice(options)


def _option(form: Any, schema: Schema, path: str) -> Any:
    """A value from JSON in its Python form. Raises ConnectError where it has another type than the schema."""
    if form is None and schema.optional:
        return None
    match schema.type:
        case SchemaType.STRUCT if isinstance(form, Mapping):
            return {
                field.name: _option(form.get(field.name), field.schema, f"{path}.{field.name}")
                for field in schema.fields
            }
        case SchemaType.ARRAY if isinstance(form, list) and schema.value_schema is not None:
            return [_option(item, schema.value_schema, path) for item in form]
        case SchemaType.MAP if isinstance(form, Mapping) and schema.value_schema is not None:
            return [(key, _option(item, schema.value_schema, path)) for key, item in form.items()]
        case SchemaType.BYTES if schema.name == DECIMAL and isinstance(form, int | float | str):
            return Decimal(str(form))
        case SchemaType.BYTES if isinstance(form, str):
            return form.encode()
        case SchemaType.STRING if isinstance(form, str):
            return form
        case SchemaType.BOOLEAN if isinstance(form, bool):
            return form
        case SchemaType.FLOAT32 | SchemaType.FLOAT64 if isinstance(form, int | float) and not isinstance(form, bool):
            return float(form)
        case SchemaType.INT8 | SchemaType.INT16 | SchemaType.INT32 | SchemaType.INT64 if type(form) is int:
            return form
    raise ConnectError(
        f"{path or 'the schema'}: {form!r} is not one of its options, since it should be {schema.type.value}"
    )


def _iteration(kind: str, properties: Mapping[str, Any]) -> Generate:
    """``start`` plus ``step`` for each record; beginning again at ``start`` when ``restart`` is reached."""
    iteration = properties["iteration"]
    if kind == "boolean":
        first = bool(iteration["start"])
        return lambda random, n: first ^ bool(n % 2)
    number = float if kind in ("float", "double") else int
    start = number(iteration["start"])
    restart = number(iteration["restart"]) if "restart" in iteration else None
    step = number(iteration.get("step", 1 if restart is None or restart > start else -1))
    if step == 0 or (restart is not None and (restart - start) * step <= 0):
        raise ValueError(f"iteration goes from {start} by {step} to {restart}: it never gets there")
    before, size = (
        number(iteration.get("initial", start)) - start,
        abs(restart - start) if restart is not None else None,
    )
    sign = 1 if step > 0 else -1

    def counted(_: Random, n: int) -> Any:
        at = abs(n * step + before)
        return start + sign * (at if size is None else at % size)

    if kind != "string":
        return counted
    ahead, behind = str(properties.get("prefix", "")), str(properties.get("suffix", ""))
    return lambda random, n: f"{ahead}{counted(random, n)}{behind}"
