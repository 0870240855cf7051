"""When an alarm rings, and how few timers it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.kit.alarm import Alarm


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test advances; ``armed`` counts timers."""

    now = 1000.0
    armed = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        self.armed += 1
        return super().call_at(when, callback, *args, context=context)


async def pass_time(loop: Loop, seconds: int) -> None:
    for _ in range(seconds):
        loop.now += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)


STEPS = st.lists(st.tuples(st.sampled_from(["set", "clear", "cancel", "pass"]), st.integers(1, 30)), max_size=25)


@given(STEPS)
def test_an_alarm_rings_only_at_the_time_set_last(steps: list[tuple[str, int]]) -> None:
    async def work() -> None:
        loop: Any = asyncio.get_running_loop()
        rung: list[float] = []
        expected: list[float] = []
        due: float | None = None
        alarm = Alarm(lambda: rung.append(loop.now))
        for step, number in [*steps, ("pass", 30)]:
            if step == "set":
                alarm.set(number)
                due = loop.now + number
            elif step == "pass":
                if due is not None and due <= loop.now + number:
                    expected.append(due)
                    due = None
                await pass_time(loop, number)
            else:
                getattr(alarm, step)()
                due = None
        assert rung == expected

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(work())


def test_putting_it_off_takes_no_timer() -> None:
    async def work() -> None:
        loop: Any = asyncio.get_running_loop()
        alarm = Alarm(lambda: None)
        for _ in range(100):
            alarm.set(50)
            await pass_time(loop, 1)
            alarm.clear()
        assert loop.armed <= 3
        alarm.cancel()

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(work())
