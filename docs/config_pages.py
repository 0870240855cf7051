"""The reference pages of configuration keys: one for each component, one for each ``connector.class``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from pages import heading, table

from tidegate.kit.config import Key, families_of, keys_of

__all__ = ["config_pages", "plugins_of", "task_only"]

FOLDER: Final = "config"


@dataclass(frozen=True)
class Component:
    """A page about several ``@config`` classes, each a section."""

    title: str
    words: str
    sections: tuple[tuple[str, str], ...]
    """Heading and ``module:Class``."""


COMPONENTS: Final = {
    "broker": Component(
        "Broker keys",
        "Keys of `[broker]` in `tidegate.toml` and of `tidegate serve broker`. Keys of Apache Kafka that have no effect here, or are "
        "refused, are in [Broker keys of Apache Kafka](../kafka-broker-keys.md).",
        (
            ("The broker", "broker.config:BrokerConfig"),
            ("Client metrics subscriptions (`kafka-configs --entity-type client-metrics`)", "broker.telemetry.subscriptions:SubscriptionConfig"),
        ),
    ),
    "topics": Component(
        "Topic keys",
        "Keys of one topic, set when it is created or with `kafka-configs --entity-type topics`.",
        (("Topics", "broker.log.config:LogConfig"),),
    ),
    "groups": Component(
        "Group keys",
        "Keys of one group, set with `kafka-configs --entity-type groups`. Their defaults for all groups are [broker keys](broker.md).",
        (("Groups", "broker.groups.config.group_settings:GroupSettings"),),
    ),
    "kafka-clients": Component(
        "Keys of Kafka clients",
        "Keys of `[kafka]` in `tidegate.toml`, of `--property`, and of every client that a component makes, where they follow a prefix: "
        "`producer.`, `consumer.` and `admin.` in the worker, `producer.override.` and its like in a connector, `kafkastore.` in the registry.",
        (
            ("Connection", "broker.client.config:ConnectionSettings"),
            ("Producer", "broker.client.config:ProducerSettings"),
            ("Consumer", "broker.client.config:ConsumerSettings"),
        ),
    ),
    "registry": Component(
        "Schema registry keys",
        "Keys of `[registry]` in `tidegate.toml` and of `tidegate serve registry`.",
        (
            ("The registry", "registry.server.config:RegistryConfig"),
            ("Several registries over one log", "registry.log.cluster.config:ClusterConfig"),
        ),
    ),
    "registry-clients": Component(
        "Keys of schema registry clients",
        "Converters take these with their own keys; programs pass them to `registry.client.RegistryClient`.",
        (("The client", "registry.client.config:RegistryClientConfig"),),
    ),
    "connect": Component(
        "Connect worker keys",
        "Keys of `[connect]` in `tidegate.toml` and of `tidegate serve connect`.",
        (("The worker", "connect.config.worker:WorkerConfig"),),
    ),
    "connector": Component(
        "Keys of every connector",
        "Keys that each connector has beside those of its `connector.class`.",
        (
            ("Sources", "connect.config.connector:SourceConfig"),
            ("Sinks", "connect.config.connector:SinkConfig"),
            ("Sources that run jobs", "connect.config.connector:ScheduleConfig"),
            ("Sinks that run jobs", "connect.config.connector:JobConfig"),
            ("Groups of topics that a source creates (after `topic.creation.<group>.`)", "connect.config.connector:TopicGroup"),
            ("A transformation (after `transforms.<name>.`)", "connect.config.connector:TransformConfig"),
            ("Connectors written as a generator of rows", "connect.api.rows:RowsConfig"),
        ),
    ),
    "events": Component(
        "Events keys",
        "Keys of `[events]` in `tidegate.toml` and of `tidegate serve events`.",
        (("The events service", "events.config:EventsConfig"),),
    ),
    "console": Component(
        "Console keys",
        "Keys of `[console]` in `tidegate.toml` and of `tidegate serve console`.",
        (("The console", "tidegate.console.config:ConsoleConfig"),),
    ),
    "triggers": Component(
        "Trigger keys",
        "Keys of the process that runs triggers and flows. Under `tidegate up` they belong in `[events]`.",
        (("Triggers and flows", "events.triggers.config:TriggersConfig"),),
    ),
}  # fmt: skip


def plugins_of(*types: str) -> Iterator[Any]:
    """The plugins of these types that come with Tidegate."""
    import connect.converters
    import connect.transforms
    import connectors

    for owner in (connectors, connect.converters, connect.transforms):
        yield from (plugin for plugin in owner.register_plugins() if plugin.type.value in types)


def task_only() -> set[type]:
    """Classes of keys that a connector writes for its tasks; users do not set them."""
    classes = (plugin.load().task_config_class for plugin in plugins_of("source", "sink"))
    return {cls for cls in classes if cls is not None}


def config_pages() -> dict[str, Callable[[], str]]:
    """The functions that make the pages, by the page's path under docs/reference."""
    pages: dict[str, Callable[[], str]] = {f"{FOLDER}/README.md": _index}
    pages |= {f"{FOLDER}/{name}.md": partial(_component_page, component) for name, component in COMPONENTS.items()}
    pages[f"{FOLDER}/converters.md"] = partial(_plugins_page, "Converter keys", "converter", "header_converter")
    pages[f"{FOLDER}/transforms.md"] = partial(
        _plugins_page, "Keys of transformations and predicates", "transformation", "predicate"
    )
    for plugin in plugins_of("source", "sink"):
        pages[f"{FOLDER}/connectors/{plugin.name}.md"] = partial(_connector_page, plugin)
    return pages


def _index() -> str:
    components = [
        [f"[{c.title}]({name}.md)", c.words.partition(". ")[0].rstrip(".") + "."] for name, c in COMPONENTS.items()
    ]
    components = [[link, words.replace("](../", "](../")] for link, words in components]
    plugins = [
        ["[Converter keys](converters.md)", "Keys of converters, after `key.converter.` and `value.converter.`."],
        ["[Keys of transformations and predicates](transforms.md)", "Keys of each, after its name's prefix."],
    ]
    connectors = [
        [f"[`{plugin.name}`](connectors/{plugin.name}.md)", plugin.type.value, _other_names(plugin)]
        for plugin in sorted(plugins_of("source", "sink"), key=lambda plugin: plugin.name.rpartition(".")[2])
    ]
    return (
        heading("Configuration keys", "the `@config` classes")
        + table(["page", "keys"], components + plugins)
        + "\n## Connectors\n\n"
        + table(["`connector.class`", "type", "other names"], connectors)
    )


def _other_names(plugin: Any) -> str:
    """Other values of ``connector.class`` that mean this plugin: a short name that two plugins claim means one of them at most."""
    from connect.plugins.registry import short_names

    names = dict.fromkeys((*plugin.names[1:], *short_names(plugin)))
    return ", ".join(f"`{name}`" for name in names if _registry().find(name, plugin.type) == plugin)


@cache
def _registry() -> Any:
    from connect.plugins.registry import load_plugins

    return load_plugins(("connectors",), entry_points=False)


def _component_page(component: Component) -> str:
    parts = [heading(component.title, "the `@config` classes"), component.words, "\n\n"]
    for title, path in component.sections:
        module, _, name = path.partition(":")
        parts += [f"## {title}\n\n", _described(getattr(importlib.import_module(module), name)), "\n"]
    return "".join(parts)


def _plugins_page(title: str, *types: str) -> str:
    parts = [heading(title, "the plugins' `@config` classes")]
    classes: dict[type, list[Any]] = {}
    for plugin in plugins_of(*types):
        classes.setdefault(plugin.load().config_class, []).append(plugin)
    for cls, plugins in classes.items():
        names = sorted({name for plugin in plugins for name in plugin.names})
        parts.append(f"## {_title(names)}\n\n{', '.join(f'`{name}`' for name in names)}\n\n")
        parts.append(_described(cls) if keys_of(cls) or families_of(cls) else "It has no keys.\n")
        parts.append("\n")
    return "".join(parts)


def _title(names: list[str]) -> str:
    """The classes' simple names, each once, without ``$Key`` and ``$Value``."""
    return ", ".join(dict.fromkeys(name.rpartition(".")[2].partition("$")[0] for name in names))


def _connector_page(plugin: Any) -> str:
    cls = plugin.load()
    common = "source" if plugin.type.value == "source" else "sink"
    facts = [f"A {common}. "]
    if others := _other_names(plugin):
        facts.append(f"Also called {others}. ")
    if plugin.extra:
        facts.append(f"Needs `tidegate[{plugin.extra}]`. ")
    facts.append("Keys that every connector has are [on a page of their own](../connector.md).\n\n")
    keys = _described(cls.config_class) if keys_of(cls.config_class) else "It has no keys of its own.\n"
    return heading(plugin.name, "the connector's `@config` class") + "".join(facts) + keys


def _described(cls: type) -> str:
    """The class's words, then its keys: a table for each group, where keys have groups."""
    groups: dict[str, list[Key]] = {}
    for key in keys_of(cls):
        groups.setdefault(key.group, []).append(key)
    parts = (
        [f"{words}\n\n"]
        if (words := inspect.cleandoc(cls.__doc__ or "")) and not words.startswith(cls.__name__)
        else []
    )
    families = [[f"`{prefix}*`", "any", "-", "", "", doc] for prefix, doc in families_of(cls)]
    for group, keys in groups.items():
        parts += [f"### {group}\n\n"] if group and len(groups) > 1 else []
        parts.append(_table(map(_row, keys)) + "\n")
    if families:
        parts += ["### Keys with a prefix\n\n"] if groups else []
        parts.append(_table(families))
    return "".join(parts).rstrip("\n") + "\n"


def _table(rows: Iterable[list[Any]]) -> str:
    return table(["key", "type", "default", "valid", "importance", "what it does"], list(rows))


def _row(key: Key) -> list[Any]:
    default = "(required)" if key.required else f"`{_shown(key.default)}`" if key.default not in (None, "", []) else "-"
    doc = key.doc + (f" Also read as: {', '.join(f'`{alias}`' for alias in key.aliases)}." if key.aliases else "")
    doc += f" Deprecated: {key.deprecated}" if key.deprecated else ""
    return [f"`{key.name}`", key.type.value.lower(), default, key.valid or "", key.importance, doc]


def _shown(default: Any) -> str:
    """A default on one line: a newline as its escape."""
    return str(default).replace("\n", "\\n")
