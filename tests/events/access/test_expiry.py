"""Sessions that expire while a client is subscribed."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests

from events.proto import pubsub_api_pb2 as pb
from tests.support.accounts import ACCOUNTS, SECRET
from tests.support.events import EventsThread

EVENT = "Order_Shipped__e"


@pytest.fixture
def short(tmp_path: Path) -> Iterator[EventsThread]:
    """Sessions end after 1.5 s; nothing else would wake a subscriber."""
    (tmp_path / "accounts.json").write_text(json.dumps(ACCOUNTS))
    keys = {"events.session.timeout.ms": 1500, "pubsub.keepalive.ms": 200_000, "cometd.connect.timeout.ms": 100_000}
    with EventsThread(tmp_path, **keys) as running:
        running.define()
        yield running


def login(service: EventsThread, name: str) -> str:
    return service.run(service.server.access.login(name, SECRET)).id


def subscribed(service: EventsThread, session: str) -> Iterator[Any]:
    metadata = (("accesstoken", session), ("instanceurl", service.url), ("tenantid", service.server.access.org_id))
    requests_queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
    requests_queue.put(pb.FetchRequest(topic_name=f"/event/{EVENT}", num_requested=1))
    with grpc.insecure_channel(service.addresses["pubsub-plain"]) as channel:
        path = "/eventbus.v1.PubSub/Subscribe"
        call: Any = channel.stream_stream(path, pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString)
        yield from call(iter(requests_queue.get, None), metadata=metadata, timeout=100)


def test_a_pubsub_stream_ends_with_its_session(short: EventsThread) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(subscribed(short, login(short, "reader@shop")))
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    trailers = dict(raised.value.trailing_metadata())
    assert trailers["error-code"] == "sfdc.platform.eventbus.grpc.service.auth.error"


def test_a_cometd_connect_that_waits_ends_with_its_session(short: EventsThread) -> None:
    headers = {"Authorization": f"OAuth {login(short, 'reader@shop')}"}

    def send(**message: Any) -> Any:
        answer = requests.post(f"{short.url}/cometd/60.0", json=[message], headers=headers, timeout=100)
        return answer.json()[0]

    shaken = send(channel="/meta/handshake", version="1.0", supportedConnectionTypes=["long-polling"])
    connect = {"channel": "/meta/connect", "clientId": shaken.get("clientId"), "connectionType": "long-polling"}
    first = send(**connect)
    second = send(**connect)
    for reply in (first, second):  # a slow machine may be late for the first one already
        assert reply["successful"] or reply["error"] == "401::Authentication invalid"
    assert (second["error"], second["advice"]["reconnect"]) == ("401::Authentication invalid", "none")


def test_rights_that_are_taken_away_end_a_subscription(service: EventsThread) -> None:
    stream = subscribed(service, login(service, "reader@shop"))
    next(stream)  # a keepalive
    accounts = service.server._config.accounts_path
    told = json.loads(accounts.read_text())
    told["users"][0]["read"] = []
    accounts.write_text(json.dumps(told))
    with pytest.raises(grpc.RpcError) as raised:
        list(stream)
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
