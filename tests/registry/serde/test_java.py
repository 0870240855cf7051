"""Records and columns are read with another schema as by Java Avro 1.12.1; its results are recorded, so no Java is
needed.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from registry.client import AvroSchema
from registry.serde import CorruptRecord, decode_columns, decode_record, encode_columns
from tests.registry.serde.oracle.resolution import ask, kept
from tests.servers.fixtures import or_skip

HEADER = b"\0\0\0\0\7"
STRICTER = ("cannot be read as string", "not UTF-8", "UnicodeDecodeError", "'utf-8' codec")
"""Cases that Java accepts: it takes any bytes for a string."""


def in_columns(body: bytes, writer: AvroSchema, reader: AvroSchema) -> str | CorruptRecord:
    """The message decoded and written again with the reader's schema, like the Java program's output."""
    try:
        (run,) = decode_columns(pa.array([HEADER + body]), {7: writer}.__getitem__, reader)
    except CorruptRecord as error:
        return error
    return encode_columns(reader, run.array, 7)[0].as_py()[5:].hex()


def hold_to_java(every: int) -> None:
    records = refused = 0
    for writer_text, reader_text, bodies, answers in islice(kept(), 0, None, every):
        writer, reader = AvroSchema.parse(writer_text), AvroSchema.parse(reader_text)
        for body, answer in zip(map(bytes.fromhex, bodies), answers, strict=True):
            column = in_columns(body, writer, reader)
            records += 1
            if answer is None:
                refused += 1
                assert isinstance(column, CorruptRecord), (writer_text, reader_text, body.hex())
                with pytest.raises(CorruptRecord):
                    decode_record(HEADER + body, {7: writer}.__getitem__, reader)
            elif isinstance(column, CorruptRecord):
                assert any(words in str(column) for words in STRICTER), (writer_text, reader_text, body.hex(), column)
            else:
                assert column == answer, (writer_text, reader_text, body.hex())
    assert records * every > 1000 and refused * every > 100


def test_we_read_the_messages_that_java_reads() -> None:
    hold_to_java(every=3)


@pytest.mark.proof
def test_we_read_every_schema_pair_that_java_reads() -> None:
    hold_to_java(every=1)


@pytest.mark.servers
@pytest.mark.proof
def test_the_kept_answers_are_javas() -> None:
    asked: list[Any] = [[writer, reader, bodies] for writer, reader, bodies, _ in kept()]
    assert or_skip(lambda: ask(asked)) == [answers for *_, answers in kept()]
