"""The progress of a command that takes long, where its output is no terminal."""

import io

import pytest
from rich.console import Console

from tidegate.cli import progress as of_commands
from tidegate.demo import progress as of_the_demo


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (of_commands, of_the_demo):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_log_gets_a_line_every_ten_seconds_and_none_of_short_work(clock, capsys):
    with of_commands.progress_of("reading") as tell:
        tell(10, 5_000, "orders")
        assert capsys.readouterr().err == ""
        clock.now += 10
        tell(1_200, 5_000, "orders")
        tell(1_300, 5_000, "orders")
        clock.now += 10
        tell(2_500, None, "")
    assert capsys.readouterr().err == "reading orders: 1,200 of 5,000\nreading: 2,500\n"


def test_a_log_gets_what_is_done_now_every_ten_seconds(clock, capsys):
    with of_commands.status_of("asking for the topics") as tell:
        tell("starting Spark")
        clock.now += 10
        tell("planning the query")
        tell("1 of 4 tasks")
    assert capsys.readouterr().err == "planning the query\n"


def test_the_demo_tells_a_log_of_each_full_bar_and_of_those_that_take_long(clock):
    log = io.StringIO()
    with of_the_demo.bars(Console(file=log, width=40)) as progress:
        rows = of_the_demo.add_bar(progress, "SQL insert: flights", 336_776)
        job = of_the_demo.add_bar(progress, "Spark job: flights with airlines", None)
        progress.update(rows, completed=1_000)
        progress.update(job, note="starting Spark")
        assert log.getvalue() == ""
        clock.now += 5
        progress.update(rows, completed=100_000)
        progress.update(job, note="0/4 tasks query stage 3")
        progress.update(rows, completed=336_776)
        progress.update(rows, completed=336_776)
        progress.update(job, total=336_776, completed=336_776, note="")
    lines = [line.rsplit(", ", 1)[0] + "|" + line.partition(" s (")[2] for line in log.getvalue().splitlines()]
    assert lines == [
        "SQL insert: flights: 100,000 of 336,776|",
        "Spark job: flights with airlines: 0|0/4 tasks query stage 3)",
        "SQL insert: flights: 336,776 of 336,776|",
        "Spark job: flights with airlines: 336,776 of 336,776|",
    ]
