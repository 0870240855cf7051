"""How a conductor reacts to the calls that are reported to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from connect.testing.conductor import Conductor


@pytest.fixture
def conductor() -> Iterator[Conductor]:
    made = Conductor()
    yield made
    made.close()


def told(conductor: Conductor, phase: str, **more: Any) -> dict[str, Any]:
    return conductor._answer({"call": "put", "phase": phase, "rows": 3, "lines": 10, "error": None, **more})


def kill() -> Literal["kill"]:
    return "kill"


def test_a_call_that_ends_before_its_line_has_the_fault_at_its_end(conductor: Conductor) -> None:
    conductor.within("put", kill, part=0.9)
    assert told(conductor, "begin") == {"line": 7}
    assert told(conductor, "end") == {"do": "kill"}
    assert conductor.settled() and conductor.done == 1
    assert told(conductor, "begin") == {}


def test_a_call_that_was_on_its_way_is_not_the_next_one(conductor: Conductor) -> None:
    assert told(conductor, "begin") == {}
    conductor.within("put", kill)
    assert told(conductor, "end") == {}
    assert told(conductor, "begin") == {"line": 5}
    assert told(conductor, "line") == {"do": "kill"}


def test_a_call_that_fails_before_its_line_leaves_the_fault_to_the_next(conductor: Conductor) -> None:
    conductor.within("put", kill)
    told(conductor, "begin")
    assert told(conductor, "end", error="OSError: no") == {}
    assert "line" in told(conductor, "begin")
