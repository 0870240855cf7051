"""JAAS text as Kafka reads it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.kit.jaas import LoginModule, login_module


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.B required;", {}),
        ('a.B REQUIRED user_x="y" ;', {"user_x": "y"}),
        ("a.B optional k='it\\'s';", {"k": "it's"}),
        ('a.B sufficient\n  a="1" // why\n  b=two /* and\n why */ ;', {"a": "1", "b": "two"}),
        (r'a.B requisite k="\" \\ \101 \t";', {"k": '" \\ A \t'}),
        ('a.B required k="";', {"k": ""}),
        ("a$B required a-b_c.d=e.f;", {"a-b_c.d": "e.f"}),
    ],
)
def test_a_login_module_has_options(text: str, options: dict[str, str]) -> None:
    assert login_module(text).options == options


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Login module not specified"),
        ("a.B", "control flag not specified"),
        ("a.B maybe;", "Invalid login module control flag"),
        ("a.B required", "not terminated"),
        ("a.B required k;", "Value not specified for key 'k'"),
        ("a.B required k=;", "Value not specified for key 'k'"),
        ("a.B required k=;;", "Value not specified"),
        ('a.B required k="open;', "cannot be read"),
        ("a.B required; c.D required;", "contains 2 login modules"),
        ("= required;", "a login module's class"),
    ],
)
def test_invalid_jaas_text_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        login_module(text)


WORDS = st.text("abcXYZ019_$-.", min_size=1)
VALUES = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))


@settings(max_examples=60, deadline=None)
@given(WORDS, st.dictionaries(WORDS, VALUES))
def test_quoted_values_are_read_back(name: str, options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = " ".join([name, "required", *(f"{key}={quoted(value)}" for key, value in options.items())]) + ";"
    assert login_module(text) == LoginModule(name, options)


@settings(max_examples=60, deadline=None)
@given(st.text("ab =;\"'\\/*.\n", max_size=40))
def test_no_text_does_anything_but_be_refused(text: str) -> None:
    try:
        login_module(f"a.B required {text}")
    except ValueError:
        pass
