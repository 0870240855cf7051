"""Regular expressions from untrusted users."""

import pytest

from tidegate.kit.linear_regex import PatternError, compiled


def test_a_pattern_matches_in_time_that_grows_with_the_text():
    assert compiled("(a+)+$").search("a" * 100_000 + "!") is None
    assert compiled(b"[0-9]+").fullmatch(b"17")


@pytest.mark.parametrize(
    "pattern, why", [("(a", "missing \\): \\(a"), ("(?=a)", "invalid perl operator"), ("\ud800", "surrogates")]
)
def test_an_unsupported_pattern_is_refused_with_the_reason(pattern, why, capfd):
    with pytest.raises(PatternError, match=why):
        compiled(pattern)
    assert capfd.readouterr().err == ""


def test_memory_is_bounded():
    assert compiled("(x{100}){9}y").search("z") is None
    with pytest.raises(PatternError, match="too large"):
        compiled("(x{100}){9}y", max_bytes=1 << 12)


def test_a_pattern_is_bounded_in_length():
    assert compiled("a" * 32_767).fullmatch("a" * 32_767)
    with pytest.raises(PatternError, match="32768 characters; it may have 32767"):
        compiled("a" * 32_768)
