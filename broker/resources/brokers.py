"""The broker's configuration for clients: every key of Kafka's brokers, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from broker.config import BrokerConfig
from broker.errors import InvalidConfiguration, InvalidRequest
from broker.log.config import BROKER_SYNONYMS, LogConfig, topic_defaults
from broker.metadata.image import ClusterMetadata
from broker.metadata.records import BROKER_RESOURCE
from broker.resources.entries import ConfigEntry, Source, Synonym, as_text
from broker.unused_keys import refusal, why_unused
from tidegate.kit.config import Key, KeyType, keys_of, parse, validate
from tidegate.kit.errors import ConfigError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.kafka_keys import BrokerKey

__all__ = ["BrokerResources"]

logger = get_logger(__name__)

Layer = tuple[Mapping[str, str], Source]

_TOPIC_KEYS: Final = {key.name: key for key in keys_of(LogConfig)}
_DEFAULTS_OF: Final = {name: topic_key for topic_key, synonyms in BROKER_SYNONYMS.items() for name, _ in synonyms}
"""The topic key whose default a broker key sets."""
_OF_OURS: Final = frozenset({"acks.all.durability"})
"""Keys that Kafka does not have and that can be changed at run time."""
_ONE_BROKER: Final = ("ssl.", "sasl.", "listener", "principal.builder.class", "cordoned.log.dirs")
"""Prefixes of keys that Kafka changes only for one broker, never for all."""
_WHERE_TO_LISTEN: Final = ("listeners", "listener.security.protocol.map")
"""Keys that Kafka changes at run time, and this broker does not."""


class BrokerResources:
    """The broker's configuration: start-up properties, dynamic settings for it and for all brokers, and defaults."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata
        self._declared = {key.name: key for key in keys_of(type(config))}
        self._aliases = {alias: key.name for key in self._declared.values() for alias in key.aliases}

    def check_name(self, name: str) -> None:
        """Raises InvalidRequest for another broker. The empty name means all brokers."""
        node_id = str(self._metadata.node_id)
        if name in ("", node_id):
            return
        if not name.isdecimal():
            raise InvalidRequest(f"The name of a broker is its number, not {name!r}.")
        raise InvalidRequest(f"There is no broker {name!r}: this one is {node_id}.")

    def present(self, name: str) -> Mapping[str, str]:
        """The dynamic settings made while brokers ran."""
        return self._metadata.configs(BROKER_RESOURCE, name)

    def layers(self) -> list[Layer]:
        """The broker's settings, highest precedence first."""
        return [
            (self.present(str(self._metadata.node_id)), Source.BROKER),
            (self.present(""), Source.BROKER_DEFAULT),
            (self._config.properties, Source.STATIC),
        ]

    def properties(self, name: str | None = None, after: Mapping[str, str] | None = None) -> dict[str, str]:
        """All current settings combined; or with ``after`` as the dynamic settings of ``name``."""
        settled = dict(self._config.properties)
        for layer in ("", str(self._metadata.node_id)):
            configs = after if after is not None and layer == name else self.present(layer)
            settled |= {key: value for key, value in configs.items() if key not in _WHERE_TO_LISTEN}
        return settled

    def settled(self) -> BrokerConfig:
        """The effective configuration: start-up properties with the dynamic settings, as far as these are still valid."""
        properties = self.properties()
        if properties == self._config.properties:
            return self._config
        try:
            return parse(type(self._config), properties)
        except ConfigError as error:
            logger.warning("settings that were made at run time do not fit any more", error=error.message)
            return self._config

    # Describing

    def entries(self, name: str) -> list[ConfigEntry]:
        """All keys of the broker; for all brokers, only the keys that are set."""
        if not name:
            return [
                ConfigEntry(key, [Synonym(key.name, value, Source.BROKER_DEFAULT)])
                for key, value in ((self._key(text), value) for text, value in self.present("").items())
            ]
        return [self._entry(key) for key in self._keys()]

    def _keys(self) -> Iterator[Key]:
        from broker.kafka_keys import KAFKA_KEYS

        for name in {**KAFKA_KEYS, **self._declared, **dict.fromkeys(_OF_OURS)}:
            yield self._key(name)

    def _key(self, name: str) -> Key:
        """A declared key with Kafka's type and the default for brokers."""
        known, declared, topic_key = self._kafka_key(name), self._declared.get(name), _DEFAULTS_OF.get(name)
        doc = declared.doc if declared is not None else why_unused(name)
        if name in self._aliases:
            doc = f"Another name of {self._aliases[name]}."
        default = as_text(declared.default) if declared is not None and not declared.required else None
        if topic_key is not None:
            doc = f"Default of the topic key {topic_key}. {_TOPIC_KEYS[topic_key].doc}"
            default = as_text(_TOPIC_KEYS[topic_key].default)
        if known is None:
            # An unknown key may be a secret.
            kind = declared.type if declared is not None else KeyType.STRING if topic_key else KeyType.PASSWORD
            return Key(name, kind, default, doc)
        if declared is None or topic_key is not None or default is None:
            default = known.default
        return Key(name, known.type, default, doc)

    @staticmethod
    def _kafka_key(name: str) -> BrokerKey | None:
        from broker.kafka_keys import KAFKA_KEYS

        return KAFKA_KEYS.get(name)

    def _entry(self, key: Key) -> ConfigEntry:
        return ConfigEntry(key, self.synonyms(key.name), read_only=not self._is_dynamic(key.name))

    def synonyms(self, name: str) -> list[Synonym]:
        """All values of a key, highest precedence first."""
        result = [
            Synonym(name, text, source)
            for settings, source in self.layers()
            if (text := settings.get(name)) is not None
        ]
        default = self._key(name).default
        declared = self._declared.get("node.id" if name == "broker.id" else name)
        if not result and declared is not None:
            # Set under another name of the same key, or computed at the start.
            value = as_text(getattr(self._config, declared.attribute))
            if value and value != default:
                result.append(Synonym(name, value, Source.STATIC))
        if default is not None:
            result.append(Synonym(name, default, Source.DEFAULT))
        return result

    def _is_dynamic(self, name: str) -> bool:
        known = self._kafka_key(name)
        return name in _OF_OURS if known is None else known.dynamic

    # Changing

    def lists(self) -> dict[str, Key]:
        return {key.name: key for key in self._keys() if key.type is KeyType.LIST}

    def check(self, name: str, changes: Mapping[str, str | None], after: Mapping[str, str]) -> None:
        """Raises InvalidRequest or InvalidConfiguration if the changes are invalid; ``after`` has all settings that
        would result.
        """
        fixed = [key for key in changes if self._is_known(key) and not self._is_dynamic(key)]
        fixed += [key for key in _WHERE_TO_LISTEN if changes.get(key) is not None]
        unknown = [key for key in changes if not self._is_known(key)]
        if fixed:
            raise InvalidRequest(
                f"{', '.join(fixed)} cannot be changed while the broker runs: set it where it is started."
            )
        if not name:
            single = [key for key in changes if key.startswith(_ONE_BROKER) and self._is_known(key)]
            if single:
                raise InvalidRequest(f"{', '.join(single)} can be set for a broker by its number, not for all.")
        for key, value in changes.items():
            reason = refusal(key, value or "")
            if reason is not None:
                raise InvalidRequest(reason)
        self._check_eligible_leaders(name, changes)
        configs = {key: value for key, value in changes.items() if value is not None and key not in unknown}
        for key, value in configs.items():
            _check_type(self._key(key), value)
        for judged in validate(type(self._config), {**self._config.properties, **after}):
            if judged.key.name in configs and judged.errors:
                raise InvalidRequest(" ".join(judged.errors))
        try:
            self._metadata.check_topic_configs(topic_defaults(after))
        except InvalidConfiguration as error:
            raise InvalidRequest(error.message) from error

    def _is_known(self, key: str) -> bool:
        return self._kafka_key(key) is not None or key in self._declared or key in _OF_OURS

    def _check_eligible_leaders(self, name: str, changes: Mapping[str, str | None]) -> None:
        key = "min.insync.replicas"
        if key not in changes or not self._metadata.features.get("eligible.leader.replicas.version"):
            return
        if name:
            raise InvalidConfiguration(f"{key} is one for all brokers while eligible leaders are counted (KIP-966).")
        if changes[key] is None:
            raise InvalidConfiguration(
                f"{key} of all brokers cannot be removed while eligible leaders are counted (KIP-966)."
            )

    def defaults(self) -> dict[str, str]:
        """The topic keys whose current default differs from Kafka's."""
        settings: dict[str, str] = {}
        for layer, _ in reversed(self.layers()):
            settings |= {key: value for key, value in layer.items() if key in _DEFAULTS_OF}
        return topic_defaults(settings)


_BOUNDS: Final = {KeyType.SHORT: 1 << 15, KeyType.INT: 1 << 31, KeyType.LONG: 1 << 63}


def _check_type(key: Key, text: str) -> None:
    try:
        if key.type in _BOUNDS and not -_BOUNDS[key.type] <= int(text) < _BOUNDS[key.type]:
            raise ValueError
        if key.type is KeyType.DOUBLE:
            float(text)
        if key.type is KeyType.BOOLEAN and text.lower() not in ("true", "false"):
            raise ValueError
    except ValueError:
        raise InvalidRequest(f"Invalid value {text} for configuration {key.name}: not a {key.type.value}") from None
