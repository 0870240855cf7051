"""The sources of telemetry: what machines and programs send to a listener becomes records."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, Generic, TypeVar

from connect.api import (
    Acknowledged,
    Record,
    RecordBatch,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
    get_logger,
    pieces,
)
from connectors.telemetry import statsd, syslog
from connectors.telemetry.config import Listener, OtlpConfig, StatsdConfig, SyslogConfig, TelemetryConfig
from connectors.telemetry.inbox import Arrival
from connectors.telemetry.malformed import Malformed
from connectors.telemetry.receiver import Open, Receiver

__all__ = ["OtlpSource", "OtlpTask", "StatsdSource", "StatsdTask", "SyslogSource", "SyslogTask"]

logger = get_logger(__name__)

ConfigT = TypeVar("ConfigT", bound=TelemetryConfig)

_ROWS: Final = 5000
_BYTES: Final = 2 * 1024 * 1024
"""A poll returns about so many rows and bytes, at most."""
_PATIENCE_S: Final = 0.2
_TELL_EVERY_S: Final = 1.0
_SHOWN: Final = 16_384
"""Bytes of a malformed message that its dead letter has."""
_LETTER: Final = Schema.struct(
    {name: Schema(SchemaType.STRING) for name in ("listener", "sender", "error", "message")},
    name="tidegate.telemetry.Malformed",
)


class TelemetryTask(SourceTask[ConfigT], Generic[ConfigT]):
    """No position is kept: what a listener has taken can't be asked for again."""

    def start(self) -> None:
        self._receiver = Receiver(self.config, f"{self.context.connector} listeners")
        self.resources.callback(self._close)
        self._told, self._told_at = (-1, -1, -1, -1), 0.0
        self._taken: Iterator[tuple[Record, int]] = iter(())
        self._receiver.start([self.opening(listener) for listener in self.config.addresses])
        logger.info("listening", connector=self.context.connector, listeners=self.config.listeners)
        self._tell()

    def _close(self) -> None:
        self._receiver.close()
        lost = len(self._receiver.inbox)
        if lost:
            logger.warning("messages that waited for the log are lost", connector=self.context.connector, messages=lost)

    @abstractmethod
    def opening(self, listener: Listener) -> Open:
        """Opens this listener."""

    @abstractmethod
    def rows(self, arrival: Arrival) -> Iterator[tuple[Record, int]]:
        """The records of a message, with about their bytes; those of ``left_out`` where it is malformed."""

    def left_out(self, arrival: Arrival, data: bytes, error: str) -> Iterator[tuple[Record, int]]:
        """Counts and logs what is malformed; its dead letter if there is a topic for them."""
        self._receiver.counts.malformed += 1
        self.context.count_skipped(1, dead_letters=1 if self.config.dead_letters else 0)
        text = data[:_SHOWN].decode(errors="backslashreplace")
        about = {"sender": arrival.sender, "listener": arrival.listener, "error": error}
        logger.warning("malformed message left out", **about, message=text[:200])
        if self.config.dead_letters:
            yield Record(self.config.dead_letters, {**about, "message": text}, _LETTER), len(text)

    def poll(self) -> Sequence[RecordBatch]:
        by_topic: dict[str, list[Record]] = defaultdict(list)
        count = size = 0
        for record, more in self._next_rows():
            by_topic[record.topic].append(record)
            count, size = count + 1, size + more
            if count >= _ROWS or size >= _BYTES:
                break  # one message may have a million rows: the others follow at the next poll
        self._tell()
        batches = map(RecordBatch.from_records, by_topic.values())
        return [batch.slice(*piece) for batch in batches for piece in pieces(batch.values, len(batch))]

    def _next_rows(self) -> Iterator[tuple[Record, int]]:
        """Rows of messages that were taken, then of those that are in the queue now."""
        patience_s = _PATIENCE_S
        for row in self._taken:
            patience_s = 0.0
            yield row
        arrivals = self._receiver.inbox.take(_ROWS, _BYTES, patience_s)
        self._taken = chain.from_iterable(map(self._rows_of, arrivals))
        yield from self._taken

    def _rows_of(self, arrival: Arrival) -> Iterator[tuple[Record, int]]:
        if arrival.error:
            yield from self.left_out(arrival, arrival.data, arrival.error)
        else:
            yield from self.rows(arrival)

    def _tell(self) -> None:
        """The counts are the task's progress, so that its metrics and the console have them."""
        counts = self._receiver.counts
        told = (counts.received, counts.dropped, counts.malformed, counts.refused)
        now = time.monotonic()
        if told == self._told or now - self._told_at < _TELL_EVERY_S:
            return
        self._told, self._told_at = told, now
        names = ("received", "dropped", "malformed", "refused")
        parts = [{"name": name, "state": "COUNTED", "done": done} for name, done in zip(names, told, strict=True)]
        self.context.progress(counts.received, unit="messages", note="listening", parts=parts)


class SyslogTask(TelemetryTask[SyslogConfig]):
    def opening(self, listener: Listener) -> Open:
        return _socket(listener, self.config, counted=True)

    def rows(self, arrival: Arrival) -> Iterator[tuple[Record, int]]:
        try:
            value = syslog.parsed(arrival.data, arrival.sender, arrival.received, self.config.zone)
        except Malformed as error:
            yield from self.left_out(arrival, arrival.data, str(error))
        else:
            yield Record(self.config.topic, value, syslog.SCHEMA, value["hostname"], syslog.KEY), len(arrival.data)


class StatsdTask(TelemetryTask[StatsdConfig]):
    def opening(self, listener: Listener) -> Open:
        return _socket(listener, self.config, counted=False)

    def rows(self, arrival: Arrival) -> Iterator[tuple[Record, int]]:
        for line in statsd.lines(arrival.data):
            try:
                values = statsd.parsed(line, arrival.sender, arrival.received)
            except Malformed as error:
                yield from self.left_out(arrival, line, str(error))
            else:
                size = len(line) if len(values) == 1 else sum(map(len, chain(*values[0]["tags"].items())))
                for value in values:
                    yield Record(self.config.topic, value, statsd.SCHEMA, value["name"], statsd.KEY), size


class OtlpTask(TelemetryTask[OtlpConfig]):
    """A request is answered when the log has its rows. Where transforms or ``errors.tolerance=all`` may leave rows out, of which the
    task is not told, it is answered when it is in the queue.
    """

    def start(self) -> None:
        self._topics = {
            "logs": self.config.logs_topic,
            "metrics": self.config.metrics_topic,
            "traces": self.config.traces_topic,
        }
        super().start()

    def opening(self, listener: Listener) -> Open:
        from connectors.telemetry.http import Answers, listen_http

        if not hasattr(self, "_answers"):
            properties = self.context.properties
            at_once = bool(properties.get("transforms")) or properties.get("errors.tolerance") == "all"
            self._answers = Answers(self._receiver.loop, at_once=at_once)
        answers = self._answers
        return lambda inbox, counts, open_now: listen_http(listener, self.config, inbox, counts, answers, open_now)

    def rows(self, arrival: Arrival) -> Iterator[tuple[Record, int]]:
        from connectors.telemetry.otlp import KEY, rows_of, signal

        topic, schema = self._topics[arrival.signal], signal(arrival.signal).schema
        for value, size in rows_of(arrival.signal, arrival.request):
            self._answers.expect(arrival.number)
            yield Record(topic, value, schema, value["service"], KEY, offset=arrival.number), size
        self._answers.complete(arrival.number)

    def acknowledged(self, rows: Sequence[Acknowledged]) -> None:
        for each in rows:
            self._answers.written(each.offsets.to_pylist())


def _socket(listener: Listener, config: TelemetryConfig, *, counted: bool) -> Open:
    from connectors.telemetry.sockets import listen_tcp, listen_udp

    if listener.scheme == "udp":
        return partial(listen_udp, listener, config)
    return partial(listen_tcp, listener, config, counted=counted)


class _TelemetrySource(SourceConnector[ConfigT], Generic[ConfigT]):
    """One task: an address has one listener."""

    @classmethod
    def exactly_once(cls, config: ConfigT) -> bool:
        return False


class SyslogSource(_TelemetrySource[SyslogConfig]):
    """Syslog by UDP and TCP: RFC 5424 and RFC 3164."""

    config_class = SyslogConfig
    task_class = SyslogTask


class StatsdSource(_TelemetrySource[StatsdConfig]):
    """Metrics of statsd by UDP and TCP, also as DogStatsD writes them."""

    config_class = StatsdConfig
    task_class = StatsdTask


class OtlpSource(_TelemetrySource[OtlpConfig]):
    """Logs, metrics and traces by OTLP over HTTP."""

    config_class = OtlpConfig
    task_class = OtlpTask
