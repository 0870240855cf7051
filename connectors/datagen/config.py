"""Keys of the data generator: Confluent's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from connect.api import ConnectError, DataError, KeyType, Problem, Schema, config, key, non_empty, one_of
from connect.formats import avro_schema
from connectors.datagen.generator import generator_of
from connectors.datagen.quickstarts import QUICKSTARTS

__all__ = ["DatagenConfig", "DatagenTaskConfig"]


@config
class DatagenConfig:
    """Which records are generated, how many and how fast."""

    topic: str = key("kafka.topic", doc="Topic to write to.", importance="high", check=non_empty)
    max_interval_ms: int = key(
        "max.interval",
        default=500,
        doc="The longest pause before a record, in milliseconds: each is of a random length. 0 or less: as fast as it goes.",
        importance="high",
    )
    iterations: int = key(
        "iterations",
        default=-1,
        type=KeyType.INT,
        doc="How many records a task makes; it fails then, saying so, as the original does. 0 or less: no end.",
        importance="high",
    )
    schema_string: str = key(
        "schema.string",
        default="",
        doc="The Avro schema of records, as JSON, with arg.properties that say which values there are.",
        importance="high",
    )
    schema_file: str = key(
        "schema.filename", default="", doc="A file on the worker's machine with such a schema.", importance="high"
    )
    quickstart: str = key(
        "quickstart",
        default="",
        check=one_of("", *QUICKSTARTS, ignore_case=True),
        doc="The name of a ready-made schema.",
        importance="high",
    )
    key_field: str = key(
        "schema.keyfield",
        default="",
        doc="The field that is the record's key too. By default a quickstart's own; otherwise records have no key.",
        importance="high",
    )
    seed: int | None = key(
        "random.seed",
        default=None,
        doc="The same seed makes the same records. By default each new connector gets one of its own.",
        importance="low",
    )

    @property
    def form(self) -> Mapping[str, Any]:
        """The Avro schema as parsed JSON. Raises ConnectError where it is not valid JSON or cannot be found."""
        if self.quickstart:
            return QUICKSTARTS[self.quickstart.lower()].schema
        try:
            text = self.schema_string or Path(self.schema_file).read_text()
            form = json.loads(text)
        except OSError as error:
            raise ConnectError(f"cannot read {self.schema_file}: {error.strerror}") from error
        except ValueError as error:
            raise ConnectError(f"the schema is not JSON: {error}") from error
        if not isinstance(form, dict) or form.get("type") != "record":
            raise ConnectError('the schema should be an Avro record: {"type":"record",...}')
        return form

    @property
    def schema(self) -> Schema:
        """The Connect schema of the values. Raises ConnectError where the Avro schema is invalid."""
        try:
            return avro_schema(json.dumps(self.form))
        except DataError as error:
            raise ConnectError(f"the schema is not right: {error}") from error

    @property
    def key_name(self) -> str:
        return self.key_field or (QUICKSTARTS[self.quickstart.lower()].key if self.quickstart else "")

    def problems(self) -> Iterable[Problem]:
        sources = [name for name in ("schema_string", "schema_file", "quickstart") if getattr(self, name)]
        if len(sources) != 1:
            yield Problem("quickstart", "give one of schema.string, schema.filename and quickstart")
            return
        at = {"schema_string": "schema.string", "schema_file": "schema.filename"}.get(sources[0], "quickstart")
        try:
            schema = self.schema
            generator_of(self.form, schema)
            if self.key_name and self.key_name not in schema.field_names:
                fields = ", ".join(schema.field_names)
                yield Problem("schema.keyfield", f"the schema has no field {self.key_name!r}; it has: {fields}")
        except ConnectError as error:
            yield Problem(at, str(error))


@config
class DatagenTaskConfig(DatagenConfig):
    """The configuration that the connector gives each task."""

    task_id: int = key("task.id", default=0, type=KeyType.INT, doc="The task's number.")
