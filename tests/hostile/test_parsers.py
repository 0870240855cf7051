"""Each parser of bytes that strangers send, on inputs that repeat: what it makes of them is its own tests' matter, here it has to be
done with them. One input may take a second of processor time (a machine that is busy changes nothing); a parser that is linear takes
hundredths, one that is quadratic or tries alternatives again and again takes minutes.
"""

from __future__ import annotations

import hashlib
import io
import struct
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import re2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.groups.consumer.regex import check as check_regex
from broker.handlers import ROUTES
from broker.protocol.codec import reader
from broker.protocol.compression import Codec
from broker.protocol.records import batches, decode_batch
from broker.security.sasl.jwt import InvalidToken, read_jwt
from broker.security.sasl.mechanism import InvalidCredentials
from broker.security.sasl.scram import client_final, client_first
from broker.telemetry.otlp import points
from broker.work import OFF_THE_LOOP, Allowance
from connect.api import DataError
from connect.group.protocol import decode_assignment, decode_state
from connect.server.standalone.java_map import load_map
from connectors.objects.formats import FileFormat, FormatOptions
from connectors.objects.formats.avro import CODECS, AvroFormat
from connectors.objects.formats.jsonl import JsonLinesFormat
from connectors.objects.formats.parquet import ParquetFormat
from connectors.sql.urls import parse_jdbc_url
from events.fronts.cometd.bayeux import messages_of
from events.fronts.rest.json_offsets import offset_of
from events.fronts.rest.references import References
from events.fronts.rest.soql import parse_select
from events.model import xml
from events.model.filters import Filter
from events.model.metadata_tree import read_zip
from events.model.metadata_xml import read_object
from registry.formats.avro.schema import AvroSchema
from registry.formats.json_schema.schema import JsonSchema
from registry.formats.protobuf.schema import ProtobufSchema
from tests.support.events import ORDER_SHIPPED
from tests.support.hostile import batch_of
from tests.support.processor_time import TookTooLong, processor_time
from tidegate.kit.config import parse as parse_config
from tidegate.kit.errors import ConfigError, TidegateError, UsageError
from tidegate.kit.http_security import basic_credentials
from tidegate.kit.jaas import login_module
from tidegate.kit.java_regex import JavaRegex
from tidegate.kit.keystores import KeyStoreError, read_store
from tidegate.kit.linear_regex import compiled
from tidegate.kit.properties import read_properties
from tidegate.kit.scrubbing import Secrets
from tidegate.kit.tls import TlsKeys, client_context
from tidegate.kit.users import read_users

LIMIT_S: Final = 1.0
MOST_BYTES: Final = 64 * 1024

EXPECTED: Final = (TidegateError, ValueError, InvalidToken, struct.error, EOFError, re2.error, InvalidCredentials)
"""How parsers refuse; that each refuses rightly is their own tests' matter."""


def schema(kind: Any) -> Callable[[str], None]:
    def read(text: str) -> None:
        parsed = kind.parse(text)
        parsed.normalized().canonical
        parsed.reading_problems(parsed)

    return read


def varint(number: int) -> bytes:
    """As Avro writes a count or a length."""
    left, made = number << 1, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def requests(data: bytes) -> None:
    for key in (1, 3, 8, 9, 11, 18, 19, 36, 68, 76):
        route = ROUTES[key]
        version = route.versions[-1]
        try:
            if key == 1:
                route.request.read(memoryview(data), version, 0)  # type: ignore[attr-defined]
            else:
                flexible = version >= route.request.FLEXIBLE_SINCE
                reader(route.request, version, flexible)(memoryview(data), 0)
        except (*EXPECTED, IndexError):  # whoever calls them makes MalformedMessage of it
            pass


def record_batches(data: bytes) -> None:
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        for count in (1, 1_000, 2**31 - 1):
            try:
                decode_batch(batch_of(data, count, codec))
            except EXPECTED:
                pass
    list(batches(memoryview(data)))


def zips(data: bytes) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("objects/A__e.object", data)
        for number in range(200):
            archive.writestr(f"objects/B{number}__e.object", data[:200])
    read_zip(out.getvalue())


def references(text: str) -> None:
    known = References()
    known.add("all", {"a": [text] * 10})
    known.add("a", {"b": text})
    known.resolved({"x": [text, "@{all}", "@{a.b}"]})


def secrets(text: str) -> None:
    made = Secrets()
    made.add_config({"connection.url": text, "a.password": text[:50]})
    made.scrub(text)


def java_regex(text: str) -> None:
    """Compiled in a task host, in time that grows with the length: 25 us for a group, 400 us for one with a counted repetition."""
    JavaRegex(text[:4_096])


def refusing(error: type[Exception], parse: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A parser that may refuse by this error alone: any other would be unforeseen."""

    def strict(data: Any) -> None:
        try:
            parse(data)
        except error:
            pass
        except EXPECTED as other:
            raise AssertionError(f"{type(other).__name__} where {error.__name__} belongs: {other}") from other

    return strict


def container(read: FileFormat) -> Callable[[bytes], None]:
    """A file of a source: rows are counted and dropped, for there may be many."""

    def parse(data: bytes) -> None:
        for chunk in read.read(io.BytesIO(data)):
            len(chunk.values)

    return parse


def _avro_file(schema: bytes, *blocks: bytes, codec: bytes = b"null", sync: bytes = bytes(16)) -> bytes:
    def sized(data: bytes) -> bytes:
        return varint(len(data)) + data

    meta = sized(b"avro.schema") + sized(schema) + sized(b"avro.codec") + sized(codec)
    return b"Obj\x01" + varint(2) + meta + b"\0" + sync + b"".join(block + sync for block in blocks)


def avro_schemas(data: bytes) -> None:
    """As the schema of a file."""
    container(AVRO)(_avro_file(data))


def avro_blocks(data: bytes) -> None:
    """As rows of several types and by each codec; a block says that it has few rows, as many as bytes, and more."""
    forms = [*((schema, "null") for schema in AVRO_TYPES), *((AVRO_TYPES[1], codec) for codec in CODECS)]
    for schema, codec in forms:
        packed = CODECS[codec](data)
        for count in (1, len(data), 1 << 24):
            block = varint(count) + varint(len(packed)) + packed
            refusing(DataError, container(AVRO))(_avro_file(schema, block, codec=codec.encode()))


def parquet_pages(data: bytes) -> None:
    """Bytes of a good file are exchanged."""
    good = PARQUET_FILE
    for at in (4, len(good) // 2, len(good) - 200, len(good) - 60):
        for piece in (data[:4], data[:40], data[:400]):
            refusing(DataError, container(PARQUET))(good[:at] + piece + good[at + len(piece) :])


def file_of(read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    def parse(data: bytes) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            read(Path(file.name))

    return parse


def key_stores(data: bytes) -> None:
    """As a whole, behind the head of a JKS store with one certificate or one key, and as its DER."""
    jks = bytes.fromhex("feedfeed000000020000ffff")
    for content in (
        data,
        jks + data,
        jks + b"\0\0\0\2\0\1a" + bytes(8) + b"\0\5X.509" + len(data).to_bytes(4, "big") + data,
    ):
        for password in (None, "changeit"):
            if password is not None and content.startswith(jks):
                digest = hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()
                content += digest
            elif content.startswith(jks):
                content += bytes(20)
            for kind in ("JKS", "PKCS12"):
                store = partial(read_store, kind=kind, password=password, key_password=None)
                refusing(KeyStoreError, file_of(store))(content)


def pem_texts(text: str) -> None:
    for keys in (
        {"ssl.truststore.certificates": text},
        {"ssl.keystore.key": text, "ssl.keystore.certificate.chain": text},
    ):
        refusing(ConfigError, lambda keys: client_context(parse_config(TlsKeys, keys)))(keys)


def text_of(function: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: function(data.decode("utf-8", "replace"))


AVRO, PARQUET, JSON_LINES = (kind(FormatOptions()) for kind in (AvroFormat, ParquetFormat, JsonLinesFormat))
AVRO_TYPES: Final = (
    b'"null"',
    b'"boolean"',
    b'"string"',
    b'{"type":"array","items":"null"}',
    b'{"type":"map","values":{"type":"array","items":"long"}}',
    b'{"type":"record","name":"R","fields":[]}',
    b'{"type":"record","name":"R","fields":[{"name":"a","type":["null","R","bytes"]}]}',
    b'{"type":"fixed","name":"F","size":0}',
)


def _parquet_file() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, None], "b": ["x", "y", "x"], "c": [[1], [], None]}), out)
    return out.getvalue()


PARQUET_FILE: Final = _parquet_file()
PEM: Final = ("-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "MIIB", "AAAA\n", "=", "-----", "\n", "\0")  # fmt: skip
JSON: Final = ("[", "]", "{", "}", '"a":', ",", "1", '{"a":', "[[", "null", '"', "\\u0041", "-", "1e9")
PARSERS: Final[dict[str, tuple[Callable[[Any], Any], tuple[str | bytes, ...]]]] = {
    "requests of the Kafka protocol": (requests, (b"\0", b"\xff", b"\1", b"\x7f", b"\0\1a", b"\0\0\0\1", b"\2", b"\x80")),
    "record batches": (record_batches, (b"\0", b"\x0e\0\0\0\1\2v\0", b"\xff", b"\1", b"\2", b"\x80\1")),
    "telemetry": (lambda data: list(points(data, Allowance(OFF_THE_LOOP))), (b"\n\2", b"\n", b"\x12\0", b"\0", b"\x80", b"\xff", b"\x1a\1")),
    "SCRAM, first message": (client_first, (b"n,,", b"n=a", b",", b"r=", b"=2C", b"=", b"a=b,")),
    "SCRAM, last message": (client_final, (b"c=biws,", b"r=", b"p=", b",", b"=", b"a=b,")),
    "JWT": (text_of(read_jwt), (".", "eyJhbGciOiJub25lIn0", "e30", "=", "a", "W1tb")),
    "regular expressions of consumer groups": (text_of(check_regex), ("(a+)+", "a{1000}", "(", ")", "|", "[a", "\\p{L}", "(?i)", "x*")),
    "regular expressions of JSON Schema": (text_of(compiled), ("(a+)+", "a{1000}", "(", ")", "|", "[a", "x*")),
    "regular expressions of Java": (text_of(java_regex), ("(a+)+", "a{1000}", "(", ")", "|", "[a&&", "\\p{L}", "(?<n>", "(?=", "\\Q", "x*")),
    "JAAS lines": (text_of(login_module), ("a.B required ", 'a="b" ', "'", '"', ";", "\\", "/*", "//")),
    "Basic credentials": (text_of(basic_credentials), ("Basic ", "YTpi", "=", ",", " ", "a")),
    "Avro schemas": (text_of(schema(AvroSchema)), (*JSON, '{"type":"array","items":', '"int",', '{"type":"record","name":"R","fields":[')),
    "JSON schemas": (text_of(schema(JsonSchema)), (*JSON, '{"anyOf":[', '{"not":', "{},", '{"$ref":"#"},', '{"properties":{"a":')),
    "Protobuf schemas": (text_of(schema(ProtobufSchema)), ('syntax = "proto3";', "message A {", "}", "string a = 1;", "oneof o {", "option (a).b = {", "/*", "//", '"', "enum E { A = 0; }", "reserved 1;", "map<string,")),
    "XML": (xml.parse, (b"<a>", b"</a>", b"<a b='c'/>", b"&lt;", b"<!--", b"-->", b"<![CDATA[", b"x", b"<?a?>", b'<!ENTITY a "b">')),
    "metadata of events": (lambda data: read_object("A__e", data), (b"<CustomObject>", b"</CustomObject>", b"<fields>", b"<fullName>A__c</fullName>", b"</fields>", b"<type>Text</type>")),
    "zips of metadata": (zips, (b"<CustomObject>", b"<fields>", b"</fields>", b"x", b"\0")),
    "CometD": (messages_of, tuple(piece.encode() for piece in (*JSON, '{"channel":"/meta/handshake"},', "message=", "%5B", "&"))),
    "places in JSON": (text_of(lambda text: offset_of(text, "a")), JSON),
    "SOQL": (text_of(lambda text: parse_select(text).of([{"a": 1}])), ("SELECT a FROM b WHERE ", "(", ")", "NOT ", "a = 1 ", "AND ", "OR ", "'", "a IN (1,", "LIKE '%a' ", "ORDER BY a,", "\\")),
    "filters of channels": (text_of(lambda text: Filter(text, ORDER_SHIPPED)), ("Amount__c > 0 ", "(", ")", "AND ", "OR ", "NOT ", "'", "Order_Number__c LIKE '%a' ", "IN ('a',", "\\'")),
    "references of composites": (text_of(references), ("@{a.b}", "@{", "}", "all", ".", "@{all}", "@{a.b[0]}")),
    "JDBC URLs": (text_of(parse_jdbc_url), ("jdbc:postgresql://", "jdbc:mysql://", "h:1,", "/", "?", "a=b&", "%41", "@", "[::1]", ";")),
    "secrets in texts": (text_of(secrets), ("password=a", "//a:b@", "//", ":", "@", "password = ", '"', " ")),
    "states of workers": (lambda data: (decode_state(data), decode_assignment(data)), (b"\0\1", b"\0\2", b"\0", b"\xff", b"\0\0\0\1")),
    "Avro files": (refusing(DataError, container(AVRO)), (b"Obj\x01", b"\x02", b"\x16avro.schema", b'\x0c"null"', b"\0" * 17, b"\xff", b"\x80\x80\x04\0", b"\0" * 16)),
    "schemas of Avro files": (refusing(DataError, avro_schemas), (*JSON, '{"type":"array","items":', '"int",', '["null",', '{"type":"record","name":"R","fields":[')),
    "rows of Avro files": (avro_blocks, (b"\0", b"\1", b"\2", b"\x80", b"\xff", b"\x02a", b"\x80\x80\x04")),
    "Parquet files": (refusing(DataError, container(PARQUET)), (b"PAR1", b"\x15", b"\0", b"\xff", b"\x19\x1c", b"\x80", PARQUET_FILE[4:])),
    "pages of Parquet files": (parquet_pages, (b"\x15", b"\0", b"\xff", b"\x19\x1c", b"\x80", b"\x7f\xff\xff\xff")),
    "JSON lines": (refusing(DataError, container(JSON_LINES)), (*JSON, "\n", "\r\n", "{}\n")),
    "properties files": (refusing(UsageError, file_of(read_properties)), ("a=b", "\\\n", "\n", "\\u0041", "\\", "\r", "\t", " ", ":", "#", "!", "=")),
    "files of users": (refusing(UsageError, file_of(read_users)), (*JSON, '{"users":[', '{"name":"a"},', '"password":"scrypt:2:1:1:AA==:AA==",', '"rights":["admin","', '"scram":{"SCRAM-SHA-256":"1:AA==:AA==:AA=="}')),
    "key stores": (key_stores, (b"\0\0\0\1", b"\0\0\0\2", b"\0\5X.509", b"\0", b"\xff", b"0\x82\xff\xff", b"0\x80", b"\x06\x01\x2a", b"\x04\x82\1\0")),
    "PEM": (text_of(pem_texts), PEM),
    "files of offsets": (load_map, (b"\xac\xed\0\5sr", b"t\0\1a", b"\0", b"\xff", b"x", b"q\0~\0\1")),
}  # fmt: skip


@st.composite
def repeating(draw: st.DrawFn, pieces: tuple[str | bytes, ...]) -> bytes:
    """A head, a few pieces again and again, what closes them, and a tail: 64 KiB at most."""
    whole = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    part = st.lists(st.sampled_from(whole), max_size=3).map(b"".join)
    head, middle, tail = (
        draw(part),
        b"".join(draw(st.lists(st.sampled_from(whole), min_size=1, max_size=3))),
        draw(part),
    )
    closing = draw(st.sampled_from([b"", *whole]))
    count = draw(st.sampled_from([50, 1_000, 10**9]))
    room = MOST_BYTES - len(head) - len(tail)
    count = max(1, min(count, room // (len(middle) + len(closing))))
    return head + middle * count + closing * count + tail


def deal_with(name: str, data: st.DataObject) -> None:
    parse, pieces = PARSERS[name]
    content = data.draw(repeating(pieces))
    with processor_time(LIMIT_S, f"{name}: {len(content)} bytes, {content[:60]!r}..."):
        try:
            parse(content)
        except EXPECTED:
            pass


slowly = {"deadline": None, "suppress_health_check": [HealthCheck.data_too_large, HealthCheck.too_slow]}


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=12, **slowly)
@given(data=st.data())
def test_every_input_is_soon_dealt_with(name: str, data: st.DataObject) -> None:
    deal_with(name, data)


@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=1_500, **slowly)
@given(data=st.data())
def test_any_of_many_inputs_is_soon_dealt_with(name: str, data: st.DataObject) -> None:
    deal_with(name, data)


def quadratic(size: int) -> int:
    return sum(1 for _ in range(size) for _ in range(size))


def test_what_takes_too_long_is_found_and_ended() -> None:
    with processor_time(5, "little"):
        quadratic(10)
    with pytest.raises(TookTooLong, match="more than 0.2 s of processor time for much"), processor_time(0.2, "much"):
        quadratic(10**6)
