"""HeaderRouter of Telefonica's Kafnus: headers name the topic, whole or as schema and table of a data model.

Source: Kafnus Connect's documentation of its configuration, and nothing else; its license forbids the use of its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from connect.api import DataError, Problem, RecordBatch, Transformation, config, key, one_of
from connect.data.headers import header_lists
from connect.transforms.timestamp_router import routed

__all__ = ["HeaderRouter", "HeaderRouterConfig"]


_DATA_MODELS: Final = (
    "dm-by-entity-type-database",
    "dm-by-entity-type-database-schema",
    "dm-by-fixed-entity-type-database-schema",
    "dm-postgis-errors",
    "dm-http-errors",
)
_DEFAULT_HEADERS: Final = frozenset({"fiware-service", "fiware-servicepath", "entityType", "suffix"})


@config
class HeaderRouterConfig:
    """Keys of HeaderRouter."""

    header_key: str = key(
        "header.key",
        default="",
        doc="The header whose text is the whole topic; records without it keep their topic. Not together with datamodel.",
    )
    datamodel: str = key(
        "datamodel",
        default="",
        importance="high",
        check=one_of("", *_DATA_MODELS),
        doc="Which headers name schema and table; dm-by-entity-type-database where neither this nor header.key is set. "
        "The header fiware-datamodel of a record overrides it.",
    )
    service: str = key(
        "headers.service",
        default="fiware-service",
        doc="The header that has the service; a text that no header of the record is called by is the service itself.",
    )
    service_path: str = key(
        "headers.servicepath",
        default="fiware-servicepath",
        doc="The header that has the service path, or the service path itself.",
    )
    entity_type: str = key(
        "headers.entitytype",
        default="entityType",
        doc="The header that has the entity's type, or the type itself.",
    )
    entity_id: str = key(
        "headers.entityid",
        default="entityId",
        importance="low",
        doc="Accepted for compatibility: no data model uses the entity's id.",
    )
    suffix: str = key(
        "suffix",
        default="suffix",
        doc="The header that has the suffix of the table, or the suffix itself; without the header suffix there is none.",
    )
    schema: str = key("headers.schema", default="", doc="The schema, whatever the data model would make it.")

    def problems(self) -> Iterable[Problem]:
        if self.header_key and self.datamodel:
            text = f"datamodel is {self.datamodel!r} and header.key is {self.header_key!r}: set one of them"
            yield Problem("header.key", text)


class _RouteError(Exception):
    """The headers of a record do not name a topic."""


@dataclass(frozen=True)
class _Fields:
    """The configured fields, resolved by the headers of a record."""

    headers: dict[str, str]
    config: HeaderRouterConfig

    def destination(self) -> tuple[str, str]:
        """Schema and table, before the configured schema and suffix."""
        model = self.headers.get("fiware-datamodel") or self.config.datamodel or "dm-by-entity-type-database"
        match model:
            case "dm-by-entity-type-database":
                path = _part(self._resolve(self.config.service_path))
                return self._required(self.config.service), f"{path}_{self._required(self.config.entity_type)}"
            case "dm-by-entity-type-database-schema":
                path = self._required(self.config.service_path)
                return path, f"{path}_{self._required(self.config.entity_type)}"
            case "dm-by-fixed-entity-type-database-schema":
                return self._required(self.config.service_path), self._required(self.config.entity_type)
            case "dm-postgis-errors" | "dm-http-errors":
                service = self._required(self.config.service)
                return service, f"{service}_error_log"
        raise _RouteError(f"header fiware-datamodel is {model!r}, not one of {', '.join(_DATA_MODELS)}")

    @property
    def suffix(self) -> str:
        return self._resolve(self.config.suffix)

    def _required(self, setting: str) -> str:
        part = _part(self._resolve(setting))
        if not part:
            raise _RouteError(f"header {setting} is missing or empty")
        return part

    def _resolve(self, setting: str) -> str:
        """A missing default header is empty text, not its name."""
        return self.headers.get(setting, "" if setting in _DEFAULT_HEADERS else setting)


class HeaderRouter(Transformation):
    """The topic becomes ``schema.table``, which the JDBC sink's ``table.name.format = ${topic}`` expects."""

    config_class = HeaderRouterConfig
    config: HeaderRouterConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        topics: list[str] = []
        wrong: dict[int, str] = {}
        rows = [()] * len(batch) if batch.headers is None else header_lists(batch.headers)
        for row, headers in enumerate(rows):
            try:
                topics.append(self._topic(batch.topic, {header.key: _text(header.value) for header in headers}))
            except _RouteError as error:
                wrong[row] = str(error)
        if wrong:
            reasons = "; ".join(dict.fromkeys(wrong.values()))
            raise DataError(f"no topic for records of {batch.topic}: {reasons}", rows=list(wrong))
        return routed(batch, topics)

    def _topic(self, topic: str, headers: dict[str, str]) -> str:
        if self.config.header_key:
            return headers.get(self.config.header_key) or topic
        fields = _Fields(headers, self.config)
        schema, table = fields.destination()
        return f"{self.config.schema or schema}.{table}{fields.suffix}"


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _part(text: str) -> str:
    return text.strip("/").lower()
