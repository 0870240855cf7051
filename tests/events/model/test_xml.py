"""XML that is read incrementally; tests of its users cover what is refused."""

from __future__ import annotations

import gc

import pytest

from events.errors import MalformedXml
from events.model.xml import XmlReader


@pytest.mark.parametrize("pieces", [[b"<a>", b"<b/>" * 100], [b"<a>", b"<b></c>"], []])
def test_a_reader_that_is_given_up_is_freed_without_the_garbage_collector(pieces: list[bytes]) -> None:
    """60 documents of strangers to whom a login was refused were 440,000 elements in circles with Expat."""

    def read() -> None:
        reader = XmlReader(1_000)
        for piece in pieces:
            try:
                reader.feed(piece)
            except MalformedXml:
                return

    read()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            read()
        freed = gc.collect()
    finally:
        gc.enable()
    assert freed < 10
