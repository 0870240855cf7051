"""Parsers of telemetry: examples of the specifications, and anything at all."""

from __future__ import annotations

import asyncio
import itertools
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import Record, RecordBatch
from connectors.telemetry import otlp, sockets, statsd, syslog
from connectors.telemetry.config import SyslogConfig
from connectors.telemetry.malformed import Malformed
from tests.connectors.telemetry.requests_of import logs_request, metrics_request

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FROM = "127.0.0.1:1"


def of_syslog(data: bytes, **more):
    value = syslog.parsed(data, FROM, NOW, **more)
    return {name: each for name, each in value.items() if each is not None and name not in ("sender", "received")}


SYSLOG = {
    # RFC 5424, 6.5
    b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed for lonvick on /dev/pts/8": {
        "format": "rfc5424",
        "facility": 4,
        "severity": 2,
        "time": datetime(2003, 10, 11, 22, 14, 15, 3000, tzinfo=UTC),
        "hostname": "mymachine.example.com",
        "app_name": "su",
        "message_id": "ID47",
        "message": "'su root' failed for lonvick on /dev/pts/8",
    },
    b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.": {
        "format": "rfc5424",
        "facility": 20,
        "severity": 5,
        "time": datetime(2003, 8, 24, 12, 14, 15, tzinfo=UTC),
        "hostname": "192.0.2.1",
        "app_name": "myproc",
        "process_id": "8710",
        "message": "%% It's time to make the do-nuts.",
    },
    b'<165>1 2003-10-11T22:14:15.003Z h e - I [exampleSDID@32473 iut="3" eventID="10\\"11\\]"][priority@32473 class="high"]': {
        "format": "rfc5424",
        "facility": 20,
        "severity": 5,
        "time": datetime(2003, 10, 11, 22, 14, 15, 3000, tzinfo=UTC),
        "hostname": "h",
        "app_name": "e",
        "message_id": "I",
        "structured_data": {
            "exampleSDID@32473.iut": "3",
            "exampleSDID@32473.eventID": '10"11]',
            "priority@32473.class": "high",
        },
        "message": "",
    },
    # RFC 3164, 5.4: the year is that before, which is nearer
    b"<34>Oct 11 22:14:15 mymachine su[12]: 'su root' failed\n": {
        "format": "rfc3164",
        "facility": 4,
        "severity": 2,
        "time": datetime(2025, 10, 11, 22, 14, 15, tzinfo=UTC),
        "hostname": "mymachine",
        "app_name": "su",
        "process_id": "12",
        "message": "'su root' failed",
    },
    b"<0>Feb 30 22:14:15 h Use \xff": {
        "format": "rfc3164",
        "facility": 0,
        "severity": 0,
        "app_name": None,
        "message": "Feb 30 22:14:15 h Use \\xff",
    },
    b"<14>only text\0": {"format": "rfc3164", "facility": 1, "severity": 6, "message": "only text"},
}


@pytest.mark.parametrize("data", SYSLOG, ids=range(len(SYSLOG)))
def test_a_message_of_syslog(data):
    expected = {name: each for name, each in SYSLOG[data].items() if each is not None}
    assert of_syslog(data) == expected


def test_a_time_of_syslog_without_a_zone_is_that_of_the_configuration():
    assert of_syslog(b"<34>Jan  2 04:00:00 h t: m", zone=ZoneInfo("Europe/Rome"))["time"] == NOW.replace(
        minute=0, second=0
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no priority", "it should begin with a priority from <0> to <191>"),
        (b"<192>x", "it should begin with a priority"),
        (b"<1>1 - - - -", "its header should be as in RFC 5424"),
        (b"<1>2 - - - - - -", "its header should be as in RFC 5424"),
        (b"<1>1 2026-02-30T00:00:00Z - - - - -", "its time '2026-02-30T00:00:00Z' does not exist"),
        (b"<1>1 yesterday - - - - -", "its header should"),
        (b"<1>1 20260101T000000Z - - - - -", "its time '20260101T000000Z' should be as in"),
        (b'<1>1 - - - - - [a b="c]', "its structured data should be as in"),
        (b"<1>1 - - - - - -x", "a space should separate"),
    ],
)
def test_a_malformed_message_of_syslog(data, said):
    with pytest.raises(Malformed) as raised:
        syslog.parsed(data, FROM, NOW)
    assert said in str(raised.value)


STATSD = {
    b"page.views:1|c": {"type": "counter", "value": 1.0},
    b"load:-.5e1|g": {"type": "gauge", "value": -5.0, "relative": True},
    b"load:5|g": {"type": "gauge", "value": 5.0},
    b"wait:320|ms|@0.1": {"type": "timer", "value": 320.0, "sample_rate": 0.1},
    b"users:anna:b|s|#site:shop,new|c:ci-1": {
        "type": "set",
        "member": "anna:b",
        "value": None,
        "tags": {"site": "shop", "new": ""},
    },
    b"size:3|h|T1700000000": {
        "type": "histogram",
        "value": 3.0,
        "time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    },
}


@pytest.mark.parametrize("line", STATSD, ids=lambda line: line.decode())
def test_a_line_of_statsd(line):
    plain = {"member": None, "relative": False, "sample_rate": 1.0, "tags": {}, "time": NOW, "sender": FROM}
    name = line.partition(b":")[0].decode()
    assert statsd.parsed(line, FROM, NOW) == [{"name": name} | plain | STATSD[line]]


def test_lines_and_packed_values_of_statsd():
    assert [v["value"] for v in statsd.parsed(b"a:1:2.5:-3|ms", FROM, NOW)] == [1.0, 2.5, -3.0]
    assert statsd.lines(b"a:1|c\r\n\nb:1|c\n") == [b"a:1|c", b"b:1|c"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"no value", "it should be as in name:1|c"),
        (b"a:1", "it should be as in name:1|c"),
        (b":1|c", "it should be as in name:1|c"),
        (b"a:one|c", "its value 'one' is no number"),
        (b"a:1e999|c", "its value '1e999' is no number"),
        (b"a:nan|g", "its value 'nan' is no number"),
        (b"a:1|x", "its type is 'x', which should be one of c, g, ms, h, d, s"),
        (b"a:1|c|@0", "its sample rate '0' should be above 0 and at most 1"),
        (b"a:1|c|T-1", "its time '-1' should be seconds since 1970"),
        (b"a:|s", "a set needs a member"),
        (b"\xff:1|c", "it is not UTF-8: invalid start byte at byte 0"),
        (b"_e{5,4}:title|text", "its type is 'text'"),
    ],
)
def test_a_malformed_line_of_statsd(line, said):
    with pytest.raises(Malformed) as raised:
        statsd.parsed(line, FROM, NOW)
    assert said in str(raised.value)


def almost(*parts: bytes):
    """Parts of real messages in any order, with other bytes between them: they reach further into a parser than bytes alone."""
    return st.lists(st.sampled_from(parts) | st.binary(max_size=8), max_size=14).map(b"".join)


def fits(values, schema):
    """A batch of these values is made, as the source makes it."""
    if values:
        RecordBatch.from_records([Record("t", value, schema) for value in values]).values.validate(full=True)


@given(
    almost(
        *(
            b"<13>",
            b"1 ",
            b"- ",
            b"2026-01-31T10:00:00.5+01:00 ",
            b"9999-12-31T23:59:59-23:59 ",
            b"0001-01-01T00:00:00+14:00 ",
        ),
        *(
            b"Feb 29 01:02:03 ",
            b"Dec 31 23:59:60 ",
            b"host ",
            b"[a@1",
            b' n="v\\]"',
            b"]",
            b'"',
            b"\\",
            b"tag[1]: ",
            b"\n",
        ),
    ).map(lambda rest: b"<13>" + rest)
    | st.binary()
)
def test_any_bytes_are_a_message_of_syslog_or_malformed(data):
    try:
        value = syslog.parsed(data, FROM, NOW)
    except Malformed as error:
        assert str(error)
    else:
        assert value["facility"] * 8 + value["severity"] == int(data[1 : data.index(b">")])
        fits([value], syslog.SCHEMA)


@given(
    almost(
        b"a:", b"1", b"|c", b"|g", b"|ms", b"|s", b":", b"-1e3", b"|@0.5", b"|#t:v,", b"|T99999999999", b"|T1", b"\n"
    )
    | st.binary()
)
def test_any_bytes_are_metrics_of_statsd_or_malformed(data):
    for line in statsd.lines(data):
        try:
            values = statsd.parsed(line, FROM, NOW)
        except Malformed as error:
            assert str(error)
        else:
            assert values
            assert all(value["name"] == line.decode().partition(":")[0] for value in values)
            fits(values, statsd.SCHEMA)


def test_rows_of_metrics():
    rows = [row for row, _ in otlp.rows_of("metrics", otlp.decoded("metrics", metrics_request()))]
    assert {row["time"] for row in rows} == {datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)}
    assert {(row["service"], row["scope"]) for row in rows} == {("shop", "meter")}
    shown = ("name", "type", "value", "count", "sum", "min", "max", "bounds", "buckets", "temporality", "monotonic")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("load", "gauge", 3.0, None, None, None, None, None, None, None, None),
        ("sold", "sum", 2.5, None, None, None, None, None, None, "cumulative", True),
        ("wait", "histogram", None, 3, 6.5, 0.5, 4.0, [1.0], [1, 2], "unspecified", None),
        ("size", "exponential_histogram", None, 2**63 - 1, None, None, None, None, None, "unspecified", None),
        ("old", "summary", None, 2, 3.0, None, None, None, None, None, None),
    ]


def test_rows_of_logs():
    ((row, _),) = otlp.rows_of("logs", otlp.decoded("logs", logs_request()))
    assert row["body"] == '{"list": [1], "bytes": "/w==", "none": null}'
    assert row["attributes"] == {"on": "true", "share": "0.5"}
    assert (row["time"].year, row["observed"], row["severity"], row["trace_id"], row["span_id"]) == (
        2554,
        None,
        9,
        "01" * 16,
        None,
    )


@given(
    st.sampled_from(otlp.SIGNALS),
    st.binary() | st.sampled_from([metrics_request(), logs_request()]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
)
def test_any_bytes_are_a_request_of_otlp_or_malformed(signal, body, changes):
    changed = bytearray(body)
    for at, byte in changes:
        if changed:
            changed[at % len(changed)] = byte
    try:
        request = otlp.decoded(signal, bytes(changed))
    except Malformed as error:
        assert "it is no protobuf message Export" in str(error)
    else:
        fits([row for row, _ in otlp.rows_of(signal, request)], otlp.signal(signal).schema)


@given(
    almost(b"5 <1>a", b"12 ", b"<1>b", b"\n", b"\r\n", b"\0", b"x" * 70, b"99 ", b"007 "),
    st.lists(st.integers(1, 40), max_size=6),
    st.booleans(),
)
def test_any_bytes_of_a_connection_are_the_same_messages_however_they_arrive(data, cuts, counted):
    config = SyslogConfig(listeners=["tcp://127.0.0.1:0"], topic="t", message_bytes=64)

    async def split() -> list[tuple[bytes, str]]:
        reader = Pieces(data, cuts)
        return [message async for message in sockets.messages(reader, config, counted=counted)]

    found = asyncio.run(split())
    assert all(len(message) <= 64 for message, _ in found)
    cuts.clear()
    assert found == asyncio.run(split())
    if not counted:
        lines = [line for line in re.split(rb"[\n\0]", data) if line.strip(b"\r")]
        assert [message for message, _ in found] == [line[:64] for line in lines]
        assert [bool(error) for _, error in found] == [len(line) > 64 for line in lines]


class Pieces:
    """A reader that gets these many bytes at a time, then the rest."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        ends = [0, *itertools.accumulate(cuts), len(data)]
        pieces = (data[start:end] for start, end in itertools.pairwise(ends))
        self._pieces = iter([piece for piece in pieces if piece])

    async def read(self, size: int) -> bytes:
        return next(self._pieces, b"")
