"""Configuration as clients see and change it: of topics, of groups, and of the broker where it gives topics their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from broker.config import BrokerConfig
from broker.errors import InvalidConfiguration, InvalidRequest
from broker.group_resources import GroupResources
from broker.log.config import BROKER_SYNONYMS, LogConfig, topic_defaults
from broker.metadata import ClusterMetadata
from tidegate.kit.config import Key, KeyType, keys_of

__all__ = ["ConfigEntry", "NamedKind", "Operation", "Resources", "Source", "Synonym"]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
"""``ConfigResource.Type``."""


class Source(IntEnum):
    """Where a value comes from (``ConfigEntry.ConfigSource``), the first that there is wins."""

    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Operation(IntEnum):
    """What an incremental change does (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_TYPES: Final = {
    KeyType.BOOLEAN: 1,
    KeyType.STRING: 2,
    KeyType.INT: 3,
    KeyType.SHORT: 4,
    KeyType.LONG: 5,
    KeyType.DOUBLE: 6,
    KeyType.LIST: 7,
    KeyType.CLASS: 8,
    KeyType.PASSWORD: 9,
}


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key of a resource: the value that holds, and under ``synonyms`` all there are, the one that holds first."""

    key: Key
    synonyms: Sequence[Synonym]
    read_only: bool = False

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def value(self) -> str | None:
        return None if self.sensitive else self.synonyms[0].value

    @property
    def source(self) -> Source:
        return self.synonyms[0].source

    @property
    def sensitive(self) -> bool:
        return self.key.secret

    @property
    def type_code(self) -> int:
        return _TYPES[self.key.type]


@dataclass(frozen=True, slots=True)
class NamedKind:
    """A type of resources that are nothing but configuration under a name."""

    source: Source
    keys: Sequence[Key]
    check: Callable[[str, Mapping[str, str]], None]
    """Given the name and all keys that would be set; raises what is wrong with them."""


class Resources:
    """The configurable things of one broker. Changes are on disk when a call returns, and hold from then on.

    ``kinds`` are the types besides topics and brokers, by ``ConfigResource.Type``.
    """

    def __init__(
        self, config: BrokerConfig, metadata: ClusterMetadata, kinds: Mapping[int, NamedKind] | None = None
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._groups = GroupResources(config)
        self._kinds = dict(kinds or {})
        self._apply_defaults()

    # Describing

    def describe(self, resource_type: int, name: str, wanted: Iterable[str] | None = None) -> list[ConfigEntry]:
        """All keys of a resource, or the wanted ones. Raises UnknownTopicOrPartition or InvalidRequest."""
        if resource_type == TOPIC:
            entries = self.topic_entries(self._metadata.topic(name).configs)
        elif resource_type == BROKER:
            self._check_broker(name)
            entries = self._broker_entries(name)
        elif resource_type == GROUP:
            self._groups.check_name(name)
            entries = self._group_entries(self._metadata.configs(GROUP, name))
        else:
            entries = self._named_entries(self._kind(resource_type), resource_type, name)
        names = None if wanted is None else set(wanted)
        return [entry for entry in entries if names is None or entry.name in names]

    def names(self, resource_type: int) -> list[str]:
        """The resources of a type that have a configuration; groups, those for which something is set."""
        if resource_type == TOPIC:
            return list(self._metadata.topics)
        if resource_type == BROKER:
            return [str(self._metadata.node_id)]
        return self._metadata.configured(resource_type)

    def _group_entries(self, given: Mapping[str, str]) -> list[ConfigEntry]:
        entries = []
        for key in self._groups.keys():  # noqa: SIM118 - not a mapping
            found = [Synonym(key.name, given[key.name], Source.GROUP)] if key.name in given else []
            found += (
                Synonym(one.name, _text(one.value), Source.DEFAULT if one.is_default else Source.STATIC)
                for one in self._groups.inherited(key)
            )
            entries.append(ConfigEntry(key, found))
        return entries

    def _kind(self, resource_type: int) -> NamedKind:
        kind = self._kinds.get(resource_type)
        if kind is None:
            known = ", ".join(map(str, sorted({TOPIC, BROKER, GROUP, *self._kinds})))
            raise InvalidRequest(f"Resources of type {resource_type} have no configuration here: types {known} have.")
        return kind

    def _named_entries(self, kind: NamedKind, resource_type: int, name: str) -> list[ConfigEntry]:
        if not name:
            raise InvalidRequest(f"The name of the resource of type {resource_type} is empty.")
        given = self._metadata.configs(resource_type, name)
        return [
            ConfigEntry(
                key,
                [
                    *([Synonym(key.name, given[key.name], kind.source)] if key.name in given else ()),
                    Synonym(key.name, _text(key.default), Source.DEFAULT),
                ],
            )
            for key in kind.keys
        ]

    def topic_entries(self, given: Mapping[str, str]) -> list[ConfigEntry]:
        """All keys of a topic that sets the given ones."""
        return [ConfigEntry(key, self._topic_synonyms(key, given)) for key in keys_of(LogConfig)]

    def _topic_synonyms(self, key: Key, given: Mapping[str, str]) -> list[Synonym]:
        found = [Synonym(key.name, given[key.name], Source.TOPIC)] if key.name in given else []
        for broker_key, factor in BROKER_SYNONYMS.get(key.name, ()):
            for settings, source in self._layers():
                if broker_key in settings:
                    value = settings[broker_key]
                    found.append(Synonym(broker_key, value if factor == 1 else str(int(value) * factor), source))
        found.append(Synonym(key.name, _text(key.default), Source.DEFAULT))
        return found

    def _layers(self) -> list[tuple[Mapping[str, str], Source]]:
        """The broker's own settings, what holds first in front."""
        return [
            (self._metadata.configs(BROKER, str(self._metadata.node_id)), Source.BROKER),
            (self._metadata.configs(BROKER, ""), Source.BROKER_DEFAULT),
            (self._config.topic_settings, Source.STATIC),
        ]

    def _broker_entries(self, name: str) -> list[ConfigEntry]:
        layers = self._layers() if name else self._layers()[1:2]
        if not name:
            settings = layers[0][0]
            return [
                ConfigEntry(_dynamic_key(key), [Synonym(key, value, Source.BROKER_DEFAULT)])
                for key, value in settings.items()
                if key in _DYNAMIC
            ]
        entries = [self._static_entry(key) for key in keys_of(type(self._config)) if key.name not in _DYNAMIC]
        for broker_key in _DYNAMIC:
            key = _dynamic_key(broker_key)
            found = [
                Synonym(broker_key, settings[broker_key], source)
                for settings, source in layers
                if broker_key in settings
            ]
            entries.append(ConfigEntry(key, [*found, Synonym(broker_key, _text(key.default), Source.DEFAULT)]))
        return entries

    def _static_entry(self, key: Key) -> ConfigEntry:
        value = getattr(self._config, key.attribute)
        default = Synonym(key.name, None if key.required else _text(key.default), Source.DEFAULT)
        if not key.required and value == key.default:
            return ConfigEntry(key, [default], read_only=True)
        return ConfigEntry(key, [Synonym(key.name, _text(value), Source.STATIC)], read_only=True)

    # Changing

    def replace(self, resource_type: int, name: str, configs: Mapping[str, str | None], *, validate_only: bool) -> None:
        """Make these the only keys that are set (AlterConfigs)."""
        present = self._present(resource_type, name)
        changes: dict[str, str | None] = {key: None for key in present if key not in configs}
        self._change(resource_type, name, {**changes, **configs}, validate_only=validate_only)

    def alter(
        self,
        resource_type: int,
        name: str,
        changes: Sequence[tuple[str, int, str | None]],
        *,
        validate_only: bool,
    ) -> None:
        """Apply (key, operation, value) in order (IncrementalAlterConfigs)."""
        keys = [key for key, _, _ in changes]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise InvalidRequest(f"The key {twice} is changed twice in one request.")
        present = self._present(resource_type, name)
        lists = self._lists(resource_type)
        after = {
            key: self._after(lists.get(key), key, operation, value, present.get(key))
            for key, operation, value in changes
        }
        self._change(resource_type, name, after, validate_only=validate_only)

    def _lists(self, resource_type: int) -> dict[str, Key]:
        kind = self._kinds.get(resource_type)
        return {one.name: one for one in (kind.keys if kind else keys_of(LogConfig)) if one.type is KeyType.LIST}

    def _after(
        self, declared: Key | None, key: str, operation: int, value: str | None, present: str | None
    ) -> str | None:
        """The value that an operation leaves; ``declared`` where the key is a list."""
        if operation == Operation.DELETE:
            return None
        if value is None:
            raise InvalidRequest(f"The key {key} is to be changed, but no value is given.")
        if operation == Operation.SET:
            return value
        if operation not in (Operation.APPEND, Operation.SUBTRACT):
            raise InvalidRequest(f"Operation {operation} on {key} is not known: 0 to 3 are.")
        if declared is None:
            raise InvalidConfiguration(f"{key} is not a list, so nothing can be added to it or taken from it.")
        items = (present if present is not None else _text(declared.default) or "").split(",")
        given = [item.strip() for item in value.split(",")]
        if operation == Operation.APPEND:
            return ",".join([*(item for item in items if item), *(item for item in given if item not in items)])
        return ",".join(item for item in items if item not in given)

    def _present(self, resource_type: int, name: str) -> Mapping[str, str]:
        if resource_type == TOPIC:
            return self._metadata.topic(name).configs
        if resource_type == BROKER:
            self._check_broker(name)
            return self._metadata.configs(BROKER, name)
        if resource_type == GROUP:
            self._groups.check_name(name)
            return self._metadata.configs(GROUP, name)
        self._kind(resource_type)
        return self._metadata.configs(resource_type, name)

    def _change(self, resource_type: int, name: str, changes: Mapping[str, str | None], *, validate_only: bool) -> None:
        present = self._present(resource_type, name)
        after = {key: value for key, value in {**present, **changes}.items() if value is not None}
        if resource_type == TOPIC:
            self._metadata.check_topic_configs(after)
            if not validate_only:
                self._metadata.set_topic_configs(name, changes)
            return
        if resource_type == GROUP:
            self._groups.check(after)
            if not validate_only:
                self._metadata.set_configs(GROUP, name, changes)
            return
        if resource_type != BROKER:
            self._kind(resource_type).check(name, after)
            if not validate_only:
                self._metadata.set_configs(resource_type, name, changes)
            return
        self._check_dynamic(changes, after)
        if not validate_only:
            self._metadata.set_configs(BROKER, name, changes)
            self._apply_defaults()

    def _check_dynamic(self, changes: Mapping[str, str | None], after: Mapping[str, str]) -> None:
        fixed = next((key for key in changes if key not in _DYNAMIC), None)
        if fixed is not None:
            raise InvalidConfiguration(
                f"{fixed} cannot be changed while the broker runs: set it where the broker is started."
            )
        self._metadata.check_topic_configs(topic_defaults(after))

    def _apply_defaults(self) -> None:
        settings: dict[str, str] = {}
        for layer, _ in reversed(self._layers()):
            settings |= dict(layer)
        self._metadata.set_topic_defaults(topic_defaults(settings))

    def _check_broker(self, name: str) -> None:
        if name not in ("", str(self._metadata.node_id)):
            raise InvalidRequest(f"There is no broker {name!r}: this one is {self._metadata.node_id}.")


_DYNAMIC: Final = {synonyms[0][0]: topic_key for topic_key, synonyms in BROKER_SYNONYMS.items()}
"""Broker keys that may be changed at run time, with the topic key each is the default of."""
_TOPIC_KEYS: Final = {key.name: key for key in keys_of(LogConfig)}


def _dynamic_key(broker_key: str) -> Key:
    declared = _TOPIC_KEYS[_DYNAMIC[broker_key]]
    return Key(broker_key, declared.type, declared.default, f"Default of the topic key {declared.name}. {declared.doc}")


def _text(value: Any) -> str | None:
    """A parsed value as it is written in a configuration."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
