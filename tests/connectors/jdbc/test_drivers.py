"""Reading chunks of rows from a driver, with drivers made for these tests."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from connect.api import ConnectError
from connectors.jdbc.drivers import Rows
from connectors.sql.urls import parse_jdbc_url


class Driver:
    """Delivers one chunk for each step; a step is called before, in the thread that reads."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(enumerate(steps))
        self.threads: list[threading.Thread] = []
        self.closed = False

    def read_next_batch(self) -> pa.RecordBatch:
        if not self._steps:
            raise StopIteration
        number, step = self._steps.pop(0)
        self.threads.append(threading.current_thread())
        step()
        return pa.record_batch({"number": [number]})

    def close(self) -> None:
        self.closed = True


def nothing() -> None: ...


def fail() -> None:
    raise ValueError("the server said no")


def of(driver: Driver, *, ahead: bool = True) -> Rows:
    return Rows(parse_jdbc_url("jdbc:sqlite:nowhere.db"), driver, ahead=ahead)


def numbers(rows: Rows) -> list[int]:
    return [number for chunk in rows for number in chunk.column("number").to_pylist()]


def test_the_next_chunk_is_read_while_one_is_in_use() -> None:
    begun = threading.Event()
    driver = Driver(nothing, begun.set, nothing)
    chunks = iter(of(driver))
    next(chunks)
    assert begun.wait(30)
    assert [chunk.column("number").to_pylist() for chunk in chunks] == [[1], [2]]


def test_a_driver_may_ask_for_one_thread() -> None:
    driver = Driver(nothing, nothing, nothing)
    assert numbers(of(driver, ahead=False)) == [0, 1, 2]
    assert set(driver.threads) == {threading.current_thread()}


@pytest.mark.parametrize("ahead", [False, True])
def test_an_error_in_reading_ahead_is_raised_after_the_chunks_before_it(ahead: bool) -> None:
    chunks = iter(of(Driver(nothing, nothing, fail), ahead=ahead))
    assert [next(chunks).column("number").to_pylist() for _ in range(2)] == [[0], [1]]
    with pytest.raises(ConnectError, match="reading from .*the server said no"):
        next(chunks)


def test_a_statement_is_not_closed_while_it_is_read_from() -> None:
    may_end = threading.Event()
    driver = Driver(nothing, may_end.wait, nothing)
    rows = of(driver)
    next(iter(rows))
    closing = threading.Thread(target=rows.close)
    closing.start()
    assert not driver.closed
    may_end.set()
    closing.join(30)
    assert driver.closed
