"""Texts that are masked, hashed or truncated."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.debezium.masks import Masks, mask_problem

_COLUMNS = {
    "with.3.chars": "s.t.stars",
    "hash.SHA-256.with.salt.pepper": "s.t.first",
    "hash.v2.SHA-512/256.with.salt.a.b": "s.t.second, s.t.SHORT",
}
MASKS = Masks(_COLUMNS, {"2.chars": "s.t.cut"})


def changed(column: str, *texts: str | None, length: int | None = None) -> list[str | None]:
    mask = MASKS.of([f"s.t.{column}"], length)
    assert mask is not None
    made = mask.change(pa.array(texts, pa.string()))
    assert made.type == pa.string()
    return list(made.to_pylist())


def test_each_column_is_masked_by_its_own_rule() -> None:
    assert changed("stars", "secret", None, "") == ["***"] * 3  # nulls too, as Debezium's
    assert changed("cut", "ab\N{MUSICAL SYMBOL G CLEF}", None, "x") == ["ab", None, "x"]
    plain = hashlib.new("sha512_256", b"a.b" + "wörd".encode()).hexdigest()
    assert changed("second", "wörd", None) == [plain, None]
    assert changed("short", "wörd", length=5) == [plain[:5]]
    java = b"\xac\xed\x00\x05t\x00\x05" + "wörd".encode()  # a String as Java serializes it
    assert changed("first", "wörd") == [hashlib.sha256(b"pepper" + java).hexdigest()]
    assert MASKS.of(["s.t.plain"], None) is None


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_any_key_is_a_mask_or_refused(name: str) -> None:
    for key in (
        name,
        f"with.9{name}.chars",
        f"with.{name}.chars",
        f"hash.{name}.with.salt.x",
        f"hash.v2.{name}.with.salt.x",
    ):
        if mask_problem(key) is None:
            assert Masks({key: "a"}, {}).of(["a"], 3) is not None


@pytest.mark.parametrize("name", ["with.x.chars", "hash.SHA-256", "hash.ROT13.with.salt.x", "nonsense"])
def test_a_key_that_is_none_says_what_would_be_one(name: str) -> None:
    assert "SHA-256" in str(mask_problem(name)) or "column.mask.with.N.chars" in str(mask_problem(name))
