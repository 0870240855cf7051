"""XML that is read incrementally; tests of its users cover what is refused."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest

from events.errors import MalformedXml
from events.model.xml import XmlReader


@pytest.mark.parametrize("pieces", [[b"<a>", b"<b/>" * 100], [b"<a>", b"<b></c>"], []])
def test_a_reader_that_is_given_up_is_freed_without_the_garbage_collector(pieces: list[bytes]) -> None:
    """60 documents of strangers to whom a login was refused were 440,000 elements in circles with Expat."""

    gc.collect()
    gc.disable()  # it would free the circles
    try:
        reader = XmlReader(1_000)
        parts = [weakref.ref(reader._parser), weakref.ref(reader._tree)]
        with contextlib.suppress(MalformedXml):
            for piece in pieces:
                reader.feed(piece)
        del reader
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()
