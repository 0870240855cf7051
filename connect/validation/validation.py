"""Validates a connector's configuration and answers like Kafka Connect's ``config/validate`` (``ConfigInfos``).

Runs in a task host, where plugins may be imported, not in the process of the REST API.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.api.connector import JobTask, SourceJobTask
from connect.api.plugins import Plugin, PluginType
from connect.config.client_keys import client_key
from connect.config.cloud_keys import with_cloud_keys
from connect.config.connector import (
    JobConfig,
    ScheduleConfig,
    SinkConfig,
    SourceConfig,
    TopicGroup,
    TransformConfig,
    override_properties,
    sub_properties,
    topic_groups,
)
from connect.errors import BadRequest
from connect.plugins.registry import PluginRegistry
from connect.task.exactly_once import enabled_in, preflight_problems
from tidegate.kit.config import (
    HIDDEN,
    REQUIRED,
    Key,
    KeyType,
    KeyValue,
    Password,
    families_of,
    judge,
    keys_of,
    one_of,
    parse,
    validate,
)
from tidegate.kit.errors import Problem, TidegateError
from tidegate.kit.scrubbing import scrubbed

__all__ = ["CHECK_TIMEOUT_S", "ConfigInfos", "key_infos", "validate_connector"]

CHECK_TIMEOUT_S: Final = 10.0
"""The time limit of a connector's ``check`` of external systems."""

_GROUPS: Final = ("Common", "Transforms", "Predicates", "Error Handling")
_SOURCE_GROUPS: Final = ("Topic Creation", "Exactly Once Support", "offsets.topic")
_CONVERTER_TYPE: Final = Key(
    "converter.type",
    KeyType.STRING,
    None,
    "What the converter is for: key, value or header. The worker says it whatever is given.",
    importance="low",
    check=one_of("key", "value", "header"),
)
_COUNTED_TOGETHER: Final = {"Transforms": "Common", "Predicates": "Common"}
"""Groups whose keys Kafka Connect numbers as part of another group."""


@dataclass(slots=True)
class _Entry:
    """One key of the answer."""

    key: Key
    order: int
    value: Any
    errors: list[str]


@dataclass(slots=True)
class ConfigInfos:
    """The answer for one configuration. ``type`` is the connector's, for the caller only."""

    name: str
    type: PluginType
    entries: dict[str, _Entry] = field(default_factory=dict)
    families: list[str] = field(default_factory=list)
    """Prefixes of keys that the connector accepts without declaring each."""
    groups: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = [*_GROUPS, *(_SOURCE_GROUPS if self.type is PluginType.SOURCE else ())]

    @property
    def errors(self) -> list[str]:
        return [error for entry in self.entries.values() for error in entry.errors]

    def to_json(self) -> dict[str, Any]:
        values = {name: entry.value for name, entry in self.entries.items()}
        configs = [
            {
                "definition": _definition(entry.key, entry.order),
                "value": {
                    "name": entry.key.name,
                    "value": _text(entry.value),
                    "recommended_values": [_text(value) for value in entry.key.recommended],
                    "errors": entry.errors,
                    "visible": entry.key.visible is None or entry.key.visible(values),
                },
            }
            for entry in self.entries.values()
        ]
        return {"name": self.name, "error_count": len(self.errors), "groups": self.groups, "configs": configs}

    def add(self, results: Iterable[KeyValue], *, prefix: str = "", group: str | None = None) -> None:
        """Add validated keys, with ``prefix``; the first of a name stays. ``group`` replaces their own."""
        positions: dict[str, int] = {}
        for result in results:
            declared = replace(
                result.key,
                name=prefix + result.key.name,
                aliases=tuple(prefix + alias for alias in result.key.aliases),
                group=group or result.key.group,
                width=result.key.width if result.key.group else "NONE",
                display_name=result.key.display_name or result.key.name,
            )
            counted = _COUNTED_TOGETHER.get(declared.group, declared.group)
            positions[counted] = order = positions.get(counted, 0 if result.key.name != "type" else -1) + 1
            if declared.name in self.entries:
                continue
            errors = [error.replace(f" {result.key.name}:", f" {declared.name}:") for error in result.errors]
            errors = [error.replace(f'"{result.key.name}"', f'"{declared.name}"') for error in errors]
            self.entries[declared.name] = _Entry(declared, order if declared.group else -1, result.value, errors)
            if declared.group and declared.group not in self.groups:
                self.groups.append(declared.group)

    def hide(self, name: str, value: str, shown: str) -> None:
        """Show ``shown`` (a placeholder) instead of a key's value, also in errors."""
        entry = self.entries.get(name)
        if entry is not None:
            entry.value = shown if entry.value is not None and not entry.key.secret else entry.value
            entry.errors = [error.replace(value, shown) if value else error for error in entry.errors]

    def scrub(self) -> None:
        """Remove registered secrets from the errors."""
        for entry in self.entries.values():
            entry.errors = [scrubbed(error) for error in entry.errors]

    def blame(self, problem: Problem) -> None:
        """Add a problem to its key, or to ``connector.class`` if the answer has no such key."""
        has_entry = problem.key in self.entries
        text = problem.message if has_entry or not problem.key else f"{problem.key}: {problem.message}"
        self.entries[problem.key if has_entry else "connector.class"].errors.append(text)


def key_infos(cls: type) -> list[dict[str, Any]]:
    """A plugin's own keys, as ``GET /connector-plugins/{plugin}/config`` shows them."""
    infos = ConfigInfos("", PluginType.SOURCE)
    infos.add(KeyValue(declared, None, ()) for declared in keys_of(cls))
    return [_definition(entry.key, entry.order) for entry in infos.entries.values()]


def validate_connector(
    plugins: PluginRegistry,
    properties: Mapping[str, str | None],
    *,
    worker: Mapping[str, str] | None = None,
    check: bool = True,
) -> ConfigInfos:
    """Validate a configuration as a whole. With ``check`` the connector checks external systems, if everything else is
    valid.

    ``worker`` are the worker's properties, whose converters are the defaults. Raises BadRequest without
    ``connector.class``, UnknownPlugin if no connector has that name.
    """
    values = {name: value for name, value in properties.items() if value is not None}
    class_name = values.get("connector.class", "").strip()
    if not class_name:
        raise BadRequest(f"Connector config {_shown(properties)} contains no connector type")
    plugin = plugins.connector(class_name)
    values = with_cloud_keys(values, plugin.type)
    properties = {**properties, **values}
    infos = ConfigInfos(class_name, plugin.type)
    infos.add(validate(SourceConfig if plugin.type is PluginType.SOURCE else SinkConfig, properties))
    _judge_plugin_keys(plugins, infos, values)
    _show_defaults(plugins, infos, plugin, worker or {})
    if plugin.type is PluginType.SOURCE:
        _judge_topic_groups(infos, values)
    connector = _load(plugin, infos)
    if connector is not None:
        judged = validate(connector.config_class, properties)
        infos.add(_recommending(result) for result in judged)
        infos.families += [prefix for prefix, _ in families_of(connector.config_class)]
        if issubclass(connector.task_class, JobTask):
            infos.add(validate(JobConfig, properties))
        elif issubclass(connector.task_class, SourceJobTask):
            infos.add(validate(ScheduleConfig, properties))
            _refuse_conversions(infos, values)
    for name in values:
        # MirrorMaker's connectors have the clients' keys for encryption and logins among their own.
        if name.startswith(tuple(set(infos.families) & {"sasl.", "ssl."})) and (known := client_key(name)) is not None:
            infos.add([judge(known, values)])
    _add_overrides(infos, values)
    if connector is not None and plugin.type is PluginType.SOURCE and not infos.errors:
        source, connector_config = parse(SourceConfig, values), parse(connector.config_class, values)
        for problem in preflight_problems(connector, source, connector_config, enabled=enabled_in(worker or {})):
            infos.blame(problem)
    if check and connector is not None and not infos.errors:
        for problem in _check_outside(connector, values):
            infos.blame(problem)
    return infos


_CONVERSIONS: Final = ("transforms", "key.converter", "value.converter", "header.converter")


def _refuse_conversions(infos: ConfigInfos, properties: Mapping[str, str]) -> None:
    for name in _CONVERSIONS:
        if properties.get(name, "").strip():
            text = f"{name} is {properties[name]}, and the engine of this source writes its records itself: no transform or converter sees them"
            infos.entries[name].errors.append(text)


def _recommending(result: KeyValue) -> KeyValue:
    """The values of an enumeration as recommended values, as in Debezium's and Confluent's connectors."""
    return replace(result, key=replace(result.key, recommended=result.key.recommended or result.key.allowed))


def _show_defaults(plugins: PluginRegistry, infos: ConfigInfos, plugin: Plugin, worker: Mapping[str, str]) -> None:
    """Show the worker's and the plugin's defaults."""
    defaults = {
        "connector.plugin.version": plugin.version,
        "key.converter": worker.get("key.converter"),
        "value.converter": worker.get("value.converter"),
        "header.converter": worker.get("header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
    }
    for name in ("key.converter", "value.converter", "header.converter"):
        kind = PluginType.HEADER_CONVERTER if name == "header.converter" else PluginType.CONVERTER
        named_plugin = plugins.find(infos.entries[name].value or defaults[name] or "", kind)
        defaults[f"{name}.plugin.version"] = named_plugin.version if named_plugin is not None else None
    converters, header_converters = (
        _names(plugins, kind) for kind in (PluginType.CONVERTER, PluginType.HEADER_CONVERTER)
    )
    for name, default in defaults.items():
        entry = infos.entries[name]
        known = {"key.converter": converters, "value.converter": converters, "header.converter": header_converters}.get(
            name, () if default is None else (default,)
        )
        entry.key = replace(entry.key, default=default, recommended=known)
        if entry.value is None and not entry.errors:
            entry.value = default


def _judge_plugin_keys(plugins: PluginRegistry, infos: ConfigInfos, properties: Mapping[str, str]) -> None:
    """Validate the configured transformations, predicates and converters with their own keys."""
    for alias in _aliases(infos, "transforms"):
        prefix = f"transforms.{alias}."
        values = sub_properties(properties, prefix)
        _judge_named(plugins, infos, PluginType.TRANSFORMATION, alias, values, validate(TransformConfig, values))
        predicate = values.get("predicate")
        if predicate and predicate not in _aliases(infos, "predicates"):
            text = f"Invalid value {predicate} for configuration {prefix}predicate: no such alias in predicates"
            infos.entries[f"{prefix}predicate"].errors.append(text)
    for alias in _aliases(infos, "predicates"):
        _judge_named(
            plugins, infos, PluginType.PREDICATE, alias, sub_properties(properties, f"predicates.{alias}."), []
        )
    for name in ("key.converter", "value.converter", "header.converter"):
        class_name = infos.entries[name].value
        if class_name is None:
            continue
        types = (PluginType.CONVERTER, PluginType.HEADER_CONVERTER)
        plugin = plugins.find(class_name, *(types if name != "header.converter" else types[::-1]))
        if plugin is None:
            infos.entries[name].errors.append(_not_found(class_name, name))
            continue
        loaded = _load(plugin, infos, name)
        if loaded is not None:
            plugin_properties = sub_properties(properties, f"{name}.")
            infos.families += [f"{name}.{prefix}" for prefix, _ in families_of(loaded.config_class)]
            infos.add(validate(loaded.config_class, plugin_properties), prefix=f"{name}.")
            if "converter.type" in plugin_properties:
                infos.add([judge(_CONVERTER_TYPE, plugin_properties)], prefix=f"{name}.")


def _judge_named(
    plugins: PluginRegistry,
    infos: ConfigInfos,
    kind: PluginType,
    alias: str,
    values: Mapping[str, str],
    common: Sequence[KeyValue],
) -> None:
    """Validate a transformation or predicate: its ``type``, its version and, if the type is known, its own keys and
    ``common`` ones by name, in the order of Kafka Connect's numbering.
    """
    what, plural = (
        ("Transformation", "Transforms") if kind is PluginType.TRANSFORMATION else ("Predicate", "Predicates")
    )
    prefix, group = f"{plural.lower()}.{alias}.", f"{plural}: {alias}"
    class_name = values.get("type")
    plugin = plugins.find(class_name.strip(), kind) if class_name is not None else None
    declared = Key(
        "type",
        KeyType.CLASS,
        REQUIRED,
        f"Class for the {alias!r} {kind.value}.",
        importance="high",
        recommended=_names(plugins, kind),
        group=group,
        display_name=f"{what} type for {alias}",
        width="LONG",
    )
    version = Key(
        "plugin.version",
        KeyType.STRING,
        plugin and plugin.version,
        f"Version of the {alias!r} {kind.value}. There is one here, so any version is taken.",
        importance="high",
        recommended=(plugin.version,) if plugin else (),
        group=group,
        display_name=f"{what} version for {alias}",
        width="LONG",
    )
    if class_name is None:
        type_errors: tuple[str, ...] = (f'Missing required configuration "{prefix}type" which has no default value.',)
    else:
        type_errors = () if plugin else (_not_found(class_name, f"{prefix}type"),)
    head = [KeyValue(declared, class_name, type_errors), judge(version, values)]
    infos.add(head[:1], prefix=prefix)
    loaded = _load(plugin, infos, f"{prefix}type") if plugin is not None else None
    rest = [*(validate(loaded.config_class, values) if loaded is not None else ()), *common]
    if loaded is not None:
        infos.families += [prefix + family_prefix for family_prefix, _ in families_of(loaded.config_class)]
    infos.add([*head, *sorted(rest, key=lambda result: result.key.name)], prefix=prefix, group=group)


def _names(plugins: PluginRegistry, kind: PluginType) -> tuple[str, ...]:
    """All names of plugins of a kind, in the order of the plugin list."""
    return tuple(name for plugin in plugins.listed((kind,)) for name in plugin.names)


def _judge_topic_groups(infos: ConfigInfos, properties: Mapping[str, str]) -> None:
    groups = topic_groups(properties, _aliases(infos, "topic.creation.groups"))
    for name, values in groups.items():
        prefix = f"topic.creation.{name}."
        infos.families.append(prefix)
        infos.add(validate(TopicGroup, values), prefix=prefix, group=f"Topic Creation: {name}")


def _add_overrides(infos: ConfigInfos, properties: Mapping[str, str]) -> None:
    for kind in ("producer", "consumer", "admin"):
        for name, value in override_properties(properties, kind).items():
            full = f"{kind}.override.{name}"
            known = client_key(name)
            if known is None:
                secret = name.endswith(("password", "jaas.config", "secret"))
                known = Key(name, KeyType.PASSWORD if secret else KeyType.STRING, None, "", width="NONE")
            # An invalid number is reported here, not by the client in the task.
            judged = judge(known, {name: value})
            doc = f"The setting {name} of this connector's {kind} clients."
            infos.add([replace(judged, key=replace(known, name=full, doc=doc, display_name=name))])


def _aliases(infos: ConfigInfos, name: str) -> list[str]:
    entry = infos.entries.get(name)
    return list(dict.fromkeys(entry.value or [])) if entry is not None else []


def _load(plugin: Plugin, infos: ConfigInfos, key_name: str = "connector.class") -> Any:
    """The plugin's class; or None, with an error on the key that names it."""
    try:
        return plugin.load()
    except (TidegateError, ImportError, AttributeError) as error:
        infos.entries[key_name].errors.append(
            f"Invalid value {infos.entries[key_name].value} for configuration {key_name}: {error}"
        )
        return None


def _check_outside(connector: Any, properties: Mapping[str, str]) -> list[Problem]:
    """The problems found by ``connector.check``. A check that fails or does not end is itself a problem."""
    problems: list[Problem] = []

    def run() -> None:
        try:
            problems.extend(connector.check(parse(connector.config_class, properties)))
        except TidegateError as error:
            problems.append(Problem("", str(error)))
        except BaseException as error:  # noqa: BLE001 - a connector's own code: whatever it raises is told to its user
            problems.append(Problem("", f"the connector's check failed: {type(error).__name__}: {error}"))

    _run_for(run, CHECK_TIMEOUT_S, lambda: problems.append(Problem("", f"no answer within {CHECK_TIMEOUT_S:g} s")))
    return list(problems)


def _run_for(work: Callable[[], None], timeout_s: float, on_timeout: Callable[[], None]) -> None:
    thread = threading.Thread(target=work, name="connector check", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        on_timeout()


def _not_found(class_name: str, key_name: str) -> str:
    return f"Invalid value {class_name} for configuration {key_name}: Class {class_name} could not be found."


def _shown(properties: Mapping[str, Any]) -> str:
    """Only property names: a value may be a secret, and without a connector's class that is unknown."""
    return "{" + ", ".join(f"{name}=..." for name in properties) + "}"


def _definition(declared: Key, order: int) -> dict[str, Any]:
    return {
        "name": declared.name,
        "type": declared.type.value,
        "required": declared.required,
        "default_value": None if declared.required else _text(declared.default),
        "importance": declared.importance.upper(),
        "documentation": declared.doc,
        "group": declared.group or None,
        "order_in_group": order,
        "width": declared.width,
        "display_name": declared.display_name or declared.name,
        "dependents": list(declared.dependents),
    }


def _text(value: Any) -> str | None:
    """A value in the format of Kafka's ``ConfigDef.convertToString``."""
    if value is None:
        return None
    if isinstance(value, Password):
        return HIDDEN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value)
