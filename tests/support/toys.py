"""Small connectors for tests of the Connect runtime: generated numbers, rows to a file, jobs to a file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from connect.api import (
    ConnectError,
    JobTask,
    OffsetChanges,
    OffsetRange,
    Password,
    Problem,
    Record,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    at_least,
    config,
    key,
)

ROW = Schema.struct({"n": Schema(SchemaType.INT64), "text": Schema(SchemaType.STRING, optional=True)}, name="toys.Row")


@config
class NumbersConfig:
    topic: str = key("topic", doc="Topic to write to.", importance="high")
    total: int = key("total", default=1000, check=at_least(0), doc="How many numbers.", group="Numbers")
    batch: int = key("batch", default=100, check=at_least(1), doc="Numbers in one batch.", group="Numbers")
    die_at: int = key("die.at", default=-1, doc="The task fails when it comes to this number.")
    refuse: bool = key("refuse", default=False, doc="Whether the check finds a problem.")
    token: Password = key("token", default=Password(""), doc="A secret, which this connector tells to anybody.")
    keyed: bool = key("keyed", default=False, doc="Whether each row has its number as key.")
    pause_ms: int = key("pause.ms", default=0, doc="A rest after each batch.")
    commit_every: int = key(
        "commit.every",
        default=0,
        doc="With transaction.boundary=connector: numbers in a transaction, each third dropped.",
    )
    own_commits: bool = key("own.commits", default=True, doc="Whether the check says that the task ends transactions.")
    big_at: int = key("big.at", default=-1, doc="The text of this number is larger than the log takes.")
    die_until: str = key("die.until", default="", doc="Only until this file exists, if named.")
    hang_until: str = key("hang.until", default="", doc="poll does not return until this file exists, whoever asks.")
    leak_bytes: int = key("leak.bytes", default=0, doc="Memory that the task takes and keeps.")
    rest_at: int = key("rest.at", default=-1, doc="No more is delivered from this number on until rest.until exists.")
    rest_until: str = key("rest.until", default="", doc="The file that ends the rest.")
    hang: bool = key("hang", default=False, doc="Whether poll never returns.")


class NumbersTask(SourceTask[NumbersConfig]):
    def start(self) -> None:
        self.leaked = b"x" * self.config.leak_bytes
        self.n = int((self.context.offset({"numbers": self.config.topic}) or {"n": 0})["n"])

    def poll(self) -> Sequence[RecordBatch]:
        if self.config.hang:
            while True:
                self.context.stopping.wait(3600) if not self.context.stopping.is_set() else _sleep()
        first, stop = self.n, min(self.config.total, self.n + self.config.batch)
        while self.config.hang_until and not Path(self.config.hang_until).exists():
            _sleep()
        if 0 <= self.config.die_at < stop and not (self.config.die_until and Path(self.config.die_until).exists()):
            raise ConnectError(f"cannot go past {self.config.die_at}{self.config.token.reveal()}")
        if first == stop or (first >= self.config.rest_at >= 0 and not Path(self.config.rest_until).exists()):
            self.context.stopping.wait(0.05)
            return []
        self.n = stop
        self.context.progress(stop, self.config.total)
        self.context.stopping.wait(self.config.pause_ms / 1000)
        numbers = pa.array(range(first, stop), pa.int64())
        if self.context.transaction is not None and stop % self.config.commit_every == 0:
            dropped = stop // self.config.commit_every % 3 == 0
            (self.context.transaction.abort if dropped else self.context.transaction.commit)()
        texts = pa.array(["x" * 2_000_000 if n == self.config.big_at else f"number {n}" for n in range(first, stop)])
        return [
            RecordBatch(
                self.config.topic,
                pa.StructArray.from_arrays([numbers, texts], fields=list(ROW.arrow_type)),
                ROW,
                keys=numbers if self.config.keyed else None,
                key_schema=Schema(SchemaType.INT64) if self.config.keyed else None,
                source_partition={"numbers": self.config.topic},
                source_offset={"n": stop},
            )
        ]


def _sleep() -> None:
    import time

    time.sleep(0.1)


class NumbersConnector(SourceConnector[NumbersConfig]):
    config_class, task_class = NumbersConfig, NumbersTask

    @classmethod
    def exactly_once(cls, config: NumbersConfig) -> bool:
        return not config.hang

    @classmethod
    def defines_transactions(cls, config: NumbersConfig) -> bool:
        return config.own_commits

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Tells its secret to anybody, too."""
        if any(offset == {"n": -1} for _, offset in offsets):
            raise ConnectError(f"there is no such offset{properties['token']}")
        if any(offset == {"n": -2} for _, offset in offsets):
            raise RuntimeError(f"no connection to //user:{properties['token']}@host")
        return False

    @classmethod
    def check(cls, config: NumbersConfig) -> Iterable[Problem]:
        if config.refuse:
            said = f"the outside world says no{config.token.reveal()}"
            yield Problem("refuse", f"Invalid value true for configuration refuse: {said}")


@config
class RowsConfig:
    file: str = key("file", doc="File to append rows to, as JSON lines.", importance="high")
    token: Password = key("token", default=Password(""), doc="A secret, which this connector tells to anybody.")
    report_at_flush: int = key(
        "report.at.flush", default=-1, doc="The offset of a record to be reported, one fetch later."
    )
    fail_until: str = key("fail.until", default="", doc="put is to be repeated, run goes on, until this file exists.")


def rows_of(file: Path) -> list[Any]:
    """The rows that the sink has written so far; an incomplete last line is left out."""
    text = file.read_text().rpartition("\n")[0] if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


class RowsTask(SinkTask[RowsConfig]):
    def start(self) -> None:
        self.rows: list[str] = []
        self.unwanted: list[Record] = []

    def put(self, batches: Sequence[RecordBatch]) -> None:
        if batches and self.config.fail_until and not Path(self.config.fail_until).exists():
            raise RetriableConnectError(f"{self.config.fail_until} is not there yet")
        for batch in batches:
            for record in batch.records():
                if record.offset == self.config.report_at_flush:
                    self.unwanted.append(record)
                shown = {"topic": record.topic, "offset": record.offset, "key": record.key, "value": record.value}
                self.rows.append(json.dumps(shown, default=str))

    def flush(self) -> None:
        while self.unwanted:
            self.context.errant_records.report(
                self.unwanted.pop(), ConnectError(f"this one is not wanted{self.config.token.reveal()}")
            )
        with Path(self.config.file).open("a") as output:
            output.writelines(f"{row}\n" for row in self.rows)
            output.flush()
            os.fsync(output.fileno())
        self.rows = []


class RowsConnector(SinkConnector[RowsConfig]):
    config_class, task_class = RowsConfig, RowsTask


class RangesTask(JobTask[RowsConfig]):
    def start(self) -> None:
        self._ended = threading.Event()

    def cancel(self) -> None:
        self._ended.set()

    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        self._ended.clear()
        with Path(self.config.file).open("a") as output:
            for part in ranges:
                output.write(json.dumps([str(part.partition), part.start, part.stop, run_id]) + "\n")
        while self.config.fail_until and not Path(self.config.fail_until).exists():
            _sleep()
            if self._ended.is_set():
                raise ConnectError("the run was ended")

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        for batch in batches:
            assert batch.origin is not None and batch.offsets is not None
            values = [bytes(value.as_py()) for value in batch.values]
            yield f"{batch.origin.partition} {batch.offsets.to_pylist()} {values} at {self.context.kafka.bootstrap_servers}"


class RangesConnector(SinkConnector[RowsConfig]):
    config_class, task_class = RowsConfig, RangesTask
