"""Misbehaving connectors for tests of the Connect runtime: calls that do not return, fail or are slow."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from connect.api import (
    ConnectError,
    Problem,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    TopicPartition,
    config,
    key,
)

_NUMBER = Schema(SchemaType.INT64)
_ERRORS: Mapping[str, BaseException] = {
    "exit": SystemExit("a library wants to end the process"),
    "panic": type("PanicException", (BaseException,), {})("a compiled library has panicked"),
    "interrupt": KeyboardInterrupt("somebody pressed Ctrl-C"),
    "generator": GeneratorExit("a generator was closed"),
    "error": ConnectError("it cannot go on"),
    "away": RetriableConnectError("the other side is away"),
}


@config
class TroubledConfig:
    topic: str = key("topic", default="troubled", doc="Topic to write to.")
    topics: str = key("topics", default="", doc="Topics to read.")
    file: str = key("file", default="", doc="Where a sink writes offsets, a line each.")
    calls: str = key("calls", default="", doc="Where calls are noted, a line each.")
    trouble: str = key("trouble", default="", doc="CALL:WHAT, such as start:block, poll:exit, task.start:away.")
    until: str = key("until", default="", doc="The file that ends the trouble.")
    slow_ms: int = key("slow.ms", default=0, doc="How long a put goes on once the task is to stop.")
    plans: str = key("plans", default="", doc="A JSON list of what each task's properties are beside the connector's.")
    secret: str = key("secret", default="", doc="A value that a placeholder may stand for.")


class _Troubled:
    """Base class of the connectors and tasks. ``named`` is the name of a call in ``trouble``."""

    config: TroubledConfig

    def call(self, named: str) -> None:
        if self.config.calls:
            with Path(self.config.calls).open("a") as noted:
                noted.write(f"{named}\n")
        where, _, what = self.config.trouble.partition(":")
        over = bool(self.config.until) and Path(self.config.until).exists()
        if where != named or over:
            return
        if what == "block":
            while not (self.config.until and Path(self.config.until).exists()):
                time.sleep(0.05)
        else:
            raise _ERRORS[what]


class _Connector(_Troubled):
    properties: Mapping[str, str]

    def start(self) -> None:
        self.call("start")

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.call("plan")
        if self.config.plans:
            return [{**self.properties, **more} for more in json.loads(self.config.plans)]
        return [self.properties]

    def stop(self) -> None:
        self.call("stop")


class TroubledTask(_Troubled, SourceTask[TroubledConfig]):
    """One number for each poll."""

    def start(self) -> None:
        self.call("task.start")
        self.n = int((self.context.offset({"t": self.config.topic}) or {"n": 0})["n"])

    def poll(self) -> Sequence[RecordBatch]:
        self.call("poll")
        self.context.stopping.wait(0.02)
        n = self.n + 1
        batch = RecordBatch(
            self.config.topic,
            pa.array([n], pa.int64()),
            _NUMBER,
            source_partition={"t": self.config.topic},
            source_offset={"n": n},
        )
        self.n = n
        return [batch]

    def stop(self) -> None:
        self.call("task.stop")


class TroubledSource(_Connector, SourceConnector[TroubledConfig]):
    config_class, task_class = TroubledConfig, TroubledTask

    @classmethod
    def check(cls, config: TroubledConfig) -> Iterable[Problem]:
        asked = _Troubled()
        asked.config = config
        asked.call("check")
        return ()


class HeldTask(_Troubled, SinkTask[TroubledConfig]):
    """Holds what it is given until a commit, and throws it away when it is stopped: as a sink of files does."""

    def start(self) -> None:
        self.call("task.start")
        self.held: list[int] = []

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.call("open")

    def put(self, batches: Sequence[RecordBatch]) -> None:
        for batch in batches:
            assert batch.offsets is not None
            self.held += batch.offsets.to_pylist()
        if batches and self.config.slow_ms and not self._over():
            while not self.context.stopping.is_set():
                time.sleep(0.01)
            time.sleep(self.config.slow_ms / 1000)
        self.call("put")

    def _over(self) -> bool:
        return bool(self.config.until) and Path(self.config.until).exists()

    def flush(self) -> None:
        self.call("flush")
        with Path(self.config.file).open("a") as output:
            output.writelines(f"{offset}\n" for offset in self.held)
        self.held = []

    def stop(self) -> None:
        self.call("task.stop")
        self.held = []


class TroubledSink(_Connector, SinkConnector[TroubledConfig]):
    config_class, task_class = TroubledConfig, HeldTask


def offsets_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def calls_in(file: Any) -> list[str]:
    path = Path(file)
    return path.read_text().splitlines() if path.exists() else []
