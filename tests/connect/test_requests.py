"""Timeouts of requests to the worker."""

from __future__ import annotations

import asyncio
import dis
import inspect

import pytest
from starlette.requests import Request
from starlette.routing import Route

from connect.errors import TimedOut
from connect.rest.connectors import ConnectorRoutes
from connect.rest.plugins import PluginRoutes
from connect.rest.requests import Answers
from connect.rest.root import RootRoutes
from connect.rest.routes import all_routes


def test_a_request_whose_answer_takes_too_long_says_so_and_its_work_goes_on():
    done = []

    async def slow(_):
        await asyncio.sleep(0.2)
        done.append("all")

    async def ask():
        with pytest.raises(TimedOut, match=r"still at work on GET /connectors/x/offsets after 0\.01 s") as error:
            await Answers(0.01).timed(slow)(
                Request({"type": "http", "method": "GET", "path": "/connectors/x/offsets", "headers": []})
            )
        assert error.value.http_status == 500
        await asyncio.sleep(0.4)

    asyncio.run(ask())
    assert done == ["all"]


def test_endpoints_without_a_deadline_never_wait() -> None:
    routes = all_routes(
        RootRoutes("", str, _healthy),
        ConnectorRoutes(None, topic_tracking=True),  # type: ignore[arg-type]
        PluginRoutes(None),  # type: ignore[arg-type]
    )
    endpoints = [route.endpoint for route in routes if isinstance(route, Route)]
    untimed = [inspect.getclosurevars(e).nonlocals["endpoint"] for e in endpoints if "timed" not in e.__qualname__]
    assert len(untimed) >= 10
    for endpoint in untimed:
        assert "GET_AWAITABLE" not in {step.opname for step in dis.get_instructions(endpoint)}, endpoint


async def _healthy() -> tuple[int, str, str]:
    return 200, "healthy", ""
