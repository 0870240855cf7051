"""A source whose engine writes to the log itself: what is committed when, whatever ends in between."""

import json

import pytest

from connect.api import ConnectError, Written
from connect.config.connector import ScheduleConfig
from connect.task.context import RunningSourceJobContext
from connect.task.control import TaskControl
from connect.task.sources.job_runner import PENDING, SourceJobRunner
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError

PARTITION = {"numbers": "all"}


class Killed(BaseException):
    """The process ends here."""


class World:
    """The state that outlives a task: committed positions, and records that are written or visible."""

    def __init__(self):
        self.position = None
        self.written, self.visible = [], []
        self.runs = 0

    def killed_at(self, moment):
        if moment == getattr(self, "dies_at", None):
            self.dies_at = None
            raise Killed


class Delivery:
    def __init__(self, world, context):
        self.world, self.context, self.sent_last = world, context, None

    def begin(self):
        pass

    def abandon(self):
        pass

    def sent(self, batch, futures):
        assert len(batch) == 0 and batch.source_partition == PARTITION
        self.sent_last = batch.source_offset

    def finish(self):
        kind = "receipt" if self.sent_last.get(PENDING) else "position"
        self.world.killed_at(f"before the {kind}'s commit")
        self.world.position = dict(self.sent_last)
        self.context.remember(PARTITION, self.sent_last)
        self.world.killed_at(f"after the {kind}'s commit")


class NumbersTask:
    """Writes the next three numbers up to nine, in a transaction."""

    def __init__(self, world, *, receipts=True):
        self.world, self.receipts = world, receipts

    def source_partition(self):
        return PARTITION

    def write(self, position, run_id):
        n = position["n"] if position else 0
        if n == 9:
            return None
        self.world.runs += 1
        self.world.written = list(range(n, n + 3))
        self.world.killed_at("in the middle of the write")
        if not self.receipts:
            self.world.visible += self.world.written
        return Written({"n": n + 3}, ["numbers"], 3, json.dumps(self.world.written) if self.receipts else "", n + 3 < 9)

    def publish(self, receipt):
        self.world.killed_at("before it is published")
        numbers = json.loads(receipt)
        if numbers[0] not in self.world.visible:
            self.world.visible += numbers
        self.world.killed_at("after it is published")
        return True


def made(world, task=None, control=None):
    control = control or TaskControl()
    context = RunningSourceJobContext(
        "numbers", 0, {}, stopping=control.stopping, kafka=None, create_topic=None,
        offsets=[] if world.position is None else [(PARTITION, world.position)],
    )  # fmt: skip
    runner = SourceJobRunner(
        task or NumbersTask(world),
        context,
        control,
        schedule=parse(ScheduleConfig, {"job.interval.ms": "0"}),
        delivery=Delivery(world, context),
        on_topic=lambda topic: None,
        close=lambda: None,
    )
    runner.begin()
    return runner


def history(runner):
    return [(run["state"], run["records"], run["repeated"]) for run in runner.statistics()["job"]["runs"]]


def test_each_run_is_committed_and_the_next_one_goes_on_from_it():
    world = World()
    runner = made(world)
    for _ in range(5):
        runner.step()
    assert world.visible == list(range(9))
    assert world.position == {"n": 9}
    assert history(runner) == [("done", 3, False)] * 3  # those that found nothing are none


@pytest.mark.parametrize(
    "moment",
    [
        "in the middle of the write",
        "before the receipt's commit",
        "after the receipt's commit",
        "before it is published",
        "after it is published",
        "before the position's commit",
        "after the position's commit",
    ],
)
def test_rows_are_visible_once_wherever_the_task_is_killed(moment):
    world = World()
    made(world).step()
    world.dies_at = moment
    with pytest.raises(Killed):
        made(world).step()
    again = made(world)
    for _ in range(4):
        again.step()
    assert world.visible == list(range(9))
    assert world.position == {"n": 9}
    published_first = moment in {"after the receipt's commit", "before it is published", "after it is published", "before the position's commit"}  # fmt: skip
    assert history(again)[-1][2] == published_first
    assert world.runs == 3 + (moment in {"in the middle of the write", "before the receipt's commit"})


def test_without_receipts_a_run_is_repeated_at_least_once():
    world = World()
    world.dies_at = "before the position's commit"
    with pytest.raises(Killed):
        made(world, NumbersTask(world, receipts=False)).step()
    runner = made(world, NumbersTask(world, receipts=False))
    for _ in range(3):
        runner.step()
    assert world.visible == [0, 1, 2, *range(9)]


def test_a_run_whose_records_were_dropped_is_repeated():
    world = World()
    task = NumbersTask(world)
    publish, task.publish = task.publish, lambda receipt: False
    runner = made(world, task)
    runner.step()
    assert world.position == {PENDING: ""}
    task.publish = publish
    for _ in range(4):
        runner.step()
    assert world.visible == list(range(9))
    assert history(runner)[-1][0] == "retried"


def test_a_run_that_fails_for_a_while_is_due_again_and_one_that_is_cancelled_waits_for_its_time():
    class Away(RetriableError, ConnectError):
        pass

    world, control = World(), TaskControl()
    task = NumbersTask(world)
    errors = [Away("the engine is away"), ConnectError("cancelled"), ConnectError("the query is wrong")]

    def failing(position, run_id):
        if len(errors) == 2:
            control.job_cancelled.set()
        raise errors.pop(0)

    task.write = failing
    runner = made(world, task, control)
    runner.step()
    control.job_ordered.set()
    runner.step()
    assert [state for state, _, _ in history(runner)] == ["cancelled", "retried"]
    with pytest.raises(ConnectError, match="the query is wrong"):
        control.job_ordered.set()
        runner.step()
    assert world.position is None and history(runner)[0][0] == "failed"
