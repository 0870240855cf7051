"""Publishing to one events server on one core: PublishStream in batches of 200, with ids and without, and single REST posts."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from grpc import aio
from rich.console import Console
from rich.table import Table

from bench.events.light_client import LightClient, whole
from bench.events.sides import EventsSide, events_server
from bench.events.subscribe import SCALE
from events.model.definitions import to_avro_text
from events.model.payloads import EventSchema
from events.proto import pubsub_api_pb2 as pb
from tests.support.events import ORDER_SHIPPED
from tidegate.kit.service import fast_event_loop

EVENTS = round(100_000 * SCALE)
BATCH = 200
POSTS = round(10_000 * SCALE)
CONNECTIONS = 16
AHEAD = 4
"""Requests on their way: a client that waits for each answer measures its own turnaround."""


def stream(url: str, pubsub: str, token: str, with_ids: bool) -> int:
    """Publish all events over one PublishStream; how many were acknowledged."""
    return asyncio.run(_stream(url, pubsub, token, with_ids))


async def _stream(url: str, pubsub: str, token: str, with_ids: bool) -> int:
    metadata = (("accesstoken", token), ("instanceurl", url), ("tenantid", token.partition("!")[0]))
    body = {"Order_Number__c": "A-1", "Amount__c": 12.5, "Shipped_At__c": "2026-01-31T12:00:00Z", "Note__c": "x" * 60}
    payload = EventSchema(1, to_avro_text(ORDER_SHIPPED)).encode_json(body, created_ms=0, created_by="005")
    topic, free = f"/event/{ORDER_SHIPPED.name}", asyncio.Semaphore(AHEAD)
    async with aio.insecure_channel(pubsub) as channel:
        ask = channel.unary_unary(
            "/eventbus.v1.PubSub/GetTopic", pb.TopicRequest.SerializeToString, pb.TopicInfo.FromString
        )
        schema_id = (await ask(pb.TopicRequest(topic_name=topic), metadata=metadata)).schema_id

        async def requests() -> AsyncIterator[pb.PublishRequest]:
            for _ in range(EVENTS // BATCH):
                await free.acquire()
                events = [
                    pb.ProducerEvent(id=str(uuid.uuid4()) if with_ids else "", schema_id=schema_id, payload=payload)
                    for _ in range(BATCH)
                ]
                yield pb.PublishRequest(topic_name=topic, events=events)

        call = channel.stream_stream(
            "/eventbus.v1.PubSub/PublishStream", pb.PublishRequest.SerializeToString, pb.PublishResponse.FromString
        )(requests(), metadata=metadata)
        done = 0
        async for answer in call:
            free.release()
            done += sum(bool(result.replay_id) for result in answer.results)
        return done


def posts(url: str, token: str) -> int:
    """Publish single events over connections that are kept; how many were acknowledged."""
    with asyncio.Runner(loop_factory=fast_event_loop) as runner:
        return runner.run(_posts(url, token))


async def _posts(url: str, token: str) -> int:
    body = json.dumps({"Order_Number__c": "A-1", "Amount__c": 12.5, "Note__c": "x" * 60}).encode()

    async def one() -> int:
        client = LightClient(url)
        await client.dial()
        path = f"/services/data/v60.0/sobjects/{ORDER_SHIPPED.name}"
        request = whole(client.head(path, Authorization=f"Bearer {token}"), body)
        good = 0
        for _ in range(POSTS // CONNECTIONS):
            good += (await client.ask(request))[0] == 201
        client.hang_up()
        return good

    return sum(await asyncio.gather(*(one() for _ in range(CONNECTIONS))))


def _timed(side: EventsSide, pool: ProcessPoolExecutor, work: Callable[[], int]) -> dict[str, float]:
    began, cpu = time.perf_counter(), side.cpu_s()
    count = pool.submit(work).result()
    took, used = time.perf_counter() - began, side.cpu_s() - cpu
    return {"events/s": count / took, "server's CPU µs/event": used / count * 1e6, "events/CPU s": count / used}


def main(folder: Path, runs: int, console: Console) -> None:
    results: list[dict[str, dict[str, float]]] = []
    context = multiprocessing.get_context("spawn")
    with events_server(folder) as side, ProcessPoolExecutor(1, mp_context=context) as pool:
        token = side.token()
        cases = {
            "PublishStream, batches of 200": partial(stream, side.url, side.pubsub, token, False),
            "PublishStream, batches of 200, each with an id": partial(stream, side.url, side.pubsub, token, True),
            f"REST posts over {CONNECTIONS} connections": partial(posts, side.url, token),
        }
        for run in range(runs):
            with console.status(f"run {run + 1} of {runs}"):
                results.append({case: _timed(side, pool, work) for case, work in cases.items()})
    table = Table(title="Publishing to one events server on one core", title_justify="left", box=None)
    for column in ("case", "figure", "median"):
        table.add_column(column, justify="right" if column == "median" else "left")
    for case, figures in results[0].items():
        for figure in figures:
            table.add_row(case, figure, f"{statistics.median(result[case][figure] for result in results):,.0f}")
    console.print(table)
