from __future__ import annotations

import asyncio
import gc
import importlib.util
import io
import json
import queue
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import fastavro
import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from events.model.payloads import frame
from events.proto import generate
from events.proto import pubsub_api_pb2 as pb
from events.server import grpc_listeners
from tests.proofs import effort
from tests.support.events import ORDER_SHIPPED, EventsThread

TOPIC = "/event/Order_Shipped__e"


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    """A client's own modules, generated from the proto file as any user of gRPC does."""
    from grpc_tools import protoc

    target = tmp_path_factory.mktemp("stubs")
    source = Path(generate.__file__).parent
    assert not protoc.main(
        [
            "protoc",
            f"-I{source}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            str(source / "pubsub_api.proto"),
        ]
    )
    loaded = []
    for name in ("pubsub_api_pb2", "pubsub_api_pb2_grpc"):
        spec = importlib.util.spec_from_file_location(name, target / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        loaded.append(module)
    return loaded[0], loaded[1]


class Client:
    """A typical client that a user writes around the generated stub."""

    def __init__(self, service: EventsThread, stubs: tuple[ModuleType, ModuleType], *, tls: bool) -> None:
        self.pb, grpc_module = stubs
        if tls:
            roots = Path(service.addresses["ca"]).read_bytes()
            self.channel = grpc.secure_channel(service.addresses["pubsub"], grpc.ssl_channel_credentials(roots))
        else:
            self.channel = grpc.insecure_channel(service.addresses["pubsub-plain"])
        self.stub = grpc_module.PubSubStub(self.channel)
        self.metadata = self.with_token(service.token())
        self.org = service.server.access.org_id
        self.schemas: dict[str, Any] = {}

    def with_token(self, token: str) -> tuple[tuple[str, str], ...]:
        return (("accesstoken", token), ("instanceurl", "https://127.0.0.1"), ("tenantid", "00DTG0000000001"))

    def schema(self, schema_id: str) -> Any:
        if schema_id not in self.schemas:
            said = self.stub.GetSchema(self.pb.SchemaRequest(schema_id=schema_id), metadata=self.metadata)
            self.schemas[schema_id] = fastavro.parse_schema(json.loads(said.schema_json))
        return self.schemas[schema_id]

    def encode(self, **fields: Any) -> Any:
        topic = self.stub.GetTopic(self.pb.TopicRequest(topic_name=TOPIC), metadata=self.metadata)
        out = io.BytesIO()
        record = {"CreatedDate": 1_700_000_000_000, "CreatedById": "005", "Express__c": False, **fields}
        fastavro.schemaless_writer(out, self.schema(topic.schema_id), record)
        return self.pb.ProducerEvent(
            id=fields.get("Order_Number__c"), schema_id=topic.schema_id, payload=out.getvalue()
        )

    def publish(self, *numbers: str) -> list[Any]:
        events = [self.encode(Order_Number__c=number) for number in numbers]
        request = self.pb.PublishRequest(topic_name=TOPIC, events=events)
        return list(self.stub.Publish(request, metadata=self.metadata).results)

    def subscribe(self, *requests: Any) -> tuple[Any, queue.Queue[Any]]:
        """A running subscription, and the queue that further requests go into; None ends them."""
        asked: queue.Queue[Any] = queue.Queue()
        for request in requests:
            asked.put(request)
        return self.stub.Subscribe(iter(asked.get, None), metadata=self.metadata), asked

    def fetch(self, count: int, **more: Any) -> Any:
        return self.pb.FetchRequest(topic_name=TOPIC, num_requested=count, **more)

    def numbers(self, responses: Any, count: int) -> list[str]:
        numbers: list[str] = []
        while len(numbers) < count:
            for event in next(responses).events:
                source = io.BytesIO(event.event.payload)
                numbers.append(
                    fastavro.schemaless_reader(source, self.schema(event.event.schema_id), None)["Order_Number__c"]
                )
        return numbers


@pytest.fixture(scope="module")
def client(service: EventsThread, stubs: tuple[ModuleType, ModuleType]) -> Iterator[Client]:
    made = Client(service, stubs, tls=False)
    yield made
    made.channel.close()


def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as failed:
        call()
    trailers = dict(failed.value.trailing_metadata() or ())
    return failed.value.code(), trailers.get("error-code", "").removeprefix("sfdc.platform.eventbus.grpc.")


def test_a_topic_says_what_may_be_done_with_it(client: Client) -> None:
    topic = client.stub.GetTopic(client.pb.TopicRequest(topic_name=TOPIC), metadata=client.metadata)
    assert (topic.topic_name, topic.tenant_guid, topic.can_publish, topic.can_subscribe) == (
        TOPIC,
        client.org,
        True,
        True,
    )


def test_events_come_in_order_with_their_ids_over_tls(service: EventsThread, stubs: Any) -> None:
    client = Client(service, stubs, tls=True)
    results = client.publish("t-1", "t-2", "t-3")
    assert [result.correlation_key for result in results] == ["t-1", "t-2", "t-3"]
    before = int.from_bytes(results[0].replay_id[:8]) - 1
    replay_id = before.to_bytes(8, signed=True)
    custom = client.pb.ReplayPreset.CUSTOM
    responses, asked = client.subscribe(client.fetch(3, replay_preset=custom, replay_id=replay_id))
    events = list(next(responses).events)
    asked.put(None)
    assert [event.event.id for event in events][:3] == ["t-1", "t-2", "t-3"]
    assert [event.replay_id for event in events] == [result.replay_id for result in results]
    assert all(len(event.replay_id) == 10 for event in events)
    client.channel.close()


def test_a_subscriber_gets_as_many_events_as_it_asks_for(client: Client) -> None:
    (first, *_) = client.publish(*[f"f-{number}" for number in range(10)])
    responses, asked = client.subscribe(
        client.fetch(4, replay_preset=client.pb.ReplayPreset.CUSTOM, replay_id=_before(first.replay_id))
    )
    assert client.numbers(responses, 4) == ["f-0", "f-1", "f-2", "f-3"]
    keepalive = next(responses)  # nothing more is owed: only the keepalive comes
    assert (len(keepalive.events), keepalive.pending_num_requested) == (0, 0)
    assert len(keepalive.latest_replay_id) == 10
    asked.put(client.pb.FetchRequest(num_requested=6))
    assert client.numbers(responses, 6) == [f"f-{number}" for number in range(4, 10)]
    asked.put(None)
    with pytest.raises(StopIteration):
        while True:
            next(responses)


def test_without_a_preset_only_new_events_come(client: Client) -> None:
    client.publish("old")
    responses, asked = client.subscribe(client.fetch(1))
    next(responses)  # the keepalive says that the subscription stands
    client.publish("new")
    assert client.numbers(responses, 1) == ["new"]
    asked.put(None)


def test_the_earliest_preset_begins_with_what_is_kept(service: EventsThread, client: Client) -> None:
    client.publish("kept")
    responses, asked = client.subscribe(client.fetch(100, replay_preset=client.pb.ReplayPreset.EARLIEST))
    assert next(responses).events[0].replay_id == b"\0" * 7 + b"\1" + b"\0" * 2
    asked.put(None)


def test_asking_for_much_is_asking_for_a_hundred(client: Client) -> None:
    responses, asked = client.subscribe(client.fetch(1_000_000))
    assert next(responses).pending_num_requested == 100
    asked.put(None)


def test_a_bad_event_fails_alone(client: Client) -> None:
    good, long = client.encode(Order_Number__c="good"), client.encode(Order_Number__c="x" * 41)
    broken = client.pb.ProducerEvent(id="broken", schema_id=good.schema_id, payload=b"\xff\xff")
    trailing = client.pb.ProducerEvent(id="trailing", schema_id=good.schema_id, payload=good.payload + b"\0")
    blank = client.pb.ProducerEvent(id="blank", payload=good.payload)
    unknown = client.pb.ProducerEvent(id="unknown", schema_id="4711", payload=good.payload)
    large = client.pb.ProducerEvent(id="large", schema_id=good.schema_id, payload=b"\0" * (1024 * 1024 + 1))
    named = client.pb.ProducerEvent(id="ä" * 128, schema_id=good.schema_id, payload=good.payload)
    events = [broken, long, good, trailing, blank, unknown, large, named]
    request = client.pb.PublishRequest(topic_name=TOPIC, events=events)
    results = client.stub.Publish(request, metadata=client.metadata).results
    assert [bool(result.replay_id) for result in results] == [number == 2 for number in range(8)]
    messages = [result.error.msg for result in results]
    assert "not an Avro record" in messages[0]
    assert "max length=40" in messages[1]
    assert "after the Avro record" in messages[3]
    assert messages[4] == "Schema validation failed. The schema ID can't be blank."
    assert "4711" in messages[5]
    assert "at most 1048576" in messages[6]
    assert messages[7] == "The id of the event is 256 bytes; at most 255 are taken"


def test_a_request_of_many_events_that_are_refused_leaves_others_their_turn(
    service: EventsThread, client: Client
) -> None:
    """Other clients do not wait for all of it, and its responses come in order."""
    schema_id = client.encode(Order_Number__c="x").schema_id
    refused = client.pb.ProducerEvent(schema_id=schema_id, payload=b"")
    good = client.encode(Order_Number__c="last")
    request = client.pb.PublishRequest(topic_name=TOPIC, events=[refused] * 10_000 + [good])
    turns = 0
    call = client.stub.Publish.future(request, metadata=client.metadata)

    async def turn() -> None:
        nonlocal turns
        # Counted while events are being refused only.
        before = service.server.metrics.refused.labels("pubsub")._value.get()
        while not call.done():
            await asyncio.sleep(0)
            now = service.server.metrics.refused.labels("pubsub")._value.get()
            turns += now != before
            before = now

    service.run(turn())
    results = call.result().results
    assert [bool(result.replay_id) for result in results] == [False] * 10_000 + [True]
    assert turns >= 40


def test_thousands_of_calls_that_wait_are_all_answered(
    service: EventsThread, stubs: tuple[ModuleType, ModuleType]
) -> None:
    """gRPC would refuse calls of anybody when 1,000 wait, and all from 3,000 on."""
    busy, free = threading.Event(), threading.Event()

    async def hold() -> None:
        busy.set()
        free.wait(60)

    with ExitStack() as stack:
        stack.callback(free.set)
        options = (("grpc.use_local_subchannel_pool", 1),)
        channels = [
            stack.enter_context(grpc.insecure_channel(service.addresses["pubsub-plain"], options)) for _ in range(4)
        ]
        for channel in channels:
            grpc.channel_ready_future(channel).result(60)
        token = service.token()
        holding = asyncio.run_coroutine_threadsafe(hold(), service._loop)
        assert busy.wait(60)
        metadata = (("accesstoken", token), ("instanceurl", "https://127.0.0.1"), ("tenantid", "00DTG0000000001"))
        request = stubs[0].TopicRequest(topic_name=TOPIC)
        calls = [
            stubs[1].PubSubStub(channel).GetTopic.future(request, metadata=metadata)
            for channel in channels
            for _ in range(900)
        ]
        # The last call of a channel that has all its streams is on its way to the server; refusals come back at once.
        refused = [call for call in calls if wait_for_end(call, 0.001)]
        free.set()
        holding.result(60)
        assert not refused
        assert all(call.result(120).topic_name == TOPIC for call in calls)


def wait_for_end(call: Any, seconds: float) -> bool:
    try:
        call.exception(seconds)
    except grpc.FutureTimeoutError:
        return False
    return True


def test_a_connection_without_a_call_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose headers never end has no call."""
    options = tuple(
        (name, 500 if name == "grpc.max_connection_idle_ms" else value) for name, value in grpc_listeners._OPTIONS
    )
    monkeypatch.setattr(grpc_listeners, "_OPTIONS", options)
    with EventsThread(tmp_path) as service:
        host, _, port = service.addresses["pubsub-plain"].rpartition(":")
        with socket.create_connection((host, int(port)), 20) as sock:
            settings = b"\0\0\0\4\0\0\0\0\0"
            headers = b"\0\0\5\1\0\0\0\0\1" + b"\0\1x\1y"
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers)
            while sock.recv(65536):
                pass


def test_refused_events_are_freed_without_the_garbage_collector(client: Client) -> None:
    """In reference cycles with the frames of their exceptions, those of a large request took 300 MB, and a pass of the
    garbage collector took seconds.
    """
    schema_id = client.encode(Order_Number__c="x").schema_id
    refused = client.pb.ProducerEvent(schema_id=schema_id, payload=b"")
    request = client.pb.PublishRequest(topic_name=TOPIC, events=[refused] * 1_000)
    gc.collect()
    gc.disable()
    before = Counter(type(thing).__name__ for thing in gc.get_objects())  # also of other tests in this process
    try:
        assert len(client.stub.Publish(request, metadata=client.metadata, timeout=60).results) == 1_000
        kept = Counter(type(thing).__name__ for thing in gc.get_objects())
    finally:
        gc.enable()
    more = kept - before
    assert more["UndecodablePayload"] < 100 and more["frame"] < 500 and more["traceback"] < 500, more.most_common(20)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_refused_call_is_freed_without_the_garbage_collector(client: Client, *, streamed: bool) -> None:
    """A pass of the collector over thousands of them stopped the service for ten seconds."""

    nobody = [("accesstoken", "x"), *(pair for pair in client.metadata if pair[0] != "accesstoken")]

    def refused() -> None:
        with pytest.raises(grpc.RpcError):
            if streamed:
                asked = client.pb.FetchRequest(topic_name=TOPIC, num_requested=1)
                list(client.stub.Subscribe(iter([asked]), metadata=nobody, timeout=30))
            else:
                client.stub.GetTopic(
                    client.pb.TopicRequest(topic_name="/event/None__e"), metadata=client.metadata, timeout=30
                )

    refused()
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            refused()
        kept = Counter(type(thing).__name__ for thing in gc.get_objects())
    finally:
        gc.enable()
    assert kept["RPCState"] < 10 and kept["AbortError"] < 10, kept.most_common(20)


def test_events_with_large_keys_come_in_responses_that_clients_take(service: EventsThread, client: Client) -> None:
    """Another client of the log wrote them."""
    service.define(replace(ORDER_SHIPPED, name="Keyed__e"))
    records = [(b"k" * 900_000, frame(1, b"x"), 0)] * 10
    service.run(service.memory_log.append("Keyed__e", records))
    asked = client.pb.FetchRequest(
        topic_name="/event/Keyed__e", num_requested=10, replay_preset=client.pb.ReplayPreset.EARLIEST
    )
    responses = client.stub.Subscribe(iter([asked]), metadata=client.metadata)
    sizes = [(len(response.events), response.ByteSize()) for response in responses]
    assert sum(count for count, _ in sizes) == 10
    assert max(size for _, size in sizes) < 4 * 1024 * 1024


def test_a_request_over_four_megabytes_is_refused(client: Client) -> None:
    event = client.pb.ProducerEvent(schema_id="1", payload=b"\0" * (5 * 1024 * 1024))
    request = client.pb.PublishRequest(topic_name=TOPIC, events=[event])
    code, _ = refused(lambda: client.stub.Publish(request, metadata=client.metadata))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_publish_stream_answers_each_request_in_order(client: Client) -> None:
    requests = [
        client.pb.PublishRequest(
            topic_name=TOPIC if number == 0 else "", events=[client.encode(Order_Number__c=f"s-{number}")]
        )
        for number in range(20)
    ]
    answers = list(client.stub.PublishStream(iter(requests), metadata=client.metadata))
    assert [answer.results[0].correlation_key for answer in answers] == [f"s-{number}" for number in range(20)]


def test_an_event_that_comes_again_with_its_id_is_stored_once(client: Client) -> None:
    request = client.pb.PublishRequest(topic_name=TOPIC, events=[client.encode(Order_Number__c="once")] * 2)
    streamed = client.stub.PublishStream(iter([request, request]), metadata=client.metadata)
    answers = [client.stub.Publish(request, metadata=client.metadata), *streamed]
    assert len({result.replay_id for answer in answers for result in answer.results}) == 1


def test_a_stream_keeps_to_its_topic(client: Client) -> None:
    responses, asked = client.subscribe(
        client.fetch(1), client.pb.FetchRequest(topic_name="/event/Other__e", num_requested=1)
    )
    mismatch = (grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.topic.mismatch")
    assert refused(lambda: list(responses)) == mismatch
    asked.put(None)
    event = client.encode(Order_Number__c="here")
    requests = [client.pb.PublishRequest(topic_name=name, events=[event]) for name in (TOPIC, "/event/Other__e")]
    mismatch = (grpc.StatusCode.INVALID_ARGUMENT, "publish.topic.mismatch")
    assert refused(lambda: list(client.stub.PublishStream(iter(requests), metadata=client.metadata))) == mismatch


def test_refusals_have_salesforces_words(client: Client) -> None:
    """The texts that organizations were seen to send; programs look for them."""

    def said(call: Any) -> str:
        with pytest.raises(grpc.RpcError) as failed:
            call()
        return str(failed.value.details())

    stub, pb, metadata = client.stub, client.pb, client.metadata
    stale = client.fetch(1, replay_preset=pb.ReplayPreset.CUSTOM, replay_id=b"\x7f" + b"\0" * 7)
    for request in (stale, client.fetch(1, replay_preset=pb.ReplayPreset.CUSTOM, replay_id=b"corrupt")):
        assert said(lambda message=request: list(stub.Subscribe(iter([message]), metadata=metadata))).startswith(
            "The Replay ID validation failed. Ensure that the replay_id field value in FetchRequest is valid and refers to an "
            "event that is within the retention window"
        )
    missing = pb.TopicRequest(topic_name="/event/Missing__e")
    assert said(lambda: stub.GetTopic(missing, metadata=metadata)).startswith(
        "The topic information for org CORE/prod/00DTG0000000001 and topic /event/Missing__e not found. "
        "Ensure the topic name is correct and that the topic exists. rpcId: "
    )
    forged = client.with_token("00DTG0000000001!forged.forged")
    assert said(lambda: stub.GetTopic(missing, metadata=forged)).startswith(
        "An authentication exception occurred. Provide valid authentication via metadata headers. rpcId: "
    )


def test_requests_without_what_they_need_are_refused(client: Client) -> None:
    stub, pb, metadata = client.stub, client.pb, client.metadata
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    calls = (
        (lambda: stub.GetTopic(pb.TopicRequest(), metadata=metadata), invalid, "topic.validation.empty"),
        (lambda: stub.GetSchema(pb.SchemaRequest(), metadata=metadata), invalid, "schema.validation.failed"),
        (
            lambda: stub.GetSchema(pb.SchemaRequest(schema_id="4711"), metadata=metadata),
            grpc.StatusCode.NOT_FOUND,
            "schema.meta.permission",
        ),
        (lambda: stub.Publish(pb.PublishRequest(), metadata=metadata), invalid, "publish.topic.validation.empty"),
        (
            lambda: stub.Publish(pb.PublishRequest(topic_name=TOPIC), metadata=metadata),
            invalid,
            "publish.event.count.invalid",
        ),
    )
    for call, status, code in calls:
        assert refused(call) == (status, code)


@pytest.mark.parametrize(
    ("more", "code", "trailer"),
    [
        ({"num_requested": 0}, "INVALID_ARGUMENT", "subscription.fetch.requested.events.invalid"),
        ({"num_requested": -5}, "INVALID_ARGUMENT", "subscription.fetch.requested.events.invalid"),
        ({"topic_name": "/event/Missing__e"}, "NOT_FOUND", "topic.not.found"),
        ({"topic_name": "Order_Shipped__e"}, "NOT_FOUND", "topic.not.found"),
        ({"topic_name": ""}, "INVALID_ARGUMENT", "topic.validation.empty"),
        ({"replay_preset": 2}, "INVALID_ARGUMENT", "subscription.fetch.replayid.validation.failed"),
        (
            {"replay_preset": 2, "replay_id": b"12345678x\0"},
            "INVALID_ARGUMENT",
            "subscription.fetch.replayid.corrupted",
        ),
        (
            {"replay_preset": 2, "replay_id": b"\x7f" + b"\0" * 7},
            "INVALID_ARGUMENT",
            "subscription.fetch.replayid.corrupted",
        ),
        (
            {"replay_preset": 2, "replay_id": b"\x80" + b"\0" * 7},
            "INVALID_ARGUMENT",
            "subscription.fetch.replayid.corrupted",
        ),
        ({"replay_preset": 9}, "INVALID_ARGUMENT", "subscription.fetch.replay.preset.invalid"),
    ],
)
def test_a_bad_fetch_request_ends_its_stream_with_a_code(
    client: Client, more: dict[str, Any], code: str, trailer: str
) -> None:
    request = client.pb.FetchRequest(**({"topic_name": TOPIC, "num_requested": 1} | more))
    responses, asked = client.subscribe(request)
    asked.put(None)
    assert refused(lambda: list(responses)) == (grpc.StatusCode[code], trailer)


@pytest.mark.parametrize("replay_id", [b"\x7f" + b"\0" * 7, b"\x80" + b"\0" * 7, b"corrupt"])
def test_a_bad_replay_id_leads_where_the_subscriber_says(client: Client, replay_id: bytes) -> None:
    client.publish("kept")
    request = client.fetch(1, replay_preset=client.pb.ReplayPreset.CUSTOM, replay_id=replay_id)
    wish = (*client.metadata, ("tidegate-stale-replay", "earliest"))
    responses = client.stub.Subscribe(iter([request]), metadata=wish)
    assert next(responses).events[0].replay_id == b"\0" * 7 + b"\1" + b"\0" * 2
    responses.cancel()
    unknown = (*client.metadata, ("tidegate-stale-replay", "never"))
    code = refused(lambda: list(client.stub.Subscribe(iter([request]), metadata=unknown)))
    assert code == (grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.stale.replay.invalid")


def test_a_subscription_can_begin_at_a_time(service: EventsThread, client: Client) -> None:
    (result,) = client.publish("in-time")
    number = int.from_bytes(result.replay_id[:8])
    records = service.memory_log.topics["Order_Shipped__e"]
    wish = (*client.metadata, ("tidegate-replay-from", str(records[number].timestamp_ms)))
    responses = client.stub.Subscribe(iter([client.fetch(100)]), metadata=wish)
    assert "in-time" in client.numbers(responses, 1)
    responses.cancel()
    unreadable = (*client.metadata, ("tidegate-replay-from", "noon"))
    code, _ = refused(lambda: list(client.stub.Subscribe(iter([client.fetch(1)]), metadata=unreadable)))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


def test_a_call_without_a_session_is_refused(client: Client) -> None:
    request = client.pb.TopicRequest(topic_name=TOPIC)
    for metadata, expected in (
        ((), "service.auth.headers.invalid"),
        (client.with_token("00DTG0000000001!forged.forged"), "service.auth.error"),
        ((*client.metadata[:1], ("tenantid", "00DXX0000000001")), "service.auth.headers.invalid"),
    ):
        code, trailer = refused(lambda meta=metadata: client.stub.GetTopic(request, metadata=meta))
        assert (code, trailer) == (grpc.StatusCode.UNAUTHENTICATED, expected)


def test_a_subscription_ends_when_its_session_does(service: EventsThread, client: Client) -> None:
    token = service.token()
    responses = client.stub.Subscribe(iter([client.fetch(100)]), metadata=client.with_token(token))
    next(responses)
    service.server.access.revoke(token)
    assert refused(lambda: list(responses))[0] is grpc.StatusCode.UNAUTHENTICATED


def test_a_subscriber_that_never_reads_does_not_hold_up_another(service: EventsThread, client: Client) -> None:
    stuck = [client.subscribe(client.fetch(100, replay_preset=client.pb.ReplayPreset.EARLIEST)) for _ in range(5)]
    responses, asked = client.subscribe(client.fetch(50))
    next(responses)
    client.publish(*[f"q-{number}" for number in range(50)])
    assert client.numbers(responses, 50) == [f"q-{number}" for number in range(50)]
    for call, requests in [*stuck, (responses, asked)]:
        requests.put(None)
        call.cancel()


def test_many_subscribers_each_get_every_event(client: Client) -> None:
    readers = [client.subscribe(client.fetch(30)) for _ in range(20)]
    for responses, _ in readers:
        next(responses)
    got: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda r=responses: got.append(client.numbers(r, 30))) for responses, _ in readers
    ]
    for thread in threads:
        thread.start()
    client.publish(*[f"m-{number}" for number in range(30)])
    for thread in threads:
        thread.join(60)
    for responses, asked in readers:
        asked.put(None)
        responses.cancel()
    assert got == [[f"m-{number}" for number in range(30)]] * 20


TOPICS = st.sampled_from([TOPIC, TOPIC.upper(), "/event/", "/data/ChangeEvents"]) | st.text(max_size=8)
IDS = st.binary(max_size=12) | st.integers(0, 1 << 63).map(lambda number: number.to_bytes(8) + b"\0\0")
NUMBERS, SCHEMAS = st.integers(-(1 << 31), (1 << 31) - 1), st.sampled_from(["", "1", "2", "-1"]) | st.text(max_size=12)
EVENTS = st.builds(pb.ProducerEvent, id=st.text(max_size=4), schema_id=SCHEMAS, payload=st.binary(max_size=40))
PUBLISHED = st.builds(pb.PublishRequest, topic_name=TOPICS, events=st.lists(EVENTS, max_size=3))
ASKED: dict[str, st.SearchStrategy[Any]] = {
    "GetTopic": st.builds(pb.TopicRequest, topic_name=TOPICS),
    "GetSchema": st.builds(pb.SchemaRequest, schema_id=SCHEMAS),
    "Publish": PUBLISHED,
    "PublishStream": PUBLISHED,
    "Subscribe": st.builds(
        pb.FetchRequest, topic_name=TOPICS, replay_preset=st.integers(0, 4), replay_id=IDS, num_requested=NUMBERS
    ),
    "ManagedSubscribe": st.builds(
        pb.ManagedFetchRequest,
        subscription_id=st.text(max_size=18),
        developer_name=st.text(max_size=4),
        num_requested=NUMBERS,
        commit_replay_id_request=st.none() | st.builds(pb.CommitReplayRequest, replay_id=IDS),
    ),
}


@settings(
    max_examples=effort(60, 1800),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    asked=st.sampled_from(list(ASKED)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.binary(max_size=300) | ASKED[name].map(lambda message: bytes(message.SerializeToString()))
        )
    )
)
def test_any_request_ends_in_an_answer_or_a_status_and_nothing_dies(
    service: EventsThread, client: Client, asked: tuple[str, bytes]
) -> None:
    method, body = asked
    path = f"/eventbus.v1.PubSub/{method}"
    try:
        if method in ("PublishStream", "Subscribe", "ManagedSubscribe"):
            list(client.channel.stream_stream(path)(iter([body]), metadata=client.metadata, timeout=60))
        else:
            client.channel.unary_unary(path)(body, metadata=client.metadata, timeout=60)
    except grpc.RpcError as error:
        assert error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
    request = client.pb.TopicRequest(topic_name=TOPIC)
    assert client.stub.GetTopic(request, metadata=client.metadata).can_publish


def test_the_generated_messages_are_fresh(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    for name in generate.GENERATED:
        assert (tmp_path / name).read_text() == (Path(generate.__file__).parent / name).read_text(), (
            f"run {generate.__name__}"
        )


def _before(replay_id: bytes) -> bytes:
    return (int.from_bytes(replay_id[:8]) - 1).to_bytes(8, signed=True)


def test_bytes_that_are_no_request_are_refused_without_a_trace(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody may send them, before a login too."""
    unary_call = client.channel.unary_unary("/eventbus.v1.PubSub/GetTopic")
    stream_call = client.channel.stream_stream("/eventbus.v1.PubSub/Subscribe")
    for metadata in ((), client.metadata):
        for call in (
            lambda metadata=metadata: unary_call(b"\xff" * 5, metadata=metadata, timeout=60),
            lambda metadata=metadata: list(stream_call(iter([b"\xff" * 5]), metadata=metadata, timeout=60)),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAUTHENTICATED)
    assert [record.getMessage() for record in caplog.records if "DecodeError" in record.getMessage()] == []


def test_no_client_is_refused_for_calls_that_another_begins_and_gives_up(client: Client, service: EventsThread) -> None:
    """CVE-2023-44487: gRPC refuses some of everybody's calls while many wait for their turn."""
    from tests.hostile.pubsub_attacks import many_streams, rapid_resets
    from tests.hostile.siege import Target

    address, ca = service.addresses["pubsub"], service.addresses["ca"]
    target = Target(address, ca, "", "", "", service.token())
    over, refusals = threading.Event(), []

    def ask() -> None:
        while not over.is_set():
            try:
                client.stub.GetTopic(client.pb.TopicRequest(topic_name=TOPIC), metadata=client.metadata, timeout=60)
            except grpc.RpcError as error:
                refusals.append(error.code())

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(3):
            rapid_resets(target)
            many_streams(target)
    finally:
        over.set()
        asking.join()
        target.close()
    assert refusals == []
