"""``GET /health`` for a worker that is starting, one that its group rejects, and one that cannot read its topics."""

import asyncio

import pytest

from connect.server.distributed import ConnectServer
from tidegate.kit.errors import TidegateError


class Membership:
    def __init__(self, *, rounds=0, failure=None, settles=False):
        self.rounds, self.failure, self.settles = rounds, failure, settles

    async def wait_settled_for(self, seconds):
        assert seconds == 10
        return self.settles


class Store:
    failure = OSError("topic gone")


@pytest.mark.parametrize(
    ("membership", "stores", "code", "status", "words"),
    [
        (None, [], 200, "healthy", "ready to handle requests."),
        (Membership(rounds=3, settles=True), [], 200, "healthy", "ready to handle requests."),
        (Membership(rounds=3), [], 500, "unhealthy", "A rebalance of its group has not ended for 10 s."),
        (Membership(settles=True), [], 200, "healthy", "ready to handle requests."),
        (Membership(), [], 503, "starting", "Worker is still starting up."),
        (
            Membership(failure=TidegateError("no right")),
            [],
            500,
            "unhealthy",
            "may be unable to handle other requests.",
        ),
        (Membership(rounds=1, settles=True), [Store()], 500, "unhealthy", "topic gone"),
    ],
)
def test_health_is_kafka_connect_s(membership, stores, code, status, words):
    server = ConnectServer({"bootstrap.servers": "127.0.0.1:1"})
    server._membership, server._stores = membership, stores
    report = asyncio.run(server._health())
    assert report[:2] == (code, status) and words in report[2]
