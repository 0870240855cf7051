"""Lines are split correctly, whatever the bytes are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from connectors.files.lines import join_lines, split_lines, whole_lines

_bytes = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", "é".encode(), b"\xff"])).map(b"".join)


@given(_bytes)
def test_lines_and_their_ends(data: bytes) -> None:
    end = whole_lines(data)
    if not end:
        assert b"\n" not in data and b"\r" not in data[:-1]
        return
    lines, ends = split_lines(data[:end])
    starts = [0, *ends[:-1].tolist()]
    assert ends[-1] == end
    cut = [data[start:stop] for start, stop in zip(starts, ends.tolist(), strict=True)]
    assert all(re.fullmatch(rb"[^\r\n]*(\r\n|\r|\n)", line) for line in cut)
    assert lines.to_pylist() == [line.rstrip(b"\r\n").decode(errors="replace") for line in cut]


@given(st.lists(st.text(alphabet="abé ")))
def test_joined_lines_split_into_the_same_lines(lines: list[str]) -> None:
    import pyarrow as pa

    block = join_lines(pa.array(lines, pa.string()))
    assert whole_lines(block) == len(block)
    if lines:
        assert split_lines(block)[0].to_pylist() == lines
