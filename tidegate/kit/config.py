"""Typed configuration keys. Each is declared once; parsing, validation, REST answers and reference pages are derived
from it.

Declare a class, read attributes::

    @config
    class HttpSinkConfig:
        url: str = key("http.url", doc="Where records are posted.", importance="high")
        batch_max: int = key("batch.max", default=500, check=at_least(1), doc="Records per request.")

    settings = parse(HttpSinkConfig, {"http.url": "http://127.0.0.1/"})
    settings.batch_max

Value syntax and error texts are those of Kafka's ``ConfigDef``, because Connect's clients match on them.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Self, TypeVar, dataclass_transform

from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.scrubbing import HIDDEN, masked, noted

__all__ = [
    "HIDDEN",
    "REQUIRED",
    "Check",
    "Importance",
    "Key",
    "KeyType",
    "KeyValue",
    "Password",
    "Visible",
    "all_of",
    "at_least",
    "between",
    "config",
    "distinct",
    "families_of",
    "family",
    "inherited",
    "judge",
    "key",
    "keys_of",
    "matches",
    "nearest_key",
    "nearest_name",
    "non_empty",
    "one_of",
    "pairs",
    "parse",
    "time_zone",
    "unknown_keys",
    "valid_regex",
    "valid_regexes",
    "validate",
]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a required key: omitting it is a problem."""

Importance = Literal["high", "medium", "low"]
Check = Callable[[Any], str | None]
"""Returns the problem with a parsed value, or None. Called with parsed values only, never with None."""


Visible = Callable[[Mapping[str, Any]], bool]


class KeyType(Enum):
    """Kafka's names for the types of configuration values (``ConfigDef.Type``)."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Password(str):
    """A secret: it prints as ``[hidden]``, and text concatenated with it is a secret too; ``.reveal()`` is the value.
    ``json`` and ``str.join`` see the value, so reveal or mask it before you pass it to them.

    Creating one within ``knowing`` (``tidegate.kit.scrubbing``) registers it with the secrets there.
    """

    __slots__ = ()

    def __new__(cls, value: str = "") -> Self:
        text = "".join(value)  # str() of a Password is not its value
        noted(text)
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __add__(self, other: str) -> Password:
        return Password(self.reveal() + "".join(other))

    def __radd__(self, other: str) -> Password:
        return Password("".join(other) + self.reveal())

    def reveal(self) -> str:
        return "".join(self)


@dataclass(frozen=True, slots=True)
class Key:
    """One declared configuration key. ``attribute`` is its attribute in a parsed configuration."""

    name: str
    type: KeyType
    default: Any
    doc: str
    attribute: str = ""
    importance: Importance = "medium"
    check: Check | None = None
    valid: str = ""
    """The allowed values in words, for reference pages; by default the description of ``check``."""
    group: str = ""
    display_name: str = ""
    width: str = "MEDIUM"
    aliases: tuple[str, ...] = ()
    """Older or foreign names of the same key, read in this order if the name itself is absent."""
    recommended: tuple[Any, ...] = ()
    deprecated: str = ""
    """Why it is deprecated, and what to use instead; empty for a current key."""
    dependents: tuple[str, ...] = ()
    keep_blanks: bool = False
    visible: Visible | None = None
    """Whether a form should show the key for these parsed values, by name. A key without this is always shown."""

    @property
    def allowed(self) -> tuple[str, ...]:
        """All its values, if they are few and known (``one_of``)."""
        return getattr(self.check, "allowed", ())

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def secret(self) -> bool:
        return self.type is KeyType.PASSWORD


@dataclass(frozen=True, slots=True)
class _Family:
    """All keys with a prefix, unparsed."""

    prefix: str
    doc: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """The result for one key: its declaration, the parsed value (None if it could not be parsed) and the problems."""

    key: Key
    value: Any
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Declared:
    """A key as written in the class body, before its attribute and type are known."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Inherited:
    """A parent's key with other arguments."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _DeclaredFamily:
    prefix: str
    doc: str


def key(
    name: str,
    *,
    doc: str,
    default: Any = REQUIRED,
    type: KeyType | None = None,  # noqa: A002 - the field's own word
    importance: Importance = "medium",
    check: Check | None = None,
    group: str = "",
    display_name: str = "",
    width: str = "MEDIUM",
    aliases: Sequence[str] = (),
    recommended: Sequence[Any] = (),
    deprecated: str = "",
    dependents: Sequence[str] = (),
    keep_blanks: bool = False,
    visible: Visible | None = None,
) -> Any:
    """Declare a key in the body of a ``@config`` class.

    The type follows from the annotation (bool, int, float, str, ``list[str]``, ``Password``; ``| None`` allows an
    absent value with ``default=None``). Pass ``type`` for types that an annotation can't express: SHORT, INT (an
    ``int`` is LONG otherwise), CLASS. ``keep_blanks`` keeps surrounding blanks, which Kafka strips.
    """
    arguments = dict(locals())
    for name_ in ("aliases", "recommended", "dependents"):
        arguments[name_] = tuple(arguments[name_])
    return _Declared(arguments)


def inherited(**changes: Any) -> Any:
    """Declare a parent's key again with changed arguments of ``key`` (``default``, ``doc``, ``check`` ...); the others
    stay.
    """
    return _Inherited(changes)


def family(prefix: str, *, doc: str) -> Any:
    """Declare a family of keys: a ``dict[str, str]`` of all keys with ``prefix``, prefix removed."""
    return _DeclaredFamily(prefix, doc)


C = TypeVar("C")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key, inherited, family))
def config(cls: type[C]) -> type[C]:
    """Turn a class into a configuration: a frozen, keyword-only dataclass with a default for each key that has one.

    Classes may inherit from one another; parents' keys come first. A method ``problems(self)`` may yield ``Problem``s
    about several keys together; it runs if each key is valid.
    """
    hints = typing.get_type_hints(cls)
    keys: dict[str, Key] = {}
    families: dict[str, _Family] = {}
    for base in reversed(cls.__mro__[1:]):
        keys.update(base.__dict__.get("__config_keys__", {}))
        families.update(base.__dict__.get("__config_families__", {}))
    for attribute in list(inspect.get_annotations(cls)):
        declared = cls.__dict__.get(attribute)
        if isinstance(declared, _Declared | _Inherited):
            if isinstance(declared, _Inherited):
                made = _changed_key(keys[attribute], declared.changes)
            else:
                made = _make_key(attribute, hints[attribute], declared.arguments)
            keys[attribute] = made
            default = dataclasses.MISSING if made.required else made.default
            factory: Any = dataclasses.MISSING
            if isinstance(default, list):
                factory, default = (lambda value=default: list(value)), dataclasses.MISSING
            setattr(cls, attribute, dataclasses.field(default=default, default_factory=factory))
        elif isinstance(declared, _DeclaredFamily):
            families[attribute] = _Family(declared.prefix, declared.doc, attribute)
            setattr(cls, attribute, dataclasses.field(default_factory=dict))
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _shown  # type: ignore[method-assign]
    made_class = dataclass(frozen=True, kw_only=True, repr=False)(cls)
    made_class.__config_keys__ = keys  # type: ignore[attr-defined]
    made_class.__config_families__ = families  # type: ignore[attr-defined]
    return made_class


def _shown(built: Any) -> str:
    """The ``repr`` of a configuration, without any secrets, so that it is safe in logs and traces."""
    parts = []
    for declared in dataclasses.fields(built):
        value = getattr(built, declared.name)
        name = built.__config_keys__[declared.name].name if declared.name in built.__config_keys__ else declared.name
        match value:
            case str():
                value = masked(name, value)
            case list():
                value = [masked(name, item) if isinstance(item, str) else item for item in value]
            case dict():
                value = {inner: masked(inner, item) if isinstance(item, str) else item for inner, item in value.items()}
        parts.append(f"{declared.name}={value!r}")
    return f"{type(built).__qualname__}({', '.join(parts)})"


def _make_key(attribute: str, annotation: Any, arguments: Mapping[str, Any]) -> Key:
    fields = dict(arguments)
    kind = fields.pop("type") or _type_of(annotation)
    default = fields["default"]
    if kind is KeyType.PASSWORD and isinstance(default, str):
        fields["default"] = Password(default)
    return Key(
        attribute=attribute,
        type=kind,
        valid=getattr(fields["check"], "valid", ""),
        **fields,
    )


def _changed_key(parent: Key, changes: Mapping[str, Any]) -> Key:
    valid = getattr(changes["check"], "valid", "") if "check" in changes else parent.valid
    return dataclasses.replace(parent, **changes, valid=valid)


_TYPES: Final = {
    bool: KeyType.BOOLEAN,
    int: KeyType.LONG,
    float: KeyType.DOUBLE,
    str: KeyType.STRING,
    Password: KeyType.PASSWORD,
}


def _type_of(annotation: Any) -> KeyType:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        annotation = members[0]
    if typing.get_origin(annotation) is list:
        return KeyType.LIST
    if typing.get_origin(annotation) is Literal:
        return KeyType.STRING
    return _TYPES[annotation]


def keys_of(cls: type) -> tuple[Key, ...]:
    """The keys of a ``@config`` class in declaration order, parents' first."""
    return tuple(cls.__config_keys__.values())  # type: ignore[attr-defined]


def families_of(cls: type) -> tuple[tuple[str, str], ...]:
    """The key families of a ``@config`` class as (prefix, doc)."""
    families: Iterable[_Family] = cls.__config_families__.values()  # type: ignore[attr-defined]
    return tuple((family_.prefix, family_.doc) for family_ in families)


def validate(cls: type, properties: Mapping[str, Any]) -> list[KeyValue]:
    """Validate each key separately and, if all are valid, all together. Never raises because of ``properties``.

    A problem with an undeclared key, for example of a family, has a separate entry at the end.
    """
    results = [judge(declared, properties) for declared in keys_of(cls)]
    if any(result.errors for result in results):
        return results
    together: dict[str, list[str]] = {}
    for problem in _cross_check(_build(cls, results, properties)):
        together.setdefault(problem.key, []).append(problem.message)
    judged = [dataclasses.replace(result, errors=tuple(together.pop(result.key.name, ()))) for result in results]
    undeclared = (Key(name, KeyType.STRING, None, "") for name in together)  # of a family; its value may be a secret
    return judged + [
        KeyValue(undeclared_key, None, tuple(together[undeclared_key.name])) for undeclared_key in undeclared
    ]


def parse(cls: type[C], properties: Mapping[str, Any]) -> C:
    """Parse a configuration from text values. Undeclared keys are ignored.

    Raises ConfigError with every problem at once.
    """
    results = [judge(declared, properties) for declared in keys_of(cls)]
    problems = [Problem(result.key.name, error) for result in results for error in result.errors]
    if problems:
        raise ConfigError(problems)
    built = _build(cls, results, properties)
    problems = list(_cross_check(built))
    if problems:
        raise ConfigError(problems)
    return built


def _build(cls: type[C], results: Iterable[KeyValue], properties: Mapping[str, Any]) -> C:
    values: dict[str, Any] = {result.key.attribute: result.value for result in results}
    families: Mapping[str, _Family] = cls.__config_families__  # type: ignore[attr-defined]
    for family_ in families.values():
        values[family_.attribute] = {
            name.removeprefix(family_.prefix): str(value)
            for name, value in properties.items()
            if name.startswith(family_.prefix)
        }
    return cls(**values)


def _cross_check(built: Any) -> Iterable[Problem]:
    check = getattr(built, "problems", None)
    return check() if callable(check) else ()


def judge(declared: Key, properties: Mapping[str, Any]) -> KeyValue:
    """Validate one key separately."""
    name = next((n for n in (declared.name, *declared.aliases) if n in properties), None)
    if name is None:
        if declared.required:
            missing = f'Missing required configuration "{declared.name}" which has no default value.'
            return KeyValue(declared, None, (missing,))
        default = list(declared.default) if isinstance(declared.default, list) else declared.default
        return KeyValue(declared, default, ())
    raw = properties[name]
    try:
        value = str(raw) if declared.keep_blanks and raw is not None else _read(declared.type, raw)
    except ValueError as error:
        shown = HIDDEN if declared.secret else raw
        return KeyValue(declared, None, (f"Invalid value {shown} for configuration {declared.name}: {error}",))
    if value is None and declared.required:
        return KeyValue(declared, None, (f"Invalid value null for configuration {declared.name}: must not be null",))
    if value is not None and declared.check is not None:
        wrong = declared.check(value)
        if wrong is not None:
            shown = HIDDEN if declared.secret else raw
            return KeyValue(declared, value, (f"Invalid value {shown} for configuration {declared.name}: {wrong}",))
    return KeyValue(declared, value, ())


_INT_RANGES: Final = {
    KeyType.SHORT: 1 << 15,
    KeyType.INT: 1 << 31,
    KeyType.LONG: 1 << 63,
}


def _read(kind: KeyType, raw: Any) -> Any:
    """Convert text to a value by Kafka's rules (``ConfigDef.parseType``); None stays None."""
    if raw is None:
        return None
    if kind is KeyType.PASSWORD:
        return raw if isinstance(raw, Password) else Password(raw)
    if kind is KeyType.LIST:
        if isinstance(raw, list | tuple):
            return [str(item) for item in raw]
        text = str(raw).strip()
        return [item.strip() for item in text.split(",")] if text else []
    if isinstance(raw, bool):
        raw = "true" if raw else "false"
    text = str(raw).strip() if not isinstance(raw, Password) else raw.reveal()
    if kind is KeyType.BOOLEAN:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ValueError("Expected value to be either true or false")
        return lowered == "true"
    if kind in _INT_RANGES:
        return _read_integer(kind, text)
    if kind is KeyType.DOUBLE:
        try:
            return float(text)
        except ValueError:
            raise ValueError("Not a number of type DOUBLE") from None
    return text


def _read_integer(kind: KeyType, text: str) -> int:
    bound = _INT_RANGES[kind]
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text) and -bound <= (number := int(text)) < bound:
        return number
    raise ValueError(f"Not a number of type {kind.value}")


def unknown_keys(sent: Iterable[str], known: Iterable[Key], prefixes: Iterable[str] = ()) -> list[str]:
    """The names of ``sent`` that no key, alias or prefix claims, in their order."""
    names = {name for declared in known for name in (declared.name, *declared.aliases)}
    starts = tuple(prefixes)
    return [name for name in sent if name not in names and not (starts and name.startswith(starts))]


def nearest_key(name: str, known: Iterable[Key]) -> str | None:
    """The known key name most similar to ``name``; None if none is similar."""
    return nearest_name(name, [declared.name for declared in known])


def nearest_name(name: str, names: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The one of ``names`` most similar to ``name``; None if none is similar. ``likeness`` is difflib's ratio, up to 1."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=likeness)), None)


def _described(check: Check, valid: str) -> Check:
    check.valid = valid  # type: ignore[attr-defined]
    return check


def at_least(bound: float) -> Check:
    return _described(lambda value: None if value >= bound else f"Value must be at least {bound}", f"[{bound},...]")


def between(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        if value < low:
            return f"Value must be at least {low}"
        return None if value <= high else f"Value must be no more than {high}"

    return _described(check, f"[{low},...,{high}]")


def one_of(*allowed: str, ignore_case: bool = False) -> Check:
    """A string, or every item of a list, is one of ``allowed``."""
    accepted = {value.lower() for value in allowed} if ignore_case else set(allowed)
    words = f"String must be one of{' (case insensitive)' if ignore_case else ''}: {', '.join(allowed)}"

    def check(value: Any) -> str | None:
        items = value if isinstance(value, list) else [value]
        return None if all((item.lower() if ignore_case else item) in accepted for item in items) else words

    described = _described(check, f"{'(case insensitive) ' if ignore_case else ''}[{', '.join(allowed)}]")
    described.allowed = allowed  # type: ignore[attr-defined]
    return described


def non_empty(value: Any) -> str | None:
    """A string or list must not be empty."""
    return None if len(value) else "String must be non-empty"


non_empty.valid = "non-empty string"  # type: ignore[attr-defined]


def distinct(value: list[str]) -> str | None:
    """A list must have no empty items and no duplicates."""
    if not all(value):
        return "Values must not be empty"
    return None if len(set(value)) == len(value) else "Values must not be duplicated"


distinct.valid = "no empty and no equal items"  # type: ignore[attr-defined]


def pairs(value: list[str]) -> str | None:
    """Every item of a list is a key and its value, ``k=v``."""
    wrong = next((item for item in value if not re.fullmatch(r"[^=]+=[^=]+", item)), None)
    return None if wrong is None else f"{wrong!r} should be a key and its value, as in k1=v1,k2=v2"


def all_of(*checks: Check) -> Check:
    """Run several checks; the first problem is returned."""

    def check(value: Any) -> str | None:
        return next((wrong for single in checks if (wrong := single(value)) is not None), None)

    return _described(check, "; ".join(text for check_ in checks if (text := getattr(check_, "valid", ""))))


def matches(pattern: str, words: str) -> Check:
    """A string must match ``pattern`` completely; ``words`` describe the expected form."""
    compiled = re.compile(pattern)
    return _described(lambda value: None if compiled.fullmatch(value) else f"String must be {words}", words)


def valid_regex(value: str) -> str | None:
    """A regular expression in Java's syntax."""
    from tidegate.kit.java_regex import JavaRegex

    try:
        JavaRegex(value)
    except ValueError as error:
        return f"Must be a valid regex: {error}"
    return None


valid_regex.valid = "valid regex"  # type: ignore[attr-defined]


def valid_regexes(value: list[str]) -> str | None:
    """A list of regular expressions in Java's syntax."""
    from tidegate.kit.java_regex import JavaRegex

    for item in value:
        try:
            JavaRegex(item)
        except ValueError as error:
            return f"Must be a comma-separated list of regular expressions; {item!r}: {error}"
    return None


def time_zone(*, or_empty: bool = False) -> Check:
    """The name must be a time zone in this machine's database."""

    def check(value: str) -> str | None:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            if value or not or_empty:
                ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return "Must be a time zone of the IANA database, such as Europe/Berlin"
        return None

    return check
