"""Long work in steps: others are served in between, one work follows the other, and a thread does what waits for the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from broker.steps import Step, Steps, run_through


class Clock:
    """Each look at it takes three milliseconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.003
        return self.now


def counted(seen: list[str], name: str, count: int) -> Generator[Step, None, str]:
    for number in range(count):
        seen.append(f"{name}{number}")
        yield None
    return name


@pytest.mark.anyio
async def test_short_work_is_done_at_once() -> None:
    seen: list[str] = []
    assert Steps(lambda: 0).run(counted(seen, "a", 100)).result() == "a"
    assert len(seen) == 100


@pytest.mark.anyio
async def test_others_go_on_between_the_slices_of_long_works_which_keep_their_order() -> None:
    seen: list[str] = []
    steps = Steps(Clock())
    works = [steps.run(counted(seen, name, 3)) for name in "ab"]

    async def other() -> None:
        while not all(work.done() for work in works):
            seen.append(".")
            await asyncio.sleep(0)

    await other()
    assert "".join(seen).replace("..", ".") == "a0a1.a2.b0b1.b2"
    assert [work.result() for work in works] == ["a", "b"]


@pytest.mark.anyio
async def test_the_loop_goes_on_while_a_thread_does_a_step() -> None:
    release, threads = threading.Event(), []

    def work() -> Generator[Step, None, int]:
        yield lambda: threads.append(threading.current_thread()) or (release.wait(30) and None)
        return threading.get_ident()

    done = Steps().run(work())
    await asyncio.sleep(0)
    assert not done.done()
    release.set()
    assert await done == threading.get_ident()
    assert threads != [threading.current_thread()]


@pytest.mark.anyio
async def test_an_error_of_the_thread_comes_out_of_the_step_and_one_of_a_work_does_not_stop_the_next() -> None:
    def fails() -> None:
        raise OSError("no disk")

    def work() -> Generator[Step]:
        with pytest.raises(OSError, match="no disk"):
            yield fails
        raise ValueError("no work")

    steps = Steps()
    first, second = steps.run(work()), steps.run(counted([], "b", 1))
    with pytest.raises(ValueError, match="no work"):
        await first
    assert await second == "b"


@pytest.mark.anyio
async def test_what_is_not_done_when_it_closes_is_cancelled() -> None:
    seen: list[str] = []
    steps = Steps(Clock())
    done = steps.run(counted(seen, "a", 9))
    steps.close()
    await asyncio.sleep(0)
    assert done.cancelled()
    assert seen == ["a0", "a1"]


def test_all_steps_at_once() -> None:
    seen: list[str] = []

    def work() -> Generator[Step, None, str]:
        yield lambda: seen.append("a step for a thread")
        return (yield from counted(seen, "a", 1))

    assert run_through(work()) == "a"
    assert seen == ["a step for a thread", "a0"]
