"""Limits over each protocol, with Salesforce's messages."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests

from events.limits.allowance import UNLIMITED
from events.proto import pubsub_api_pb2 as pb
from tests.support.events import ORDER_SHIPPED, EventsThread

EVENT = ORDER_SHIPPED.name
DATA = "/services/data/v60.0"
CHANNEL = f"/event/{EVENT}"


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[EventsThread]:
    keys = {
        "events.limit.published.hourly": 3,
        "events.limit.delivered.daily": 2,
        "events.limit.event.bytes": 100,
        "cometd.max.sessions": 1,
        "pubsub.max.streams": 1,
        "pubsub.keepalive.ms": 200,
    }
    with EventsThread(tmp_path, **keys) as running:
        running.define()
        yield running


def call(service: EventsThread, method: str, path: str, **more: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {service.token()}"}
    return requests.request(method, service.url + path, headers=headers, timeout=60, **more)


def collection(service: EventsThread, *numbers: str, **more: Any) -> Any:
    records = [{"attributes": {"type": EVENT}, "Order_Number__c": number} for number in numbers]
    return call(service, "POST", f"{DATA}/composite/sobjects", json={"records": records, **more}).json()


def limits(service: EventsThread) -> Any:
    return call(service, "GET", f"{DATA}/limits").json()


def test_events_beyond_the_hourly_limit_are_refused_and_the_rest_is_true(limited: EventsThread) -> None:
    said = collection(limited, "1", "x" * 41, "2", "3", "4")
    assert [result["success"] for result in said] == [True, False, True, True, False]
    assert said[4]["errors"][0]["statusCode"] == "LIMIT_EXCEEDED"
    assert limits(limited)["HourlyPublishedPlatformEvents"] == {"Max": 3, "Remaining": 0}
    single = call(limited, "POST", f"{DATA}/sobjects/{EVENT}", json={"Order_Number__c": "5"})
    assert (single.status_code, single.json()[0]["errorCode"]) == (403, "LIMIT_EXCEEDED")


def test_all_or_none_beyond_the_limit_publishes_none(limited: EventsThread) -> None:
    said = collection(limited, "1", "2", "3", "4", allOrNone=True)
    assert said[0]["errorCode"] == "LIMIT_EXCEEDED"
    assert limits(limited)["HourlyPublishedPlatformEvents"]["Remaining"] == 3
    assert all(result["success"] for result in collection(limited, "1", "2", allOrNone=True))
    assert limits(limited)["HourlyPublishedPlatformEvents"]["Remaining"] == 1


def test_events_that_the_log_refuses_are_not_counted(limited: EventsThread) -> None:
    limited.memory_log.down = True
    call(limited, "POST", f"{DATA}/sobjects/{EVENT}", json={"Order_Number__c": "1"})
    limited.memory_log.down = False
    assert limits(limited)["HourlyPublishedPlatformEvents"]["Remaining"] == 3


def test_an_event_that_is_too_large_is_refused(limited: EventsThread) -> None:
    said = call(limited, "POST", f"{DATA}/sobjects/{EVENT}", json={"Order_Number__c": "1", "Note__c": "x" * 200})
    assert (said.status_code, said.json()[0]["errorCode"]) == (400, "LIMIT_EXCEEDED")


def comet(service: EventsThread, **message: Any) -> list[Any]:
    return list(call(service, "POST", "/cometd/60.0", json=[message]).json())


HANDSHAKE = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}


def test_cometd_sessions_and_what_is_delivered_are_bounded(limited: EventsThread) -> None:
    (shaken,) = comet(limited, **HANDSHAKE)
    assert limits(limited)["StreamingApiConcurrentClients"] == {"Max": 1, "Remaining": 0}
    assert comet(limited, **HANDSHAKE)[0]["error"] == "403::Organization concurrent user limit exceeded"
    client = {"clientId": shaken["clientId"]}
    replay = {"ext": {"replay": {CHANNEL: -2}}}
    assert comet(limited, channel="/meta/subscribe", subscription=CHANNEL, **client, **replay)[0]["successful"]
    collection(limited, "1", "2", "3")
    connect = {"channel": "/meta/connect", "connectionType": "long-polling", **client}
    came: list[Any] = []
    while (answer := comet(limited, **connect))[-1]["successful"]:
        came += answer[:-1]
    assert [message["data"]["payload"]["Order_Number__c"] for message in came] == ["1", "2"]
    said = "403::Organization total events daily limit exceeded"
    assert answer == [{"channel": "/meta/connect", "successful": False, "error": said, **client, **_NO_MORE}]
    assert comet(limited, channel="/meta/subscribe", subscription=CHANNEL, **client)[0]["error"] == said
    assert limits(limited)["DailyDeliveredPlatformEvents"] == {"Max": 2, "Remaining": 0}


def test_one_user_does_not_take_all_cometd_sessions(tmp_path: Path) -> None:
    with EventsThread(tmp_path, **{"cometd.max.sessions.per.user": 2}) as service:
        sessions = [comet(service, **HANDSHAKE)[0] for _ in range(3)]
        assert [each["successful"] for each in sessions] == [True, True, False]
        assert sessions[2]["error"].startswith("403::User concurrent session limit exceeded: 2")
        assert comet(service, channel="/meta/disconnect", clientId=sessions[0]["clientId"])[0]["successful"]
        assert comet(service, **HANDSHAKE)[0]["successful"]


_NO_MORE = {"advice": {"reconnect": "none", "interval": 0}}


def subscribed(service: EventsThread) -> Iterator[Any]:
    access = service.server.access
    metadata = (("accesstoken", service.token()), ("instanceurl", service.url), ("tenantid", access.org_id))
    requests_queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
    requests_queue.put(pb.FetchRequest(topic_name=CHANNEL, num_requested=100, replay_preset=pb.EARLIEST))
    with grpc.insecure_channel(service.addresses["pubsub-plain"]) as channel:
        path = "/eventbus.v1.PubSub/Subscribe"
        call: Any = channel.stream_stream(path, pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString)
        yield from call(iter(requests_queue.get, None), metadata=metadata, timeout=60)


def refused(stream: Iterator[Any]) -> tuple[Any, str, str]:
    with pytest.raises(grpc.RpcError) as raised:
        list(stream)
    code = dict(raised.value.trailing_metadata())["error-code"]
    return raised.value.code(), code, raised.value.details()


def test_pubsub_streams_and_what_they_deliver_are_bounded(limited: EventsThread) -> None:
    first = subscribed(limited)
    next(first)  # a keepalive
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    status, code, _ = refused(subscribed(limited))
    assert (status, code) == (exhausted, "sfdc.platform.eventbus.grpc.concurrent.client.limit.exceeded")
    collection(limited, "1", "2", "3")
    came = []
    with pytest.raises(grpc.RpcError) as raised:
        for response in first:
            came += list(response.events)
    assert len(came) == 2
    assert raised.value.code() is exhausted
    trailers = dict(raised.value.trailing_metadata())
    assert trailers["error-code"] == "sfdc.platform.eventbus.grpc.subscription.limit.exceeded"
    assert raised.value.details().startswith("You have exceeded the event delivery limit for your org.")


def test_requests_are_counted_told_and_refused(tmp_path: Path) -> None:
    for used in (0, 3):  # a restart changes nothing
        with EventsThread(tmp_path, **{"events.limit.requests.daily": 5}) as service:
            anonymous = requests.get(f"{service.url}{DATA}/sobjects", timeout=60)
            assert anonymous.status_code == 401
            for number in range(used + 1, min(used + 4, 6)):
                answer = call(service, "GET", f"{DATA}/limits")
                assert answer.headers["Sforce-Limit-Info"] == f"api-usage={number}/5"
                assert answer.json()["DailyApiRequests"] == {"Max": 5, "Remaining": 6 - number}
            if used:
                answer = call(service, "GET", f"{DATA}/sobjects")
                assert (answer.status_code, answer.json()) == (
                    403,
                    [{"message": "TotalRequests Limit exceeded.", "errorCode": "REQUEST_LIMIT_EXCEEDED"}],
                )
                soap = requests.post(f"{service.url}/services/Soap/u/60.0", data="<x/>", timeout=60)
                assert "<sf:exceptionCode>REQUEST_LIMIT_EXCEEDED</sf:exceptionCode>" in soap.text


def test_without_limits_nothing_is_refused_and_all_is_shown(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text('{"requestsDaily": {"x": []}}')  # damaged: counting begins anew
    with EventsThread(tmp_path) as service:
        said = limits(service)
        assert set(said) == {
            "DailyApiRequests",
            "DailyDeliveredPlatformEvents",
            "DurableStreamingApiConcurrentClients",
            "HourlyPublishedPlatformEvents",
            "StreamingApiConcurrentClients",
        }
        assert said["HourlyPublishedPlatformEvents"] == {"Max": UNLIMITED, "Remaining": UNLIMITED}
