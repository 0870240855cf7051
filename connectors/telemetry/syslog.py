"""Messages of syslog, as RFC 5424 and RFC 3164 have them, from bytes to plain values.

None of the parsers on PyPI is maintained any more: the newest was released in 2021 and takes RFC 3164 only.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from connect.api import Schema, SchemaType
from connectors.telemetry.malformed import Malformed

__all__ = ["KEY", "SCHEMA", "parsed"]

_TEXT: Final = Schema(SchemaType.STRING, optional=True)
KEY: Final = _TEXT
SCHEMA: Final = Schema.struct(
    {
        "format": Schema(SchemaType.STRING),
        "facility": Schema(SchemaType.INT32),
        "severity": Schema(SchemaType.INT32),
        "time": Schema.timestamp(optional=True),
        "hostname": _TEXT,
        "app_name": _TEXT,
        "process_id": _TEXT,
        "message_id": _TEXT,
        "structured_data": Schema.map(Schema(SchemaType.STRING), Schema(SchemaType.STRING), optional=True),
        "message": Schema(SchemaType.STRING),
        "sender": Schema(SchemaType.STRING),
        "received": Schema.timestamp(),
    },
    name="tidegate.telemetry.Syslog",
)
"""The value of a record. Fields are those of RFC 5424; one that a message lacks is null."""

_PRIORITY: Final = re.compile(rb"<(0|[1-9]\d{0,2})>")
_MOST: Final = 191
_VERSION: Final = re.compile(rb"[1-9]\d{0,2} ")
_HEADER: Final = re.compile(
    rb"1 (-|[0-9TZ:.+-]{1,40}) ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128}) ([!-~]{1,32}) (?=[-[])"
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_NAME: Final = rb"[!#-<>-\\^-~]{1,32}"
_ELEMENT: Final = re.compile(rb"\[(" + _NAME + rb")((?: +" + _NAME + rb'="(?:[^"\\\]]|\\.)*")*) *\]', re.DOTALL)
_PARAMETER: Final = re.compile(rb"(" + _NAME + rb')="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(rb'\\(["\\\]])')
_OLD_HEADER: Final = re.compile(rb"([A-Z][a-z]{2}) ([ 0-3]?\d) (\d\d):(\d\d):(\d\d) ([!-~]{1,255}) ")
_TAG: Final = re.compile(rb"([!-9;-Z^-~]{1,48})(?:\[([!-Z^-~]{0,128})\])?: ?")
_MONTHS: Final = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"]
_BOM: Final = b"\xef\xbb\xbf"


def parsed(data: bytes, sender: str, received: datetime, zone: tzinfo = UTC) -> dict[str, Any]:
    """The value of a message; ``zone`` is that of times without one. Raises Malformed.

    A message with a version behind its priority is RFC 5424's, any other RFC 3164's. That describes what was usual rather
    than a format, so parts of its header that are not there are null, and the rest is the message. Structured data has the
    keys ``ID.NAME``. Bytes that are not UTF-8 become ``\\xNN``.
    """
    data = data.rstrip(b"\n\r\0")
    priority = _PRIORITY.match(data)
    if priority is None or int(priority[1]) > _MOST:
        raise Malformed(f"it should begin with a priority from <0> to <{_MOST}>")
    rest = data[priority.end() :]
    fields = _new(rest) if _VERSION.match(rest) else _old(rest, received, zone)
    facility, severity = divmod(int(priority[1]), 8)
    return {**fields, "facility": facility, "severity": severity, "sender": sender, "received": received}


def _new(rest: bytes) -> dict[str, Any]:
    header = _HEADER.match(rest)
    if header is None:
        raise Malformed("its header should be as in RFC 5424: 1 TIME HOST APP PROCESS ID, then structured data or -")
    time, *names = (None if part == b"-" else part.decode("ascii") for part in header.groups())
    data, message = _structured(rest[header.end() :])
    return {
        "format": "rfc5424",
        "time": None if time is None else _time(time),
        **dict(zip(("hostname", "app_name", "process_id", "message_id"), names, strict=True)),
        "structured_data": data,
        "message": _text(message.removeprefix(_BOM)),
    }


def _time(text: str) -> datetime:
    if not _TIME.fullmatch(text):
        raise Malformed(f"its time {text!r} should be as in 2026-01-31T10:00:00.123Z")
    try:
        return _milliseconds(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise Malformed(f"its time {text!r} does not exist") from error


def _structured(rest: bytes) -> tuple[dict[str, str] | None, bytes]:
    """The structured data, and the message behind it."""
    if rest.startswith(b"-"):
        data, end = None, 1
    else:
        data, end = {}, 0
        while rest.startswith(b"[", end):
            element = _ELEMENT.match(rest, end)
            if element is None:
                raise Malformed('its structured data should be as in [id name="value"], with \\ before ", ] and \\')
            name = element[1].decode("ascii")
            for parameter in _PARAMETER.finditer(element[2]):
                data[f"{name}.{parameter[1].decode('ascii')}"] = _text(_ESCAPED.sub(rb"\1", parameter[2]))
            end = element.end()
    if rest[end : end + 1] not in (b"", b" "):
        raise Malformed("a space should separate its structured data and its message")
    return data, rest[end + 1 :]


def _old(rest: bytes, received: datetime, zone: tzinfo) -> dict[str, Any]:
    time, host = None, None
    header = _OLD_HEADER.match(rest)
    if header is not None:
        time = _nearest(header, received, zone)
    if header is not None and time is not None:
        host, rest = header[6].decode("ascii"), rest[header.end() :]
    tag = _TAG.match(rest)
    name, process = (None, None) if tag is None else (tag[1].decode("ascii"), tag[2])
    return {
        "format": "rfc3164",
        "time": time,
        "hostname": host,
        "app_name": name,
        "process_id": None if process is None else process.decode("ascii"),
        "message_id": None,
        "structured_data": None,
        "message": _text(rest if tag is None else rest[tag.end() :]),
    }


def _nearest(header: re.Match[bytes], received: datetime, zone: tzinfo) -> datetime | None:
    """The time that is nearest to the receipt, of those that differ in the year; None if there is no such time."""
    if header[1] not in _MONTHS:
        return None
    month = _MONTHS.index(header[1]) + 1
    day, hour, minute, second = (int(header[number]) for number in range(2, 6))
    times = []
    for year in range(received.year - 1, received.year + 2):
        try:
            times.append(datetime(year, month, day, hour, minute, second, tzinfo=zone).astimezone(UTC))
        except (ValueError, OverflowError):
            continue
    return min(times, key=lambda time: abs(time - received), default=None)


def _milliseconds(time: datetime) -> datetime:
    return time - timedelta(microseconds=time.microsecond % 1000)


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")
