"""The note of which letters were sent back, against a set of offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.dead_letters.sent import NOTHING, Sent, read, written

spans = st.tuples(st.integers(0, 40), st.integers(0, 10)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def noted(pieces: list[tuple[int, int]]) -> tuple[Sent, set[int]]:
    sent, offsets = NOTHING, set()
    for begin, end in pieces:
        sent = sent.having(begin, end, 7)
        offsets |= set(range(begin, end))
    return sent, offsets


@given(st.lists(spans, max_size=8))
def test_it_has_what_was_sent_and_nothing_else(pieces: list[tuple[int, int]]) -> None:
    sent, offsets = noted(pieces)
    assert {offset for offset in range(60) if offset in sent} == offsets
    assert sent.first_open == next(offset for offset in range(60) if offset not in offsets)


@given(st.lists(spans, max_size=8), st.lists(spans, max_size=8))
def test_it_is_read_as_it_was_written(first: list[tuple[int, int]], again: list[tuple[int, int]]) -> None:
    pair = noted(first)[0], noted(again)[0]
    assert read(*written(*pair)) == pair


@given(st.lists(spans, max_size=8), st.integers(0, 60))
def test_deleted_letters_are_no_gaps(pieces: list[tuple[int, int]], start: int) -> None:
    sent, offsets = noted(pieces)
    kept = sent.within(start, 60)
    assert {offset for offset in range(start, 60) if offset in kept} == {o for o in offsets if o >= start}
    assert kept.first_open >= start and sent.within(0, sent.position - 1) == (NOTHING if sent.position else sent)


def test_a_note_of_another_program_says_nothing() -> None:
    for note in ("", "a note", '{"gaps": "x"}', "[1]"):
        assert read(5, note) == (Sent(5), NOTHING)
