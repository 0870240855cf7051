"""Users' rights, over each protocol."""

from __future__ import annotations

import queue
from typing import Any

import grpc
import pytest
import requests

from events.access import User
from events.errors import BusUnavailable, SubscriptionActive
from events.proto import pubsub_api_pb2 as pb
from tests.servers.process import wait_until
from tests.support.accounts import SECRET, TOKEN
from tests.support.events import EventsThread

EVENT = "Order_Shipped__e"
DATA = "/services/data/v60.0"
PERMISSION_DENIED, UNAUTHENTICATED = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED


def token(service: EventsThread, name: str) -> str:
    return service.run(service.server.access.login(f"{name}@shop", SECRET)).id


def call(service: EventsThread, name: str, method: str, path: str, **more: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token(service, name)}"}
    answer = requests.request(method, service.url + path, headers=headers, timeout=60, **more)
    return answer.status_code, answer.json() if answer.content else None


def publish(service: EventsThread, name: str, number: str = "f-1") -> tuple[int, Any]:
    return call(service, name, "POST", f"{DATA}/sobjects/{EVENT}", json={"Order_Number__c": number})


def error(said: Any) -> tuple[str, str]:
    return said[0]["errorCode"], said[0]["message"]


def test_a_user_who_may_create_publishes_under_their_own_name(service: EventsThread) -> None:
    status, said = publish(service, "writer")
    assert status == 201, said
    stored = service.memory_log.records(EVENT)[-1]
    writer = service.server.access.accounts.named("writer@shop")
    assert stored is not None
    assert writer is not None
    assert writer.id.encode() in stored.value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reader", (400, ("CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY", "entity type cannot be inserted: Order Shipped"))),
        ("builder", (400, ("CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY", "entity type cannot be inserted: Order Shipped"))),
        ("nobody", (404, ("NOT_FOUND", "The requested resource does not exist"))),
    ],
)
def test_rest_refuses_to_publish_in_salesforces_words(service: EventsThread, name: str, expected: Any) -> None:
    status, said = publish(service, name)
    assert (status, error(said)) == expected


def test_a_collection_and_a_tree_refuse_each_record(service: EventsThread) -> None:
    record = {"attributes": {"type": EVENT, "referenceId": "r"}, "Order_Number__c": "1"}
    for name, code in (("reader", "CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY"), ("nobody", "INVALID_TYPE")):
        _, said = call(service, name, "POST", f"{DATA}/composite/sobjects", json={"records": [record]})
        assert said[0]["errors"][0]["statusCode"] == code
        status, said = call(service, name, "POST", f"{DATA}/composite/tree/{EVENT}", json={"records": [record]})
        assert (status, said["results"][0]["errors"][0]["statusCode"]) == (400, code)


def test_all_or_none_publishes_none_when_one_right_is_missing(service: EventsThread) -> None:
    sub = {"method": "POST", "url": f"{DATA}/sobjects/{EVENT}", "referenceId": "a", "body": {"Order_Number__c": "1"}}
    body = {"allOrNone": True, "compositeRequest": [sub]}
    before = len(service.memory_log.records(EVENT))
    _, said = call(service, "reader", "POST", f"{DATA}/composite", json=body)
    assert said["compositeResponse"][0]["httpStatusCode"] == 400
    assert len(service.memory_log.records(EVENT)) == before


def test_soap_create_refuses_each_record(service: EventsThread) -> None:
    body = (
        '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header><SessionHeader><sessionId>'
        f"{token(service, 'reader')}</sessionId></SessionHeader></e:Header><e:Body><create><sObjects><type>{EVENT}</type>"
        "<Order_Number__c>1</Order_Number__c></sObjects></create></e:Body></e:Envelope>"
    )
    answer = requests.post(f"{service.url}/services/Soap/u/60.0", data=body, timeout=60)
    assert "<statusCode>CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY</statusCode>" in answer.text


def test_a_bulk_job_is_refused_and_is_its_makers_own(service: EventsThread) -> None:
    jobs = f"{DATA}/jobs/ingest"
    status, said = call(service, "reader", "POST", jobs, json={"object": EVENT, "operation": "insert"})
    assert (status, error(said)) == (400, ("INVALIDJOB", f"InvalidJob : No create/update access for object:{EVENT}"))
    assert call(service, "nobody", "POST", jobs, json={"object": EVENT})[1][0]["errorCode"] == "INVALIDENTITY"
    _, job = call(service, "writer", "POST", jobs, json={"object": EVENT, "operation": "insert"})
    assert call(service, "reader", "GET", f"{jobs}/{job['id']}")[0] == 404
    assert call(service, "builder", "GET", f"{jobs}/{job['id']}")[0] == 200


def test_events_are_described_to_who_may_see_them(service: EventsThread) -> None:
    for name, creates in (("reader", False), ("writer", True), ("builder", False)):
        status, said = call(service, name, "GET", f"{DATA}/sobjects/{EVENT}/describe")
        assert (status, said["createable"]) == (200, creates)
    assert [sobject["name"] for sobject in call(service, "reader", "GET", f"{DATA}/sobjects")[1]["sobjects"]] == [EVENT]
    assert call(service, "nobody", "GET", f"{DATA}/sobjects")[1]["sobjects"] == []
    for path in ("describe", "eventSchema", ""):
        assert call(service, "nobody", "GET", f"{DATA}/sobjects/{EVENT}/{path}")[0] == 404
    assert call(service, "nobody", "GET", f"{DATA}/event/eventSchema/1")[0] == 404
    assert call(service, "nobody", "GET", "/tidegate/v1/events")[1] == []
    assert call(service, "nobody", "GET", f"/tidegate/v1/events/{EVENT}")[0] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/tidegate/v1/events"),
        ("POST", "/tidegate/v1/entities"),
        ("GET", "/tidegate/v1/triggers"),
        ("PATCH", "/tidegate/v1/triggers/x"),
        ("DELETE", "/tidegate/v1/triggers/x"),
        ("GET", f"{DATA}/limits"),
        ("GET", f"{DATA}/query?q=SELECT Id FROM EventBusSubscriber"),
        ("POST", f"{DATA}/tooling/sobjects/PlatformEventChannel"),
        ("PATCH", f"{DATA}/tooling/sobjects/PlatformEventChannel/0YL000000000000AAA"),
        ("DELETE", f"{DATA}/tooling/sobjects/ManagedEventSubscription/0YL000000000000AAA"),
    ],
)
def test_setup_needs_a_permission(service: EventsThread, method: str, path: str) -> None:
    status, said = call(service, "reader", method, path, json={})
    assert (status, said[0]["errorCode"]) == (403, "INSUFFICIENT_ACCESS")
    assert call(service, "builder", method, path, json={})[0] != 403


def comet(service: EventsThread, session: str, *messages: dict[str, Any]) -> list[Any]:
    headers = {"Authorization": f"Bearer {session}"}
    answer = requests.post(f"{service.url}/cometd/60.0", json=list(messages), headers=headers, timeout=60)
    return list(answer.json())


def shake_hands(service: EventsThread, session: str) -> str:
    message = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}
    return str(comet(service, session, message)[0]["clientId"])


def test_cometd_subscribes_who_may_read(service: EventsThread) -> None:
    for name, outcome in (
        ("reader", None),
        ("writer", "403::Restricted channel"),
        ("nobody", "403::Restricted channel"),
    ):
        session = token(service, name)
        message = {"channel": "/meta/subscribe", "subscription": f"/event/{EVENT}"}
        (reply,) = comet(service, session, message | {"clientId": shake_hands(service, session)})
        assert reply.get("error") == outcome


def test_a_cometd_session_is_of_one_user(service: EventsThread) -> None:
    client_id = shake_hands(service, token(service, "reader"))
    message = {"channel": "/meta/connect", "clientId": client_id, "connectionType": "long-polling"}
    (reply,) = comet(service, token(service, "writer"), message)
    assert reply["error"] == "400::Authenticated user id does not match the session's user id"


def ask(service: EventsThread, session: str, method: str, request: Any, answer: Any) -> Any:
    metadata = (("accesstoken", session), ("instanceurl", service.url), ("tenantid", service.server.access.org_id))
    with grpc.insecure_channel(service.addresses["pubsub-plain"]) as channel:
        path = f"/eventbus.v1.PubSub/{method}"
        if method in ("GetTopic", "GetSchema", "Publish"):
            unary = channel.unary_unary(path, type(request).SerializeToString, answer.FromString)
            return unary(request, metadata=metadata, timeout=60)
        stream = channel.stream_stream(path, type(request).SerializeToString, answer.FromString)
        return next(stream(iter([request]), metadata=metadata, timeout=60))


def test_pubsub_says_and_holds_what_a_user_may(service: EventsThread) -> None:
    topic = pb.TopicRequest(topic_name=f"/event/{EVENT}")
    for name, rights in (("reader", (False, True)), ("writer", (True, False)), ("builder", (False, False))):
        said = ask(service, token(service, name), "GetTopic", topic, pb.TopicInfo)
        assert (said.can_publish, said.can_subscribe) == rights
    fetch = pb.FetchRequest(topic_name=f"/event/{EVENT}", num_requested=1)
    event = pb.ProducerEvent(schema_id="1", payload=b"x")
    publish = pb.PublishRequest(topic_name=f"/event/{EVENT}", events=[event])
    refused = [
        ("nobody", "GetTopic", topic, pb.TopicInfo, "topic.meta.permission"),
        ("writer", "Subscribe", fetch, pb.FetchResponse, "subscription.topic.cannot.subscribe"),
        ("reader", "Publish", publish, pb.PublishResponse, "publish.topic.cannot.publish"),
    ]
    for name, method, request, answer, code in refused:
        with pytest.raises(grpc.RpcError) as raised:
            ask(service, token(service, name), method, request, answer)
        assert raised.value.code() is PERMISSION_DENIED
        trailers = dict(raised.value.trailing_metadata())
        assert trailers["error-code"] == f"sfdc.platform.eventbus.grpc.{code}"
    with pytest.raises(grpc.RpcError) as raised:
        ask(service, token(service, "nobody"), "GetSchema", pb.SchemaRequest(schema_id="1"), pb.SchemaInfo)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


def managed(service: EventsThread, channel: grpc.Channel, token: str, name: str) -> Any:
    """A stream of a managed subscription, until it is cancelled."""
    metadata = (("accesstoken", token), ("instanceurl", service.url), ("tenantid", service.server.access.org_id))
    call = channel.stream_stream(
        "/eventbus.v1.PubSub/ManagedSubscribe",
        request_serializer=pb.ManagedFetchRequest.SerializeToString,
        response_deserializer=pb.ManagedFetchResponse.FromString,
    )
    asked: queue.Queue[Any] = queue.Queue()
    asked.put(pb.ManagedFetchRequest(developer_name=name, num_requested=1))
    return call(iter(asked.get, None), metadata=metadata, timeout=60)


def record(service: EventsThread, type_: str, name: str, **metadata: Any) -> None:
    path = f"/services/data/v62.0/tooling/sobjects/{type_}"
    status, said = call(service, "builder", "POST", path, json={"FullName": name, "Metadata": metadata})
    assert status == 201, said


def test_a_managed_subscription_is_not_taken_from_another_user(service: EventsThread) -> None:
    record(service, "ManagedEventSubscription", "Ours", label="Ours", topicName=f"/event/{EVENT}")
    careful = service.run(service.server.access.login("careful@shop", SECRET + TOKEN)).id
    with grpc.insecure_channel(service.addresses["pubsub-plain"]) as channel:
        subscription = managed(service, channel, careful, "Ours")
        next(subscription)
        with pytest.raises(grpc.RpcError) as raised:
            next(managed(service, channel, token(service, "reader"), "Ours"))
        assert raised.value.code() is grpc.StatusCode.ALREADY_EXISTS
        trailers = dict(raised.value.trailing_metadata())
        assert trailers["error-code"] == "sfdc.platform.eventbus.grpc.managed.subscription.already.active"
        next(subscription)  # it goes on
        newer = managed(service, channel, careful, "Ours")  # its own user may
        next(newer)
        newer.cancel()

        def taken() -> bool:
            stream = managed(service, channel, token(service, "reader"), "Ours")
            try:
                next(stream)
            except grpc.RpcError:
                return False
            stream.cancel()
            return True

        wait_until(taken, "the subscription free once its stream has ended")


def test_definitions_are_shown_to_those_who_may_see_their_events(service: EventsThread) -> None:
    record(service, "PlatformEventChannel", "Secret__chn", channelType="event", label="Secret")
    member = {"eventChannel": "Secret__chn", "selectedEntity": EVENT, "filterExpression": "Amount__c > 1000"}
    record(service, "PlatformEventChannelMember", "Secret_Orders", **member)
    record(service, "ManagedEventSubscription", "Hidden", label="Hidden", topicName="/event/Secret__chn")

    def seen(name: str, type_: str) -> list[str]:
        query = {"q": f"SELECT Id, FullName FROM {type_}"}
        status, said = call(service, name, "GET", "/services/data/v62.0/tooling/query", params=query)
        assert status == 200, said
        return [each["FullName"] for each in said["records"]]

    for type_, name in (
        ("PlatformEventChannel", "Secret__chn"),
        ("PlatformEventChannelMember", "Secret_Orders"),
        ("ManagedEventSubscription", "Hidden"),
    ):
        assert name in seen("builder", type_)
        assert name not in seen("reader", type_)
        assert name not in seen("nobody", type_)


def user(service: EventsThread, name: str) -> User:
    account = service.server.access.accounts.named(f"{name}@shop")
    assert account is not None
    return account


def test_a_managed_stream_that_cannot_begin_leaves_the_subscription_free(
    service: EventsThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(service, "ManagedEventSubscription", "Begun", label="Begun", topicName=f"/event/{EVENT}")
    careful = service.run(service.server.access.login("careful@shop", SECRET + TOKEN)).id

    async def fails(*_: object) -> None:
        raise BusUnavailable("the log went away")

    with grpc.insecure_channel(service.addresses["pubsub-plain"]) as channel:
        with monkeypatch.context() as patched, pytest.raises(grpc.RpcError) as raised:
            patched.setattr(service.server.bus, "subscribe", fails)
            next(managed(service, channel, careful, "Begun"))
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        stream = managed(service, channel, token(service, "reader"), "Begun")
        next(stream)
        stream.cancel()


def test_a_subscription_that_could_not_be_given_up_is_its_users_and_the_customizers(service: EventsThread) -> None:
    subscriptions = service.server.managed
    careful, reader, builder = (user(service, name) for name in ("careful", "reader", "builder"))
    service.run(subscriptions.hold("Lost", "one", careful))
    service.memory_log.down = True
    try:
        with pytest.raises(BusUnavailable):
            service.run(subscriptions.give_up("Lost", "one"))
    finally:
        service.memory_log.down = False
    with pytest.raises(SubscriptionActive):
        service.run(subscriptions.hold("Lost", "two", reader))
    service.run(subscriptions.hold("Lost", "two", careful))
    service.run(subscriptions.give_up("Lost", "one"))  # no longer its own
    with pytest.raises(SubscriptionActive):
        service.run(subscriptions.hold("Lost", "three", reader))
    service.run(subscriptions.hold("Lost", "three", builder))


def test_a_holder_that_an_earlier_version_noted_without_its_user_can_be_followed(service: EventsThread) -> None:
    service.run(service.server.state.put("managed-holder/early", "a stream of then"))
    service.run(service.server.managed.hold("Early", "now", user(service, "reader")))
    with pytest.raises(SubscriptionActive):
        service.run(service.server.managed.hold("Early", "later", user(service, "careful")))
