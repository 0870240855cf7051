"""The data generator: records generated from a schema at a chosen rate, the same ones again after a crash."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import (
    ConnectError,
    Header,
    OffsetChanges,
    Record,
    RecordBatch,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
)
from connectors.datagen.config import DatagenConfig, DatagenTaskConfig
from connectors.datagen.generator import generator_of

__all__ = ["DatagenConnector", "DatagenTask"]

_AT_ONCE: Final = 1000
_NUMBER: Final = Schema(SchemaType.INT64)
_NO_KEY: Final = Schema(SchemaType.STRING, optional=True)
_SEEDS: Final = 1 << 62


class DatagenTask(SourceTask[DatagenTaskConfig]):
    """The offset is ``{"task.generation", "current.iteration", "random.seed"}`` in partition ``{"task.id"}``, as with
    the original.

    Each record depends only on the seed and its number.
    """

    def start(self) -> None:
        self._partition = {"task.id": self.config.task_id}
        offset = self.context.offset(self._partition) or {}
        self._made = _whole(offset, "current.iteration", 0)
        self._generation = _whole(offset, "task.generation", 0)
        seed = self.config.seed if self.config.seed is not None else random.randrange(_SEEDS)
        self._seed = _whole(offset, "random.seed", seed)
        self._schema = self.config.schema
        self._generate = generator_of(self.config.form, self._schema)
        name = self.config.key_name
        self._key_schema = self._schema.field(name).schema if name else _NO_KEY
        self._random = random.Random()
        self._pauses = random.Random()

    def poll(self) -> Sequence[RecordBatch]:
        count = _AT_ONCE
        if self.config.max_interval_ms > 0:
            count = 1
            self.context.stopping.wait(self._pauses.random() * self.config.max_interval_ms / 1000)
        if self.context.stopping.is_set():
            return []
        if self.config.iterations > 0:
            if self._made >= self.config.iterations:
                raise ConnectError(f"Stopping connector: generated the configured {self._made} number of messages")
            count = min(count, self.config.iterations - self._made)
        numbers = range(self._made, self._made + count)
        records = [self._record(number) for number in numbers]
        offset = self._offset(numbers.stop)
        batch = RecordBatch.from_records(records, source_partition=self._partition, source_offset=offset)
        self._made = numbers.stop
        return [batch]

    def _record(self, number: int) -> Record:
        self._random.seed(f"{self._seed}/{self.config.task_id}/{number}")
        value = self._generate(self._random, number)
        headers = {"task.generation": self._generation, "task.id": self.config.task_id, "current.iteration": number}
        return Record(
            self.config.topic,
            value,
            self._schema,
            key=value[self.config.key_name] if self.config.key_name else None,
            key_schema=self._key_schema,
            headers=tuple(Header(name, header_value, _NUMBER) for name, header_value in headers.items()),
        )

    def _offset(self, made: int) -> Mapping[str, Any]:
        return {"task.generation": self._generation + 1, "current.iteration": made, "random.seed": self._seed}


def _whole(offset: Mapping[str, Any], name: str, default: int) -> int:
    value = offset.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(f"offset {dict(offset)}: {name} should be a whole number")
    return value


class DatagenConnector(SourceConnector[DatagenConfig]):
    """Every task generates ``iterations`` records of its own."""

    config_class = DatagenConfig
    task_class = DatagenTask
    task_config_class = DatagenTaskConfig

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.properties, "task.id": str(number)} for number in range(max_tasks)]

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        for _, offset in offsets:
            for name in ("task.generation", "current.iteration", "random.seed"):
                _whole(offset or {}, name, 0)
        return True

    @classmethod
    def exactly_once(cls, config: DatagenConfig) -> bool:
        return True
