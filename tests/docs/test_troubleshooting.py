"""The error texts on the troubleshooting page are texts of the product."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.support.pages import ROOT

PAGE = ROOT / "docs/how-to/troubleshooting.md"
TEXTS = re.findall(r"^### `([^`]+)`$", PAGE.read_text(), re.MULTILINE)


@cache
def product_texts() -> list[str]:
    """Every string in the source, with a NUL where an f-string has a value."""
    texts = []
    for package in ("broker", "registry", "connect", "connectors", "events", "tidegate"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    texts.append("".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    return texts


def pattern(shown: str) -> re.Pattern[str]:
    """``...`` stands for a value, or for the rest of the text where it is at an end."""
    return re.compile(".*".join(re.escape(part) for part in shown.split("...")), re.DOTALL)


def is_said(shown: str) -> bool:
    return any(map(pattern(shown).search, product_texts()))


@pytest.mark.parametrize("shown", TEXTS)
def test_the_product_says_it(shown: str) -> None:
    assert is_said(shown), f"no error of the product reads {shown!r}"


def test_enough_messages_are_quoted_and_a_changed_one_is_noticed() -> None:
    assert len(TEXTS) >= 20
    assert not is_said("no tidegate is down on ...: start one with ...")
