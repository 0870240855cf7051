"""Following a page fails where the page is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import Block, Command, PageNotFollowed, Shell, commands


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"GIVEN": "here"}, replaced={"127.0.0.1:9092": "127.0.0.1:1234"})


def test_a_block_is_commands_with_what_they_print() -> None:
    text = "$ one\nfirst\n\nlast\n$ two <<END\n> body\n> END\n"
    assert list(commands(Block(Path("page.md"), 1, "console", text))) == [
        Command("one", "first\n\nlast"),
        Command("two <<END\nbody\nEND", ""),
    ]


def test_an_examples_output_must_match_the_page(shell: Shell) -> None:
    shell.run(Command("printf 'a   b\\nc 12\\n'", "a b\nc ..."))
    shell.run(Command("echo $GIVEN 127.0.0.1:9092", "here 127.0.0.1:1234"))
    for wrong in ("a c", "a b c", "b"):
        with pytest.raises(PageNotFollowed, match="but it prints"):
            shell.run(Command("echo a b", wrong))


def test_a_command_that_fails_fails_the_page(shell: Shell) -> None:
    with pytest.raises(PageNotFollowed, match="exit status 3"):
        shell.run(Command("exit 3", ""))


def test_variables_and_folder_stay_from_command_to_command(shell: Shell) -> None:
    shell.run(Command("mkdir 'a b' && cd 'a b' && export NAME=\"it's\"", ""))
    shell.run(Command('basename "$PWD"; echo "$NAME"', "a b\nit's"))
