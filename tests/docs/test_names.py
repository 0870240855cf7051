"""Links, files, commands and options on pages exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.pages import ROOT, pages
from tests.support.reference import generate
from tidegate.cli import tidegate

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?:broker|registry|connect|connectors|events|tidegate|tests|docs|examples|bench)/[\w./-]*")
_COMMAND = re.compile(r"(?:^|[\s`|(])tidegate((?: +[^\s`|;)]+)+)")


@PAGES
def test_links_lead_somewhere(page: Path) -> None:
    made = {ROOT / "docs" / "reference" / name for name in generate.PAGES}
    for target in _LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists() or linked in made, f"{page.name} links to {target}"
        if anchor and linked.exists():
            headings = re.findall(r"^#+ +(.*)$", linked.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}, target


@PAGES
def test_files_that_are_named_exist(page: Path) -> None:
    for code in _CODE.findall(page.read_text()):
        if _FILE.fullmatch(code) and not any(part in code for part in ("force-app", "<", "/tls/", "session.key")):
            assert (ROOT / code).exists() or (ROOT / f"{code}.py").exists() or code in ("broker/", "events/"), (
                f"{page.name} names {code}"
            )


def test_tests_that_hold_a_finding_of_guard_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", (ROOT / "docs" / "proofs" / "guard.md").read_text())
    assert len(named) > 30
    missing = [(path, name) for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]
    assert not missing


def mentions(text: str) -> Iterator[list[str]]:
    """The words after each ``tidegate`` that is a command; lines ended by a backslash are one."""
    for line in text.replace("\\\n", " ").splitlines():
        for match in _COMMAND.finditer(line):
            words = match[1].split()
            if re.fullmatch(r"[a-z]+", words[0]):
                yield words


def in_code(page: Path) -> str:
    """Only fenced blocks and inline code: prose may begin a sentence with the name."""
    text = page.read_text()
    fenced = "\n".join(re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    rest = re.sub(r"^```[^\n]*\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^#.*$", "", rest, flags=re.MULTILINE)  # headings of troubleshooting are texts of errors
    indented = "\n".join(line for line in rest.splitlines() if line.startswith("    "))
    return "\n".join([fenced, indented, *_CODE.findall(rest)])


@PAGES
def test_commands_and_options_that_are_named_exist(page: Path) -> None:
    for words in mentions(in_code(page)):
        command: click.Command = tidegate
        path, context = "tidegate", click.Context(tidegate)
        for word in words:
            if isinstance(command, click.Group) and not word.startswith("-"):
                for name in word.split("/"):  # `pause/resume` names two
                    inner = command.get_command(context, name)
                    assert inner is not None, f"{page.name}: `{path} {name}` is no command"
                command, path = inner, f"{path} {name}"
            elif re.match(r"--?[a-z]", word):
                options = {opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)}
                option = word.partition("=")[0].rstrip(",.:")
                assert option in {*options, "--help", "-h", "--version"}, f"{page.name}: `{path}` has no {option}"


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    assert {path.name for path in folder.glob("2*.md")} == set(_LINK.findall((folder / "README.md").read_text()))


def test_every_page_is_in_the_table_of_contents() -> None:
    docs = ROOT / "docs"
    linked = {(docs / target.partition("#")[0]).resolve() for target in _LINK.findall((docs / "README.md").read_text())}
    guides = [page for page in pages() if page.name != "README.md" or page.parent.parent.name == "examples"]
    expected_pages = [page for page in guides if page.parent.name != "decisions"]  # whose folder is linked
    assert [str(page) for page in expected_pages if page.resolve() not in linked] == []
