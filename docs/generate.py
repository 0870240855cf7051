"""Writes docs/reference from the declarations in the code. ``--check`` compares instead and fails when a page is stale.

Run by ``make docs``; ``make check`` runs it with ``--check``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tidegate.kit.config import families_of, keys_of  # noqa: E402
from tidegate.kit.errors import TidegateError  # noqa: E402

REFERENCE = HERE / "reference"
PACKAGES = ("broker", "registry", "connect", "connectors", "events", "tidegate")


def heading(title: str, source: str) -> str:
    return f"<!-- Made from {source} by `make docs`. Do not edit. -->\n\n# {title}\n\n"


def _shown(default: Any) -> str:
    """A default on one line: a newline as its escape."""
    return str(default).replace("\n", "\\n")


def table(columns: list[str], rows: list[list[Any]]) -> str:
    def cell(value: Any) -> str:
        return str(value).replace("|", "\\|").replace("\n", " ")

    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in rows)]) + "\n"


def modules() -> Iterator[Any]:
    """Every module of ours that can be imported without starting anything."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if found.name.startswith("connect.testing."):  # keys of tests, which no user sets
                continue
            if found.name.endswith(("__main__", "_pb2")) or ".messages" in found.name:
                continue
            yield importlib.import_module(found.name)


def config_classes() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in modules():
        for _, member in inspect.getmembers(module, inspect.isclass):
            if member.__module__ == module.__name__ and "__config_keys__" in member.__dict__ and keys_of(member):
                found[f"{member.__module__}.{member.__qualname__}"] = member
    return dict(sorted(found.items()))


def config_page() -> str:
    """All configuration keys, class by class."""
    parts = [heading("Configuration keys", "the `@config` classes")]
    for name, cls in config_classes().items():
        parts.append(f"## {name}\n\n{inspect.cleandoc(cls.__doc__ or '')}\n\n")
        rows = []
        for key in keys_of(cls):
            default = (
                "(required)"
                if key.required
                else f"`{_shown(key.default)}`"
                if key.default not in (None, "", [])
                else "-"
            )
            doc = key.doc + (f" Also read as: {', '.join(key.aliases)}." if key.aliases else "")
            rows.append([f"`{key.name}`", key.type.value.lower(), default, key.valid or "", key.importance, doc])
        rows += [[f"`{prefix}*`", "any", "-", "", "", doc] for prefix, doc in families_of(cls)]
        parts.append(table(["key", "type", "default", "valid", "importance", "what it does"], rows) + "\n")
    return "".join(parts)


def cli_page() -> str:
    """Every command with its help."""
    import click

    from tidegate.cli import tidegate

    parts = [heading("Command line", "`tidegate.cli`")]

    def describe(command: click.Command, path: str) -> None:
        context = click.Context(command, info_name=path, max_content_width=100, terminal_width=100)
        parts.append(f"## {path}\n\n```\n{command.get_help(context)}\n```\n\n")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                describe(inner, f"{path} {name}")

    describe(tidegate, "tidegate")
    return "".join(parts)


def errors_page() -> str:
    """Every error class with its wire code."""
    rows = []
    seen = set()
    for module in modules():
        for name, member in inspect.getmembers(module, inspect.isclass):
            if (
                not issubclass(member, TidegateError)
                or member in seen
                or member.__module__.split(".")[0] not in PACKAGES
            ):
                continue
            seen.add(member)
            code = getattr(member, "code", None) or getattr(member, "error_code", None) or ""
            words = inspect.cleandoc(member.__doc__ or "").split("\n\n")[0].replace("\n", " ")
            retry = "yes" if member.retriable else "no"
            rows.append([f"`{member.__module__}`", f"`{name}`", code, member.http_status, retry, words])
    rows.sort(key=lambda row: (row[0], row[1]))
    return heading("Errors", "the error classes") + table(
        ["module", "error", "wire code", "HTTP", "trying again helps", "meaning"], rows
    )


def plugins_page() -> str:
    """Every plugin that comes with Tidegate, with the names configurations may use."""
    import connect.converters
    import connect.transforms
    import connectors

    rows = []
    for owner in (connectors, connect.converters, connect.transforms):
        for plugin in owner.register_plugins():
            names = ", ".join(f"`{name}`" for name in (*plugin.names, *plugin.short_names))
            rows.append([plugin.type.value, names, f"`{plugin.path}`", f"`{plugin.extra}`" if plugin.extra else ""])
    return heading("Plugins", "the `register_plugins` hooks") + table(["type", "names", "class", "extra"], rows)


def hooks_page() -> str:
    from connect.api import hookspecs

    parts = [heading("Hooks", "`connect/api/hookspecs.py`")]
    for name, member in inspect.getmembers(hookspecs, inspect.isfunction):
        if member.__module__ == hookspecs.__name__:
            parts.append(f"## {name}{inspect.signature(member)}\n\n{inspect.cleandoc(member.__doc__ or '')}\n\n")
    return "".join(parts)


def kafka_apis_page() -> str:
    """Every Kafka API the broker serves, with its versions."""
    from broker.handlers import ROUTES

    rows = []
    for key, route in ROUTES.items():
        served = f"{route.versions.start}-{route.versions.stop - 1}"
        more = f" (advertised from {route.advertised.start})" if route.advertised != route.versions else ""
        rows.append([key, route.key.title, served + more, " ".join(inspect.cleandoc(route.notes).split())])
    words = "What ApiVersions lists. Another API, or another version of these, ends the connection, as with Apache Kafka.\n\n"
    return (
        heading("Kafka APIs", "the handlers' table `broker.handlers.ROUTES`")
        + words
        + table(["key", "API", "versions", "what it does"], rows)
    )


def kafka_keys_page() -> str:
    """Every key that Apache Kafka's brokers have, and what it does here."""
    from broker.config import BrokerConfig
    from broker.log.config import BROKER_SYNONYMS
    from broker.resources.kafka_keys import KAFKA_KEYS
    from broker.unused_keys import REFUSED, UNUSED

    of_topics = {name: key for key, names in BROKER_SYNONYMS.items() for name, _ in names}
    aliases = {alias: key.name for key in keys_of(BrokerConfig) for alias in key.aliases}
    rows = []
    for name, key in KAFKA_KEYS.items():
        if name in REFUSED:
            here = f"refused: {REFUSED[name]}"
        elif name in UNUSED:
            here = f"no effect: {UNUSED[name]}"
        elif name in of_topics:
            here = f"applied: default of the topic key `{of_topics[name]}`"
        else:
            here = f"applied: another name of `{aliases[name]}`" if name in aliases else "applied"
        rows.append([f"`{name}`", "yes" if key.dynamic else "", here])
    words = (
        "All are kept and shown by `kafka-configs`. Those that are applied are described in [config.md](config.md), under "
        "`broker.config.BrokerConfig`. Those that are refused keep the broker from starting, where they are given with another value than "
        "Kafka's default.\n\n"
    )
    return (
        heading("Broker keys of Apache Kafka", "`broker.resources.kafka_keys` and `broker.unused_keys`")
        + words
        + table(["key", "can be changed at run time", "here"], rows)
    )


PAGES: dict[str, Callable[[], str]] = {
    "config.md": config_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "plugins.md": plugins_page,
    "hooks.md": hooks_page,
    "kafka-apis.md": kafka_apis_page,
    "kafka-broker-keys.md": kafka_keys_page,
}


def main(arguments: list[str]) -> int:
    stale = []
    REFERENCE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        path = REFERENCE / name
        text = make().rstrip() + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text)
    if "--check" in arguments and stale:
        print(f"stale: {', '.join(f'docs/reference/{name}' for name in stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
