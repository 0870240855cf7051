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
sys.path[:0] = [str(HERE.parent), str(HERE)]

from api_pages import api_pages  # noqa: E402
from config_pages import config_pages  # noqa: E402
from pages import heading, table  # noqa: E402

from tidegate.kit.config import keys_of  # noqa: E402
from tidegate.kit.errors import TidegateError  # noqa: E402

REFERENCE = HERE / "reference"
PACKAGES = ("broker", "registry", "connect", "connectors", "events", "tidegate")


def modules() -> Iterator[Any]:
    """Every module of ours that can be imported without starting anything."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if module.name.startswith("connect.testing."):  # keys of tests, which no user sets
                continue
            if module.name.endswith(("__main__", "_pb2")) or ".messages" in module.name:
                continue
            yield importlib.import_module(module.name)


def config_classes() -> dict[str, type]:
    classes: dict[str, type] = {}
    for module in modules():
        for _, member in inspect.getmembers(module, inspect.isclass):
            if member.__module__ == module.__name__ and "__config_keys__" in member.__dict__ and keys_of(member):
                classes[f"{member.__module__}.{member.__qualname__}"] = member
    return dict(sorted(classes.items()))


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
    """Every hook that a distribution may implement: what declares it, when it is called, an example."""
    from connect.api import hookspecs
    from events.triggers import api

    words = (
        "A distribution adds to Tidegate through these hooks. It names a module in the entry-point group `tidegate`, and functions of that "
        "module, marked with the hook's marker, are called. Tidegate's own plugins use the same hooks.\n\n"
        '```toml\n[project.entry-points.tidegate]\nmy-plugins = "my_package.plugins"\n```\n\n'
    )
    parts = [heading("Hooks", "the hook specifications"), words]
    for module, marker in ((hookspecs, "connect.api.hookimpl"), (api, "events.triggers.hookimpl")):
        for name, member in inspect.getmembers(module, inspect.isfunction):
            if member.__module__ == module.__name__ and hasattr(member, "tidegate_spec"):
                signature = str(inspect.signature(member)).replace("'", "")
                parts.append(f"## {name}\n\n```python\n@{marker}\ndef {name}{signature}: ...\n```\n\n")
                parts.append(f"{inspect.cleandoc(member.__doc__ or '')}\n\n")
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
    from broker.kafka_keys import KAFKA_KEYS
    from broker.log.config import BROKER_SYNONYMS
    from broker.unused_keys import REFUSED, UNUSED

    of_topics = {name: key for key, names in BROKER_SYNONYMS.items() for name, _ in names}
    aliases = {alias: key.name for key in keys_of(BrokerConfig) for alias in key.aliases}
    rows = []
    for name, key in KAFKA_KEYS.items():
        if name in REFUSED:
            note = f"refused: {REFUSED[name]}"
        elif name in UNUSED:
            note = f"no effect: {UNUSED[name]}"
        elif name in of_topics:
            note = f"applied: default of the topic key `{of_topics[name]}`"
        else:
            note = f"applied: another name of `{aliases[name]}`" if name in aliases else "applied"
        rows.append([f"`{name}`", "yes" if key.dynamic else "", note])
    words = (
        "All are kept and shown by `kafka-configs`. Those that are applied are described in "
        "[broker keys](config/broker.md). Those that are refused keep the broker from starting, where they are given with another value than "
        "Kafka's default.\n\n"
    )
    return (
        heading("Broker keys of Apache Kafka", "`broker.kafka_keys` and `broker.unused_keys`")
        + words
        + table(["key", "can be changed at run time", "here"], rows)
    )


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "plugins.md": plugins_page,
    "hooks.md": hooks_page,
    "kafka-apis.md": kafka_apis_page,
    "kafka-broker-keys.md": kafka_keys_page,
    **config_pages(),
    **api_pages(),
}


def leftovers() -> list[Path]:
    """Pages that were generated once and are not any more."""
    made = {REFERENCE / name for name in PAGES}
    return [
        path for path in REFERENCE.rglob("*.md") if path not in made and path.read_text().startswith("<!-- Made from ")
    ]


def main(arguments: list[str]) -> int:
    stale = [str(path.relative_to(REFERENCE)) for path in leftovers()]
    if "--check" not in arguments:
        for path in leftovers():
            path.unlink()
    for name, make in PAGES.items():
        path = REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
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
