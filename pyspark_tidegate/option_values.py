"""Values of options: what readers and writers have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tidegate.kit.errors import UsageError

__all__ = ["choice", "flag", "json_of", "number", "sorted_out"]

_KAFKA: Final = "kafka."
_REGISTRY: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")


def sorted_out(raw: Mapping[str, str], known: Iterable[str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The options in lower case, the settings of the Kafka client among them, and those of the registry's client.

    Raises UsageError for an option that is not known, and without ``kafka.bootstrap.servers``.
    """
    options = {name.lower(): value for name, value in raw.items()}
    kafka = {name.removeprefix(_KAFKA): value for name, value in options.items() if name.startswith(_KAFKA)}
    registry = {name: value for name, value in options.items() if name.startswith(_REGISTRY)}
    unknown = [name for name in options if name not in known and not name.startswith((_KAFKA, *_REGISTRY))]
    if unknown:
        raise UsageError(f"the option {unknown[0]} is not known: {', '.join(known)}, kafka.* and schema.registry.* are")
    if not kafka.get("bootstrap.servers"):
        raise UsageError("the option kafka.bootstrap.servers is missing: give host:port of the cluster")
    return options, kafka, registry


def choice(options: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = options.get(name, default).strip().lower()
    if value not in choices:
        raise UsageError(f"the option {name} is {value!r}: it must be one of {', '.join(choices)}")
    return value


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    return choice(options, name, ("true", "false"), str(default).lower()) == "true"


def number(options: Mapping[str, str], name: str, default: int = 0) -> int:
    text = options.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the option {name} is {text!r}: it must be a whole number")
    return int(text)


def json_of(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(f"the option {name} is {text!r}, which is not JSON") from None
