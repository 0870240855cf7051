"""A store's topic while its log is not ready for it."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid

import pytest
from structlog.testing import capture_logs

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import InvalidReplicationFactor
from connect.stores import CompactedTopic, TopicClients

_IMPATIENT = {"request.timeout.ms": "500"}


def test_a_start_waits_for_a_log_that_does_not_answer_and_says_so(tidegate_broker):
    name, pid = f"slow-{uuid.uuid4().hex[:8]}", tidegate_broker.process.pid

    async def start(lines):
        config = ClientConfig(tidegate_broker.bootstrap_servers, _IMPATIENT)
        async with Admin(config) as admin, BatchProducer(config) as producer:
            topic = CompactedTopic(TopicClients(admin, producer, config, fit=True), NewTopic(name, 1, 1))
            os.kill(pid, signal.SIGSTOP)
            starting = asyncio.create_task(topic.start(lambda record: None))
            while not any("trying again" in line["event"] for line in lines):
                assert not starting.done(), starting.exception()
                await asyncio.sleep(0.01)
            os.kill(pid, signal.SIGCONT)
            await starting
            await topic.write((b"k", b"v"))
            await topic.stop()

    try:
        with capture_logs() as lines:
            asyncio.run(start(lines))
    finally:
        os.kill(pid, signal.SIGCONT)
    told = next(line for line in lines if "trying again" in line["event"])
    assert (told["log_level"], told["topic"]) == ("warning", name)


def test_a_refusal_is_not_tried_again(tidegate_broker):
    async def start():
        config = ClientConfig(tidegate_broker.bootstrap_servers)
        async with Admin(config) as admin, BatchProducer(config) as producer:
            topic = CompactedTopic(
                TopicClients(admin, producer, config, fit=False), NewTopic(f"t-{uuid.uuid4()}", 1, 3)
            )
            with pytest.raises(InvalidReplicationFactor, match="3 replicas"):
                await topic.start(lambda record: None)

    asyncio.run(start())
