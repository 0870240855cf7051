"""Written pages are wrapped at 100 columns, as `docs/prose.py` wraps them."""

from __future__ import annotations

import re

import pytest

from tests.support.reference import prose

_LINK_OR_CODE = re.compile(r"\]\([^)]*\)|`[^`]*`")


@pytest.mark.parametrize("page", prose.written_pages(), ids=lambda page: page.relative_to(prose.ROOT).as_posix())
def test_a_page_is_wrapped(page) -> None:
    text = page.read_text()
    assert prose.formatted(text) == text, "run: make format"
    outside_code = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in outside_code.splitlines():
        # lines that cannot be wrapped may be longer: a table's row, a link, inline code
        if not line.lstrip().startswith("|") and not _LINK_OR_CODE.search(line):
            assert len(line) <= 100, line


def test_a_long_line_is_wrapped() -> None:
    assert max(map(len, prose.formatted("word " * 100).splitlines())) <= 100
