"""Telefonica's HeaderRouter: headers say the topic, from which a JDBC sink takes its table.

Source: the README of telefonicaid/kafnus-connect and doc/06_kafnus_connect.md of telefonicaid/kafnus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from connect.api import DataError, Problem, RecordBatch, Transformation, config, key, one_of
from connect.data.headers import header_lists
from connect.transforms.timestamp_router import routed

__all__ = ["HeaderRouter", "HeaderRouterConfig"]

_DATAMODEL_HEADER: Final = "fiware-datamodel"
_DATAMODELS: Final[Mapping[str, tuple[str, str]]] = {
    "dm-by-entity-type-database": ("{service}", "{servicepath}_{entitytype}"),
    "dm-by-entity-type-database-schema": ("{servicepath}", "{servicepath}_{entitytype}"),
    "dm-by-fixed-entity-type-database-schema": ("{servicepath}", "{entitytype}"),
    "dm-postgis-errors": ("{service}", "{service}_error_log"),
    "dm-http-errors": ("{service}", "{service}_error_log"),
}
"""The schema and the table of each data model."""
_DEFAULT: Final = "dm-by-entity-type-database"
"""Here the root of service paths, or none, makes tables that begin with ``_``. It is an error elsewhere."""
_HEADERS: Final = {"service": "fiware-service", "servicepath": "fiware-servicepath", "entitytype": "entityType"}
_SUFFIX: Final = "suffix"


def _part_key(part: str) -> Any:
    return key(
        f"headers.{part}",
        default=_HEADERS[part],
        importance="low",
        doc="The header with this part of the name. Records without that header take the text of this key, unless it is the default.",
    )


@config
class HeaderRouterConfig:
    """Keys of HeaderRouter."""

    header: str = key(
        "header.key",
        default="",
        importance="high",
        doc="The header that has the whole topic. Records without it keep theirs. Without this key, datamodel makes the topic.",
    )
    prefix: str = key("topic.prefix", default="", importance="low", doc="What stands before the text of header.key.")
    datamodel: str = key(
        "datamodel",
        default=_DEFAULT,
        check=one_of(*_DATAMODELS),
        doc="How the schema and the table of a record are named. The header fiware-datamodel of a record comes first.",
    )
    service: str = _part_key("service")
    servicepath: str = _part_key("servicepath")
    entitytype: str = _part_key("entitytype")
    entityid: str = key(
        "headers.entityid", default="entityId", importance="low", doc="Accepted; no data model uses the entity's id."
    )
    suffix: str = key(
        "suffix",
        default=_SUFFIX,
        importance="low",
        doc="The header with the end of the table's name. Records without that header take the text of this key, unless it is the default.",
    )
    schema: str = key("headers.schema", default="", doc="The schema, whatever the data model says.")

    def problems(self) -> Iterable[Problem]:
        if self.prefix and not self.header:
            yield Problem("topic.prefix", "topic.prefix needs header.key, the header that has the rest of the topic")


class HeaderRouter(Transformation):
    """With ``header.key`` that header is the topic. Otherwise the topic becomes ``schema.table`` of the data model."""

    config_class = HeaderRouterConfig
    config: HeaderRouterConfig

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        lists = [()] * len(batch) if batch.headers is None else header_lists(batch.headers)
        rows = [{header.key: _text(header.value) for header in headers} for headers in lists]
        if self.config.header:
            texts = [headers.get(self.config.header) for headers in rows]
            return routed(batch, [batch.topic if text is None else self.config.prefix + text for text in texts])
        topics, wrong, error = [], [], ""
        for row, headers in enumerate(rows):
            try:
                topics.append(self._destination(headers))
            except DataError as refused:
                wrong.append(row)
                error = str(refused)
        if wrong:
            raise DataError(error, rows=wrong)
        return routed(batch, topics)

    def _destination(self, headers: Mapping[str, str | None]) -> str:
        name = headers.get(_DATAMODEL_HEADER) or self.config.datamodel
        if name not in _DATAMODELS:
            raise DataError(
                f"header {_DATAMODEL_HEADER} is {name!r}: it should be one of {', '.join(sorted(_DATAMODELS))}"
            )
        schema, table = _DATAMODELS[name]
        parts = {
            part: self._part(headers, part, required=not (part == "servicepath" and name == _DEFAULT))
            for part in _HEADERS
            if f"{{{part}}}" in schema + table
        }
        suffix = headers.get(self.config.suffix)
        if suffix is None:
            suffix = "" if self.config.suffix == _SUFFIX else self.config.suffix
        return f"{self.config.schema or schema.format(**parts)}.{table.format(**parts)}{suffix}"

    def _part(self, headers: Mapping[str, str | None], part: str, *, required: bool) -> str:
        name = getattr(self.config, part)
        fixed = None if name == _HEADERS[part] else name
        made = (headers.get(name, fixed) or "").strip("/").lower()
        if not made and required:
            raise DataError(f"Required header missing or empty: {name}")
        return made


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
