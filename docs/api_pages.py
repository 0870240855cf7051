"""The reference pages of the Python API, and the public surface that tests hold: both from ``__all__`` of the public modules."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property, partial
from typing import Any, Final, get_origin

from pages import heading, table

__all__ = ["PUBLIC_MODULES", "api_pages", "surface"]

PUBLIC_MODULES: Final = {
    "connect.api": "for authors of connectors, converters and transformations",
    "connect.notebook": "reading and writing topics from a notebook",
    "connect.testing": "the suites that a connector passes",
    "events.client": "a client of the events service",
    "events.triggers": "for functions that are called with platform events",
    "registry.client": "a client of any schema registry",
    "registry.serde": "Avro in Confluent's framing, as records and as Arrow columns",
    "broker.client": "a client of any Kafka, for asyncio",
    "broker.client.blocking": "the same for threads",
    "broker.client.columns": "Arrow columns to record batches and back",
}
"""The modules that the promise of docs/explanation/versioning.md is about."""
_DESCRIBED: Final = ("method", "class method", "static method", "property")


def api_pages() -> dict[str, Callable[[], str]]:
    """The functions that make the pages, by the page's path under docs/reference."""
    pages: dict[str, Callable[[], str]] = {"api/README.md": _index}
    return pages | {f"api/{name}.md": partial(_page, name) for name in PUBLIC_MODULES}


def _index() -> str:
    rows = [[f"[`{name}`]({name}.md)", words] for name, words in PUBLIC_MODULES.items()]
    return (
        heading("Python API", "`__all__` of the public modules")
        + "Other modules are internal. [Versioning](../../explanation/versioning.md) says what is promised about these.\n\n"
        + table(["module", "what it is"], rows)
    )


def _page(name: str) -> str:
    module = importlib.import_module(name)
    parts = [heading(name, f"`__all__` of `{name}`"), f"{_words(module)}\n\n"]
    for member_name, member in _members(module):
        parts += [f"## {member_name}\n\n", _code(_signature(member_name, member)), f"{_words(member)}\n\n"]
        for method_name, method in _methods(member):
            parts += [f"### {member_name}.{method_name}\n\n", _code(_signature(method_name, method))]
            parts.append(f"{_words(method)}\n\n")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


def surface() -> str:
    """Every public name with its signature, a line each: what a test compares with the recorded surface."""
    lines = []
    for name in PUBLIC_MODULES:
        for member_name, member in _members(importlib.import_module(name)):
            lines.append(f"{name}: {_signature(member_name, member)}")
            lines += [
                f"{name}: {member_name}.{_signature(method_name, method)}" for method_name, method in _methods(member)
            ]
    return "\n".join([*lines, *_commands()]) + "\n"


def _commands() -> Iterator[str]:
    """The command line: each command with its arguments and options."""
    import click

    from tidegate.cli import tidegate

    def walk(command: click.Command, path: str) -> Iterator[str]:
        options = []
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                names = "/".join((*parameter.opts, *parameter.secondary_opts))
                options.append(names if parameter.is_flag else f"{names}=")
            else:
                options.append(str(parameter.name).upper())
        yield " ".join([path, *sorted(options)])
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from walk(inner, f"{path} {name}")

    return walk(tidegate, "tidegate")


def _members(module: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(module.__all__):
        yield name, getattr(module, name)


def _methods(member: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class of ours defines, itself or through its bases."""
    if not inspect.isclass(member):
        return
    for attribute in inspect.classify_class_attrs(member):
        ours = attribute.defining_class.__module__.split(".")[0] in {
            name.split(".")[0] for name in (*PUBLIC_MODULES, "tidegate")
        }
        described = attribute.kind in _DESCRIBED or isinstance(attribute.object, cached_property)
        if ours and described and not attribute.name.startswith("_"):
            yield attribute.name, attribute.object


def _signature(name: str, member: Any) -> str:
    if isinstance(member, property | cached_property):
        getter = member.func if isinstance(member, cached_property) else member.fget
        returned = inspect.signature(getter).return_annotation if getter else ""
        return f"{name}: {_annotation(returned)}"
    member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    if inspect.isclass(member) and issubclass(member, Enum):
        return f"class {name}(Enum): {', '.join(f'{entry.name} = {entry.value!r}' for entry in member)}"
    if inspect.isclass(member):
        bases = ", ".join(base.__name__ for base in member.__bases__ if base is not object)
        return f"class {name}{f'({bases})' if bases else ''}: {name}{_parameters(member)}"
    if callable(member) and get_origin(member) is None:
        return f"{'async ' if inspect.iscoroutinefunction(member) else ''}{name}{_parameters(member)}"
    return f"{name} = {member!r}".replace("typing.", "").replace("collections.abc.", "")


def _parameters(member: Any) -> str:
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r" at 0x[0-9a-f]+", "", str(signature)).replace("'", "")
    return re.sub(r"ForwardRef\(([^()]*)\)", r"\1", text)


def _annotation(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", str(value))


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n\n"


def _words(member: Any) -> str:
    if not (
        inspect.ismodule(member)
        or inspect.isclass(member)
        or callable(member)
        or isinstance(member, property | cached_property | classmethod | staticmethod)
    ):
        return ""
    if inspect.isclass(member) and "__doc__" not in member.__dict__:
        return ""
    words = inspect.cleandoc(member.__doc__ or "")
    # A dataclass without a docstring is given its signature as one.
    return "" if inspect.isclass(member) and words.startswith(f"{member.__name__}(") else words
