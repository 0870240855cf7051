"""Timeouts of requests to the worker."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request

from connect.errors import TimedOut
from connect.rest.requests import Answers


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
