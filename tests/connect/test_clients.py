"""A task's thread waits for an unreachable cluster, but not after it was told to stop."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from broker.client.errors import MessageTooLarge, NotReachable, TopicAuthorizationFailed
from connect.api import RecordBatch, Schema, SchemaType
from connect.config.connector import CommonConfig
from connect.task import clients
from connect.task.clients import ClientLoop
from connect.task.control import Stopped, TaskControl
from connect.task.error_policy import ErrorPolicy, ToleranceExceeded
from connect.task.sources.refusals import Refusals
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError


@pytest.fixture
def control():
    return TaskControl()


@pytest.fixture
def stopping(control):
    return control.stopping


def failing(*errors, result="there"):
    left = list(errors)

    async def attempt():
        if left:
            raise left.pop(0)
        return result

    return attempt


def test_a_cluster_that_is_away_is_waited_for(control, monkeypatch):
    monkeypatch.setattr(clients, "_FIRST_PAUSE_S", 0.001)
    attempt = failing(*[NotReachable("no broker can be reached")] * 3)
    assert ClientLoop(control).patiently(attempt, "a test") == "there"


def test_permanent_errors_are_raised_without_waiting(control):
    with pytest.raises(TopicAuthorizationFailed):
        ClientLoop(control).patiently(failing(TopicAuthorizationFailed("no")), "a test")


def test_the_word_to_stop_ends_the_waiting(control):
    threading.Timer(0.05, control.stop).start()
    with pytest.raises(Stopped):
        ClientLoop(control).patiently(failing(*[NotReachable("away")] * 1000), "a test")


def test_a_call_that_gets_no_answer_is_given_up_after_the_word_to_stop(control, monkeypatch):
    monkeypatch.setattr(clients, "_LAST_CALL_S", 0.1)
    monkeypatch.setattr(clients, "_LOOK_S", 0.01)
    control.stop()
    began = time.monotonic()
    with pytest.raises(RetriableError, match="before the task had to stop"):
        ClientLoop(control).run(asyncio.sleep(3600))
    assert time.monotonic() - began < 60


def test_the_calls_after_one_that_got_no_answer_have_less_time(control, monkeypatch):
    monkeypatch.setattr(clients, "_LAST_CALL_S", 0.05)
    monkeypatch.setattr(clients, "_NEXT_LAST_CALL_S", 0.02)
    monkeypatch.setattr(clients, "_LOOK_S", 0.01)
    loop = ClientLoop(control)
    with pytest.raises(RetriableError, match=r"within 0\.02 s"):
        loop.wait(Future(), within_s=0.02)  # which says nothing of the cluster
    assert loop.last_wait_s() == 0.05
    control.stop()
    for _ in range(2):
        with pytest.raises(RetriableError, match="before the task had to stop"):
            loop.run(asyncio.sleep(3600))
        assert loop.last_wait_s() == 0.02


def test_a_call_that_gets_no_answer_is_given_up_at_the_end_of_the_time_to_stop(control, monkeypatch):
    monkeypatch.setattr(clients, "_LAST_CALL_S", 3600)
    monkeypatch.setattr(clients, "_LOOK_S", 0.01)
    control.stop(0.05)
    with pytest.raises(RetriableError, match="before the task had to stop"):
        ClientLoop(control).run(asyncio.sleep(3600))


def test_a_call_may_fail_with_a_timeout_of_its_own(control):
    with pytest.raises(TimeoutError):
        ClientLoop(control).run(failing(TimeoutError())())


def rows(*sizes):
    values = pa.array([b"x" * size for size in sizes])
    return RecordBatch("t", values, Schema(SchemaType.BYTES))


class Log:
    """Accepts batches of rows of at most 100 bytes each; answers when told to."""

    def __init__(self):
        self.taken, self.waiting = [], []

    def transmit(self, partition, batch):
        sent = Future()
        self.waiting.append((batch, sent))
        return [self.refusals.watch(sent, partition, batch)]

    def answer(self):
        waiting, self.waiting = self.waiting, []
        for batch, sent in waiting:
            sizes = [len(value) for value in batch.values.to_pylist()]
            if max(sizes) > 100:
                sent.set_exception(MessageTooLarge("too large"))
            else:
                self.taken += sizes
                sent.set_result(None)


@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_rows_that_the_log_refuses_are_found_and_left_out(tolerance, stopping):
    log = Log()
    config = parse(CommonConfig, {"name": "n", "connector.class": "c", "errors.tolerance": tolerance})
    policy = ErrorPolicy(config, "n", 0, stopping)
    log.refusals = Refusals(policy, log.transmit)
    (outcome,) = log.transmit(0, rows(1, 2, 300, 4, 500, 6, 7))
    log.answer()

    def settled():
        for _ in range(10):
            log.refusals.resend()
            log.answer()

    if tolerance == "none":
        with pytest.raises(ToleranceExceeded, match="KAFKA_PRODUCE"):
            settled()
        return
    with capture_logs() as lines:
        settled()
    assert [(line["log_level"], line["error"]) for line in lines] == [("warning", "too large")] * 2
    assert outcome.done() and outcome.exception() is None
    assert sorted(log.taken) == [1, 2, 4, 6, 7] and policy.skipped == 2


def test_other_failures_are_raised_unchanged(stopping):
    config = parse(CommonConfig, {"name": "n", "connector.class": "c", "errors.tolerance": "all"})
    refusals = Refusals(ErrorPolicy(config, "n", 0, stopping), lambda *_: [])
    sent = Future()
    outcome = refusals.watch(sent, 0, rows(1))
    sent.set_exception(TopicAuthorizationFailed("no"))
    assert isinstance(outcome.exception(), TopicAuthorizationFailed)
