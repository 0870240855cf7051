"""The configured quotas in the metadata log: for users, client ids and addresses, by name or by default."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from broker.errors import InvalidRequest, UnsupportedVersion
from broker.quotas.records import ClientQuotaRecord, QuotaEntity

__all__ = ["CLIENT_ID", "IP", "USER", "Entity", "EntityFilter", "QuotaSettings", "entity_of"]

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_TYPES: Final = (USER, CLIENT_ID, IP)
_LONG_MAX: Final = (1 << 63) - 1
_INT_MAX: Final = (1 << 31) - 1

Entity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: (type, name) sorted by type. The name None is the default of that type."""

_CLIENT_KEYS: Final[Mapping[str, int | None]] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""By quota key: the largest value if it must be a whole number; None permits fractions."""
_IP_KEYS: Final[Mapping[str, int | None]] = {"connection_creation_rate": _INT_MAX}


class EntityFilter(NamedTuple):
    """One part of a filter: ``match_type`` 0 matches a name, 1 the default, 2 either."""

    entity_type: str
    match_type: int
    match: str | None


class QuotaSettings:
    """The quotas. ``changes`` counts modifications, so that caches can detect them."""

    def __init__(self) -> None:
        self._values: dict[Entity, dict[str, float]] = {}
        self.changes = 0
        self.active = False
        """Whether any quota is set. Without quotas, requests check nothing else."""

    def get(self, entity: Entity, key: str) -> float | None:
        values = self._values.get(entity)
        return None if values is None else values.get(key)

    @property
    def all(self) -> Mapping[Entity, Mapping[str, float]]:
        return self._values

    def replay(self, record: ClientQuotaRecord) -> None:
        entity = entity_of([(quota_entity.entity_type, quota_entity.entity_name) for quota_entity in record.entity])
        values = dict(self._values.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            self._values[entity] = values
        else:
            self._values.pop(entity, None)
        self.active = bool(self._values)
        self.changes += 1

    def find(self, filters: Sequence[EntityFilter], *, strict: bool) -> list[tuple[Entity, Mapping[str, float]]]:
        """The quotas whose entities match all filters, and with ``strict`` have no other parts.

        Raises InvalidRequest, UnsupportedVersion.
        """
        _check_filters(filters)
        result: list[tuple[Entity, Mapping[str, float]]] = []
        for entity, values in self._values.items():
            names = dict(entity)
            if strict and len(names) != len(filters):
                continue
            if all(
                entity_filter.entity_type in names and entity_filter.match_type in (2, _kind(entity_filter, names))
                for entity_filter in filters
            ):
                result.append((entity, values))
        return result

    def changed(
        self, entity: Sequence[tuple[str, str | None]], ops: Mapping[str, float | None]
    ) -> list[ClientQuotaRecord]:
        """The records for these changes (None removes), without those that change nothing. Raises InvalidRequest."""
        known = _keys_for(entity)
        present = self._values.get(entity_of(entity), {})
        records = []
        for key, value in ops.items():
            if value is None and key not in present:
                continue
            if value is not None:
                _check_value(known, key, value)
                if present.get(key) == value:
                    continue
            records.append(
                ClientQuotaRecord(
                    entity=[QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity],
                    key=key,
                    value=value or 0.0,
                    remove=value is None,
                )
            )
        return records


def entity_of(parts: Sequence[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(parts, key=lambda part: part[0]))


def _kind(entity_filter: EntityFilter, names: Mapping[str, str | None]) -> int:
    """The match type by which this filter matches an entity of these names; -1 for none."""
    name = names[entity_filter.entity_type]
    if name != entity_filter.match:
        return -1
    return 1 if name is None else 0


def _check_filters(filters: Sequence[EntityFilter]) -> None:
    seen: set[str] = set()
    for entity_filter in filters:
        if not entity_filter.entity_type:
            raise InvalidRequest("An entity type is empty.")
        if entity_filter.entity_type in seen:
            raise InvalidRequest(f"Entity type {entity_filter.entity_type} is asked for twice.")
        if entity_filter.entity_type not in _TYPES:
            raise UnsupportedVersion(
                f"Entity type {entity_filter.entity_type!r} is not known: {', '.join(_TYPES)} are."
            )
        if entity_filter.match_type not in (0, 1, 2):
            raise InvalidRequest(f"Match type {entity_filter.match_type} is not known: 0, 1 and 2 are.")
        if (entity_filter.match is None) == (entity_filter.match_type == 0):
            raise InvalidRequest(
                f"Match type {entity_filter.match_type} of {entity_filter.entity_type} does not go with {entity_filter.match!r}."
            )
        seen.add(entity_filter.entity_type)
    if IP in seen and len(seen) > 1:
        raise InvalidRequest("Quotas of addresses are not for users or client ids as well.")


def _keys_for(entity: Sequence[tuple[str, str | None]]) -> Mapping[str, int | None]:
    types = [kind for kind, _ in entity]
    if not types:
        raise InvalidRequest("A quota has to be for somebody: the entity is empty.")
    for kind, name in entity:
        if types.count(kind) > 1:
            raise InvalidRequest(f"Entity type {kind} is named twice.")
        if kind not in _TYPES:
            raise InvalidRequest(f"Entity type {kind!r} is not known: {', '.join(_TYPES)} are.")
        if name == "":
            raise InvalidRequest(f"The name of the {kind} is empty.")
    if IP not in types:
        return _CLIENT_KEYS
    if len(types) > 1:
        raise InvalidRequest("A quota of an address is not for a user or client id as well.")
    address = entity[0][1]
    if address is not None and not _is_address(address):
        raise InvalidRequest(f"{address} is not an IP address.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    # Kafka also accepts host names; resolving them would block all clients.
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(known: Mapping[str, int | None], key: str, value: float) -> None:
    if key not in known:
        raise InvalidRequest(f"Quota {key!r} is not known here: {', '.join(known)} are.")
    if not value > 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0, not {value}.")
    most = known[key]
    if most is None:
        return
    if value > most:
        raise InvalidRequest(f"Quota {key} is {value}, which is more than {most}.")
    if abs(value % 1.0) > 1e-6:
        raise InvalidRequest(f"Quota {key} must be a whole number, not {value}.")
