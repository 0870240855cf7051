"""Configuration for clients: of topics, of groups, and of the broker, which sets topic defaults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.config import BrokerConfig
from broker.errors import InvalidConfiguration, InvalidRequest
from broker.log.config import BROKER_SYNONYMS, LogConfig
from broker.metadata.image import ClusterMetadata
from broker.resources.brokers import BrokerResources
from broker.resources.entries import ConfigEntry, Operation, Source, Synonym, as_text
from broker.resources.groups import GroupResources
from broker.resources.loggers import change_levels, logger_entries
from tidegate.kit.config import Key, KeyType, keys_of

__all__ = ["ConfigEntry", "NamedKind", "Operation", "Resources", "Source", "Synonym"]

TOPIC: Final = 2
BROKER: Final = 4
LOGGER: Final = 8
GROUP: Final = 32
"""``ConfigResource.Type``."""


@dataclass(frozen=True, slots=True)
class NamedKind:
    """A resource type that consists only of configuration under a name."""

    source: Source
    declaration: Callable[[], type]
    """The class that declares the keys."""
    check: Callable[[str, Mapping[str, str]], None]
    """Called with the name and all keys that would be set; raises the validation error."""

    @property
    def keys(self) -> Sequence[Key]:
        return keys_of(self.declaration())


class Resources:
    """The configurable resources of one broker. Changes are on disk and effective when a call returns.

    ``kinds`` are the types other than topics and brokers, by ``ConfigResource.Type``.
    """

    def __init__(
        self, config: BrokerConfig, metadata: ClusterMetadata, kinds: Mapping[int, NamedKind] | None = None
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._groups = GroupResources(config)
        self._kinds = dict(kinds or {})
        self._brokers = BrokerResources(config, metadata)
        self.watch: Callable[[Collection[str], Mapping[str, str]], Callable[[], None]] | None = None
        """Called before broker keys change, with the changed keys and all resulting properties.

        Returns a function to call when the change is on disk, or raises BrokerError.
        """
        self.settings = config
        """The effective broker configuration."""
        self._followers: list[Callable[[BrokerConfig], None]] = []
        self._apply()

    def follow(self, go_by: Callable[[BrokerConfig], None]) -> None:
        """Call ``go_by`` now with the effective configuration, and again after each change."""
        self._followers.append(go_by)
        go_by(self.settings)

    # Describing

    def describe(self, resource_type: int, name: str, requested: Iterable[str] | None = None) -> list[ConfigEntry]:
        """All keys of a resource, or the requested ones. Raises UnknownTopicOrPartition or InvalidRequest."""
        if resource_type == TOPIC:
            self._metadata.check_name(name)
            entries = self.topic_entries(self._metadata.topic(name).configs)
        elif resource_type == BROKER:
            self._brokers.check_name(name)
            entries = self._brokers.entries(name)
        elif resource_type == LOGGER:
            self._check_logger(name)
            entries = logger_entries()
        elif resource_type == GROUP:
            self._groups.check_name(name)
            entries = self._group_entries(self._metadata.configs(GROUP, name))
        else:
            entries = self._named_entries(self._kind(resource_type), resource_type, name)
        names = None if requested is None else set(requested)
        return [entry for entry in entries if names is None or entry.name in names]

    def names(self, resource_type: int) -> list[str]:
        """The resources of a type that have a configuration. Groups are listed if they have settings."""
        if resource_type == TOPIC:
            return list(self._metadata.topics)
        if resource_type == BROKER:
            return [str(self._metadata.node_id)]
        return self._metadata.configured(resource_type)

    def _group_entries(self, configs: Mapping[str, str]) -> list[ConfigEntry]:
        entries = []
        for key in self._groups.keys():  # noqa: SIM118 - not a mapping
            synonyms = [Synonym(key.name, configs[key.name], Source.GROUP)] if key.name in configs else []
            synonyms += (
                Synonym(
                    group_value.name,
                    as_text(group_value.value),
                    Source.DEFAULT if group_value.is_default else Source.STATIC,
                )
                for group_value in self._groups.inherited(key)
            )
            entries.append(ConfigEntry(key, synonyms))
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
        configs = self._metadata.configs(resource_type, name)
        return [
            ConfigEntry(
                key,
                [Synonym(key.name, configs[key.name], kind.source)] if key.name in configs else (),
                settled=as_text(key.default),
            )
            for key in kind.keys
        ]

    def topic_entries(self, configs: Mapping[str, str]) -> list[ConfigEntry]:
        """All keys of a topic with the given settings."""
        defaults = self._brokers.defaults()
        return [
            ConfigEntry(key, self._topic_synonyms(key, configs), settled=defaults.get(key.name, as_text(key.default)))
            for key in keys_of(LogConfig)
        ]

    def _topic_synonyms(self, key: Key, configs: Mapping[str, str]) -> list[Synonym]:
        """The topic's own value, and those of the broker key in the same unit, as in Kafka."""
        synonyms = [Synonym(key.name, configs[key.name], Source.TOPIC)] if key.name in configs else []
        names = BROKER_SYNONYMS.get(key.name)
        return synonyms + self._brokers.synonyms(names[0][0]) if names else synonyms

    # Changing

    def replace(self, resource_type: int, name: str, configs: Mapping[str, str | None], *, validate_only: bool) -> None:
        """Replace the set keys by these (AlterConfigs)."""
        missing = next((key for key, value in configs.items() if value is None), None)
        if missing is not None:
            raise InvalidRequest(f"The key {missing} is to be set, but no value is given.")
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
        if resource_type == LOGGER:
            self._check_logger(name)
            change_levels(changes, validate_only=validate_only)
            return
        present = self._present(resource_type, name)
        lists = self._lists(resource_type)
        after = {
            key: self._after(lists.get(key), key, operation, value, present.get(key))
            for key, operation, value in changes
        }
        self._change(resource_type, name, after, validate_only=validate_only)

    def _lists(self, resource_type: int) -> dict[str, Key]:
        if resource_type == BROKER:
            return self._brokers.lists()
        kind = self._kinds.get(resource_type)
        return {key.name: key for key in (kind.keys if kind else keys_of(LogConfig)) if key.type is KeyType.LIST}

    def _after(
        self, declared: Key | None, key: str, operation: int, value: str | None, present: str | None
    ) -> str | None:
        """The value after an operation; ``declared`` is set if the key is a list."""
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
        items = (present if present is not None else as_text(declared.default) or "").split(",")
        names = [item.strip() for item in value.split(",")]
        if operation == Operation.APPEND:
            return ",".join([*(item for item in items if item), *(item for item in names if item not in items)])
        return ",".join(item for item in items if item not in names)

    def _present(self, resource_type: int, name: str) -> Mapping[str, str]:
        if resource_type == TOPIC:
            self._check_topic(name)
            return self._metadata.topic(name).configs
        if resource_type == BROKER:
            self._brokers.check_name(name)
            return self._brokers.present(name)
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
        self._brokers.check(name, changes, after)
        follow = self.watch(changes, self._brokers.properties(name, after)) if self.watch is not None else None
        if not validate_only:
            self._metadata.set_configs(BROKER, name, changes)
            self._apply()
            if follow is not None:
                follow()

    def _check_topic(self, name: str) -> None:
        if not name:
            raise InvalidRequest("The name of the topic is missing: there is no configuration of all topics.")

    def _check_logger(self, name: str) -> None:
        if not name:
            raise InvalidRequest(f"The loggers are those of a broker: of {self._metadata.node_id}, not of all.")
        self._brokers.check_name(name)

    def _apply(self) -> None:
        self._metadata.set_topic_defaults(self._brokers.defaults())
        self.settings = self._brokers.settled()
        self._groups.go_by(self.settings)
        for go_by in self._followers:
            go_by(self.settings)
