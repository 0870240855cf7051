"""Keys of the telemetry sources."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import ClassVar, Final, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from connect.api import KeyType, Problem, at_least, config, inherited, key, non_empty, time_zone
from tidegate.kit.addresses import InvalidAddress, host_port

__all__ = ["Listener", "OtlpConfig", "StatsdConfig", "SyslogConfig", "TelemetryConfig"]

_LISTENERS: Final = "Listeners"


class Listener(NamedTuple):
    """An address, and what is spoken there: udp, tcp or http."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@config
class TelemetryConfig:
    """Where messages come in, and how many may wait for the log."""

    schemes: ClassVar[tuple[str, ...]] = ("udp", "tcp")

    listeners: list[str] = key(
        "listeners",
        doc="Addresses to listen on, such as udp://127.0.0.1:5514,tcp://127.0.0.1:5514. There is no login: everybody who reaches "
        "them may write.",
        importance="high",
        check=non_empty,
        group=_LISTENERS,
    )
    connections: int = key(
        "connections.max",
        default=1000,
        check=at_least(1),
        type=KeyType.INT,
        doc="Connections of a TCP or HTTP listener at one time. Further ones are closed, and counted as refused.",
        group=_LISTENERS,
    )
    message_bytes: int = key(
        "message.max.bytes",
        default=65_536,
        check=at_least(64),
        type=KeyType.INT,
        doc="The largest message, in bytes. Larger ones are left out as malformed.",
        group=_LISTENERS,
    )
    queue_messages: int = key(
        "queue.max.messages",
        default=10_000,
        check=at_least(1),
        type=KeyType.INT,
        doc="How many messages may wait in memory for the log. Then TCP connections are not read, HTTP requests get 503, and UDP "
        "messages are dropped and counted.",
        group=_LISTENERS,
    )
    queue_bytes: int = key(
        "queue.max.bytes",
        default=16 * 1024 * 1024,
        check=at_least(1024),
        type=KeyType.INT,
        doc="The same bound in bytes, as the messages came.",
        group=_LISTENERS,
    )
    udp_buffer_bytes: int = key(
        "udp.receive.buffer.bytes",
        default=1024 * 1024,
        check=at_least(1024),
        type=KeyType.INT,
        doc="The receive buffer to ask the operating system for. It drops datagrams that don't fit, and does not say so to this connector.",
        group=_LISTENERS,
    )
    dead_letters: str = key(
        "errors.deadletterqueue.topic.name",
        default="",
        doc="The topic for malformed messages: structs of listener, sender, error and message. Malformed messages are left out, counted "
        "and logged whatever errors.tolerance says: a sender must not be able to stop the listener.",
        group="Error Handling",
    )

    def problems(self) -> Iterable[Problem]:
        for text in self.listeners:
            try:
                listener_of(text, self.schemes)
            except ValueError as error:
                yield Problem("listeners", f"listeners: {error}")

    @property
    def addresses(self) -> list[Listener]:
        return [listener_of(text, self.schemes) for text in self.listeners]


def listener_of(text: str, schemes: tuple[str, ...]) -> Listener:
    """Raises ValueError that says what an address should be."""
    scheme, _, address = text.partition("://")
    wanted = " or ".join(f"{each}://HOST:PORT" for each in schemes)
    if scheme not in schemes or urlsplit(f"//{address}").path:
        raise ValueError(f"{text!r} should be {wanted}")
    try:
        return Listener(scheme, *host_port(address))
    except InvalidAddress as error:
        raise ValueError(f"{text!r} should be {wanted}") from error


@config
class SyslogConfig(TelemetryConfig):
    """Which messages of syslog become records."""

    topic: str = key("topic", doc="The topic of the messages.", importance="high", check=non_empty)
    zone_name: str = key(
        "rfc3164.timezone",
        default="UTC",
        check=time_zone(),
        doc="The time zone of messages as RFC 3164 has them: their times have neither a zone nor a year.",
    )

    @property
    def zone(self) -> tzinfo:
        return ZoneInfo(self.zone_name)


@config
class StatsdConfig(TelemetryConfig):
    """Which metrics become records."""

    topic: str = key("topic", doc="The topic of the metrics.", importance="high", check=non_empty)


@config
class OtlpConfig(TelemetryConfig):
    """Where logs, metrics and traces go."""

    schemes: ClassVar[tuple[str, ...]] = ("http",)

    message_bytes: int = inherited(
        default=4 * 1024 * 1024, doc="The largest request, in bytes, also after it was unpacked. Larger ones get 413."
    )
    logs_topic: str = key("logs.topic", default="otlp-logs", check=non_empty, doc="The topic of log records.")
    metrics_topic: str = key(
        "metrics.topic", default="otlp-metrics", check=non_empty, doc="The topic of the data points of metrics."
    )
    traces_topic: str = key("traces.topic", default="otlp-traces", check=non_empty, doc="The topic of spans.")
