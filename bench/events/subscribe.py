"""``python -m bench events.subscribe``: delivery to subscribers of both protocols, latency, and memory of idle ones."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import multiprocessing
import os
import ssl
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import fastavro
import grpc
import orjson
from grpc import aio
from rich.console import Console
from rich.table import Table

from bench.events.light_client import LightClient, whole
from bench.events.sides import EventsSide, events_server
from events.proto import pubsub_api_pb2 as pb
from tidegate.kit.service import fast_event_loop

__all__ = ["main"]

SCALE: Final = float(os.environ.get("BENCH_SCALE", "1"))
EVENTS: Final = round(200_000 * SCALE)
TOPIC: Final = "/event/Order_Shipped__e"
_SERVICE: Final = "/eventbus.v1.PubSub"
Figures = dict[str, float]


class Org:
    """The calls of a client program, with a session."""

    def __init__(self, pubsub: str, token: str, org_id: str, ca: bytes | None = None) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        if ca is None:
            self.channel = aio.insecure_channel(pubsub, options=options)
        else:
            self.channel = aio.secure_channel(pubsub, grpc.ssl_channel_credentials(ca), options=options)
        self.metadata = (("accesstoken", token), ("instanceurl", "http://127.0.0.1"), ("tenantid", org_id))

    async def schema(self) -> tuple[str, Any]:
        topic = await self._unary("GetTopic", pb.TopicRequest(topic_name=TOPIC), pb.TopicInfo)
        said = await self._unary("GetSchema", pb.SchemaRequest(schema_id=topic.schema_id), pb.SchemaInfo)
        return topic.schema_id, fastavro.parse_schema(json.loads(said.schema_json))

    async def _unary(self, name: str, request: Any, answer: Any) -> Any:
        method = self.channel.unary_unary(f"{_SERVICE}/{name}", type(request).SerializeToString, answer.FromString)
        return await method(request, metadata=self.metadata)

    async def publish(self, events: list[Any]) -> None:
        response = await self._unary("Publish", pb.PublishRequest(topic_name=TOPIC, events=events), pb.PublishResponse)
        assert all(not result.HasField("error") for result in response.results)

    def subscribe(self, requests: AsyncIterator[Any]) -> Any:
        method = self.channel.stream_stream(
            f"{_SERVICE}/Subscribe", pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
        )
        return method(requests, metadata=self.metadata)


def _event(schema_id: str, schema: Any, number: int) -> Any:
    """``CreatedDate`` is when it was made, in milliseconds; ``Note__c`` the same with microseconds."""
    now = time.time()
    out = io.BytesIO()
    record = {
        "CreatedDate": int(now * 1000),
        "CreatedById": "005",
        "Order_Number__c": f"A-{number}",
        "Note__c": repr(now),
    }
    fastavro.schemaless_writer(out, schema, record | {"Express__c": False})
    return pb.ProducerEvent(schema_id=schema_id, payload=out.getvalue())


async def _fill(org: Org, count: int) -> None:
    schema_id, schema = await org.schema()
    for begin in range(0, count, 500):
        await org.publish([_event(schema_id, schema, number) for number in range(begin, min(begin + 500, count))])


async def _deliver(pubsub: str, token: str, org_id: str, count: int) -> float:
    """Seconds until one subscriber from the beginning had ``count`` events; it asks again when half are owed."""
    org = Org(pubsub, token, org_id)
    asked: asyncio.Queue[int] = asyncio.Queue()

    async def requests() -> AsyncIterator[Any]:
        yield pb.FetchRequest(topic_name=TOPIC, replay_preset=pb.ReplayPreset.EARLIEST, num_requested=100)
        while True:
            yield pb.FetchRequest(num_requested=await asked.get())

    got, begun = 0, time.perf_counter()
    call = org.subscribe(requests())
    async for response in call:
        got += len(response.events)
        if got >= count:
            break
        asked.put_nowait(len(response.events))
    took = time.perf_counter() - begun
    call.cancel()
    await org.channel.close()
    return took


def deliver(pubsub: str, token: str, org_id: str, count: int) -> float:
    return asyncio.run(_deliver(pubsub, token, org_id, count))


async def _latencies(pubsub: str, token: str, org_id: str, count: int) -> list[float]:
    org = Org(pubsub, token, org_id)
    schema_id, schema = await org.schema()
    latencies_ms: list[float] = []

    async def requests() -> AsyncIterator[Any]:
        while True:
            yield pb.FetchRequest(topic_name=TOPIC, num_requested=100)
            await asyncio.sleep(0.5)

    async def listen() -> None:
        async for response in org.subscribe(requests()):
            for event in response.events:
                values = fastavro.schemaless_reader(io.BytesIO(event.event.payload), schema, None)
                latencies_ms.append((time.time() - float(values["Note__c"])) * 1000)
            if len(latencies_ms) >= count:
                return

    listening = asyncio.create_task(listen())
    await asyncio.sleep(1)
    for number in range(count):
        await org.publish([_event(schema_id, schema, number)])
        await asyncio.sleep(0.02)
    await asyncio.wait_for(listening, 30)
    await org.channel.close()
    return latencies_ms


def latencies(pubsub: str, token: str, org_id: str, count: int) -> list[float]:
    return asyncio.run(_latencies(pubsub, token, org_id, count))


class CometD(LightClient):
    """One plain Bayeux client on a connection of its own."""

    def __init__(self, url: str, token: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(url, tls)
        self._head = self.head("/cometd/60.0", Authorization=f"OAuth {token}")
        self._id = ""
        self._connect = b""

    def _request(self, message: dict[str, Any]) -> bytes:
        body = json.dumps([message | ({"clientId": self._id} if self._id else {})]).encode()
        return whole(self._head, body)

    async def _ask(self, request: bytes) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = orjson.loads((await self.ask(request))[1])
        return messages

    async def open(self) -> None:
        await self.dial()
        hello = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}
        (reply,) = await self._ask(self._request(hello))
        self._id = reply["clientId"]
        (reply,) = await self._ask(self._request({"channel": "/meta/subscribe", "subscription": TOPIC}))
        assert reply["successful"], reply
        self._connect = self._request({"channel": "/meta/connect", "connectionType": "long-polling"})
        await self.connect()

    async def connect(self) -> list[dict[str, Any]]:
        return await self._ask(self._connect)

    async def close(self) -> None:
        """Say goodbye on another connection, since a connect may wait on this one; else the session lives on."""
        self.hang_up()
        await self.dial()
        await self._ask(self._request({"channel": "/meta/disconnect"}))
        self.hang_up()


async def _in_groups(subscribers: Sequence[CometD], what: Callable[[CometD], Awaitable[None]]) -> None:
    for begin in range(0, len(subscribers), 50):
        await asyncio.gather(*map(what, subscribers[begin : begin + 50]))


async def _cometd(
    url: str, pubsub: str, token: str, org_id: str, clients: int, rate: int, seconds: float
) -> list[float]:
    org = Org(pubsub, token, org_id)
    schema_id, schema = await org.schema()
    latencies_ms: list[float] = []
    subscribers = [CometD(url, token) for _ in range(clients)]

    async def listen(subscriber: CometD) -> None:
        while True:
            messages = await subscriber.connect()
            now = time.time()
            latencies_ms.extend(
                (now - float(each["data"]["payload"]["Note__c"])) * 1000 for each in messages if "data" in each
            )

    listening: list[asyncio.Task[None]] = []

    async def begin(subscriber: CometD) -> None:
        await subscriber.open()
        listening.append(asyncio.create_task(listen(subscriber)))

    await _in_groups(subscribers, begin)
    await asyncio.sleep(2)
    count = int(rate * seconds)
    begun = time.perf_counter()
    batch = max(1, rate // 50)
    for number in range(0, count, batch):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        await org.publish([_event(schema_id, schema, number + index) for index in range(batch)])
    until = time.perf_counter() + 30
    while len(latencies_ms) < count * clients and time.perf_counter() < until:
        await asyncio.sleep(0.1)
        for task in listening:
            if task.done():
                task.result()  # a listener ends only by its failure
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    await _in_groups(subscribers, CometD.close)
    await org.channel.close()
    if len(latencies_ms) < count * clients:
        raise RuntimeError(f"{len(latencies_ms)} of {count * clients} deliveries came within 30 s of the last event")
    return latencies_ms


def cometd(url: str, pubsub: str, token: str, org_id: str, clients: int, rate: int, seconds: float) -> list[float]:
    gc.freeze()
    gc.set_threshold(10_000, 10, 1000)  # the client's pauses are not to be taken for the server's
    with asyncio.Runner(loop_factory=fast_event_loop) as runner:
        return runner.run(_cometd(url, pubsub, token, org_id, clients, rate, seconds))


async def _idle_cometd(side: EventsSide, clients: int, *, tls: bool) -> float:
    """KB of the server for each subscriber."""
    url, context = (side.https_url, ssl.create_default_context(cafile=side.ca)) if tls else (side.url, None)
    token = side.token()
    subscribers = [CometD(url, token, context) for _ in range(clients + 50)]
    waiting: list[asyncio.Task[Any]] = []
    before = 0.0
    for begin in range(0, len(subscribers), 50):
        group = subscribers[begin : begin + 50]
        await _in_groups(group, CometD.open)
        waiting += [asyncio.create_task(subscriber.connect()) for subscriber in group]
        if begin == 0:
            await asyncio.sleep(1)
            before = side.memory_mb()
    await asyncio.sleep(2)
    grown = side.memory_mb() - before
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await _in_groups(subscribers, CometD.close)
    return grown * 1000 / clients


async def _idle_pubsub(side: EventsSide, clients: int, *, tls: bool) -> float:
    """KB of the server for each subscriber."""
    address, ca = (side.pubsub_tls, side.ca.read_bytes()) if tls else (side.pubsub, None)
    token = side.token()
    org_id = token.partition("!")[0]

    async def requests() -> AsyncIterator[Any]:
        yield pb.FetchRequest(topic_name=TOPIC, num_requested=100)
        await asyncio.Event().wait()

    orgs: list[Org] = []
    calls = []
    before = 0.0
    for number in range(clients + 20):
        orgs.append(Org(address, token, org_id, ca))  # a connection of its own, as a program of its own has
        calls.append(orgs[-1].subscribe(requests()))
        await asyncio.sleep(0.002)
        if number == 19:
            await asyncio.sleep(1)
            before = side.memory_mb()
    await asyncio.sleep(3)
    grown = side.memory_mb() - before
    for call in calls:
        call.cancel()
    for org in orgs:
        await org.channel.close()
    return grown * 1000 / clients


def _measure_idle(folder: Path) -> dict[str, Figures]:
    """Each on a server of its own: what others have given back would be used again."""
    figures: dict[str, Figures] = {}
    for name, idle, clients in (("CometD", _idle_cometd, 1000), ("Pub/Sub", _idle_pubsub, 300)):
        for tls in (False, True):
            with events_server(folder / f"idle-{len(figures)}") as side:
                kilobytes = asyncio.run(idle(side, round(clients * SCALE), tls=tls))
            figures[f"idle {name} subscriber{', TLS' if tls else ''}"] = {"KB": kilobytes}
    return figures


def _measure(side: EventsSide, pool: ProcessPoolExecutor) -> dict[str, Figures]:
    token = side.token()
    who = (side.pubsub, token, token.partition("!")[0])

    async def fill() -> None:
        org = Org(*who)
        await _fill(org, EVENTS)
        await org.channel.close()

    figures: dict[str, Figures] = {}
    latencies_ms = pool.submit(latencies, *who, round(300 * SCALE)).result()
    figures["publish to subscriber"] = _spread(latencies_ms)
    for clients, rate in ((round(1000 * SCALE), 20), (50, 400)):
        cpu = side.cpu_s()
        latencies_ms = pool.submit(cometd, side.url, *who, clients, rate, 10.0).result()
        used = (side.cpu_s() - cpu) / len(latencies_ms) * 1e6
        figures[f"{clients} CometD subscribers, {rate} events/s"] = _spread(latencies_ms) | {"CPU µs/delivery": used}
    asyncio.run(fill())
    cpu = side.cpu_s()
    took = pool.submit(deliver, *who, EVENTS).result()
    used = (side.cpu_s() - cpu) / EVENTS * 1e6
    figures["one Pub/Sub subscriber"] = {"events/s": EVENTS / took, "CPU µs/event": used}
    return figures


def _spread(latencies_ms: list[float]) -> Figures:
    cuts = statistics.quantiles(latencies_ms, n=100)
    return {"p50 ms": cuts[49], "p99 ms": cuts[98]}


def main(folder: Path, runs: int, console: Console) -> None:
    results: list[dict[str, Figures]] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for run in range(runs):
            with console.status(f"run {run + 1} of {runs}"):
                figures = _measure_idle(folder / str(run))
                with events_server(folder / str(run) / "busy") as side:
                    results.append(figures | _measure(side, pool))
    table = Table(
        title="Subscribers of one events server on one core", title_justify="left", box=None, header_style="bold"
    )
    for column in ("case", "figure", "median"):
        table.add_column(column, justify="right" if column == "median" else "left")
    for case, of_case in results[0].items():
        for figure in of_case:
            median = statistics.median(result[case][figure] for result in results)
            table.add_row(case, figure, f"{median:,.3g}" if median < 1000 else f"{median:,.0f}")
    console.print(table)
