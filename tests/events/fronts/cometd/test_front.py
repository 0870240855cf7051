from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
import requests
from aiosfstream_ng import Client, ReplayOption
from aiosfstream_ng.auth import AuthenticatorBase
from aiosfstream_ng.exceptions import ServerError
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import BusUnavailable
from tests.proofs import effort
from tests.servers.process import wait_until
from tests.support.events import PASSWORD, USER, EventsThread

CHANNEL = "/event/Order_Shipped__e"


class TokenAuthenticator(AuthenticatorBase):
    """Logs in with the OAuth password flow at a service that is not login.salesforce.com."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def _authenticate(self) -> tuple[int, dict[str, Any]]:
        form = {
            "grant_type": "password",
            "client_id": "tidegate",
            "client_secret": PASSWORD,
            "username": USER,
            "password": PASSWORD,
        }
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{self._url}/services/oauth2/token", data=form)
            return answer.status, await answer.json()


def publish(service: EventsThread, *numbers: str) -> None:
    records = [{"attributes": {"type": "Order_Shipped__e"}, "Order_Number__c": number} for number in numbers]
    answer = requests.post(
        f"{service.url}/services/data/v60.0/composite/sobjects",
        json={"records": records},
        headers={"Authorization": f"Bearer {service.token()}"},
        timeout=60,
    )
    assert all(result["success"] for result in answer.json())


async def receive(client: Client, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        return [await client.receive() for _ in range(count)]


def numbers(messages: list[dict[str, Any]]) -> list[str]:
    return [message["data"]["payload"]["Order_Number__c"] for message in messages]


@pytest.mark.anyio
async def test_aiosfstream_receives_events_as_they_come(service: EventsThread) -> None:
    async with Client(TokenAuthenticator(service.url)) as client:
        await client.subscribe(CHANNEL)
        await asyncio.to_thread(publish, service, "c-1", "c-2")
        messages = await receive(client, 2)
    assert numbers(messages) == ["c-1", "c-2"]
    data = messages[0]["data"]
    assert messages[0]["channel"] == CHANNEL
    assert data["payload"]["CreatedDate"].endswith("Z")
    assert data["payload"]["CreatedById"] == service.user.id
    assert data["event"]["replayId"] + 1 == messages[1]["data"]["event"]["replayId"]


@pytest.mark.anyio
async def test_aiosfstream_replays_all_that_is_kept(service: EventsThread) -> None:
    for hundred in range(0, 450, 150):
        await asyncio.to_thread(publish, service, *[f"r-{number}" for number in range(hundred, hundred + 150)])
    async with Client(TokenAuthenticator(service.url), replay=ReplayOption.ALL_EVENTS) as client:
        await client.subscribe(CHANNEL)
        messages = await receive(client, len(service.memory_log.records("Order_Shipped__e")))
    assert numbers(messages)[-450:] == [f"r-{number}" for number in range(450)]
    assert [message["data"]["event"]["replayId"] for message in messages] == list(range(1, len(messages) + 1))


@pytest.mark.anyio
async def test_aiosfstream_goes_on_after_the_last_event_it_had(service: EventsThread) -> None:
    markers: dict[str, Any] = {}
    async with Client(TokenAuthenticator(service.url), replay=markers) as client:
        await client.subscribe(CHANNEL)
        await asyncio.to_thread(publish, service, "s-1")
        assert numbers(await receive(client, 1)) == ["s-1"]
    await asyncio.to_thread(publish, service, "s-2", "s-3")
    async with Client(TokenAuthenticator(service.url), replay=markers) as client:
        await client.subscribe(CHANNEL)
        assert numbers(await receive(client, 2)) == ["s-2", "s-3"]


@pytest.mark.anyio
async def test_aiosfstream_hears_of_an_unknown_channel(service: EventsThread) -> None:
    async with Client(TokenAuthenticator(service.url)) as client:
        with pytest.raises(ServerError, match="400::The channel you requested to subscribe to does not exist"):
            await client.subscribe("/event/Missing__e")


@pytest.mark.anyio
async def test_several_clients_each_get_every_event(service: EventsThread) -> None:
    clients = [Client(TokenAuthenticator(service.url)) for _ in range(5)]
    for client in clients:
        await client.open()
        await client.subscribe(CHANNEL)
    await asyncio.to_thread(publish, service, *[f"m-{number}" for number in range(20)])
    got = await asyncio.gather(*(receive(client, 20) for client in clients))
    await asyncio.gather(*(client.close() for client in clients))
    assert [numbers(messages) for messages in got] == [[f"m-{number}" for number in range(20)]] * 5


class Bayeux:
    """Messages by hand, for what a well-behaved client never sends."""

    def __init__(self, service: EventsThread, token: str | None = None) -> None:
        self._url = f"{service.url}/cometd/60.0"
        self._headers = {"Authorization": f"OAuth {token or service.token()}"}
        (reply,) = self.send(
            {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}
        )
        self.handshake, self.id = reply, reply.get("clientId")

    def send(self, *messages: Any, raw: bytes | None = None) -> list[dict[str, Any]]:
        body = raw if raw is not None else json.dumps(messages[0] if len(messages) == 1 else messages).encode()
        answer = requests.post(self._url, data=body, headers=self._headers, timeout=60)
        return list(answer.json())

    def connect(self, timeout_ms: int | None = None) -> list[dict[str, Any]]:
        message = {"channel": "/meta/connect", "clientId": self.id, "connectionType": "long-polling"}
        return self.send(message | ({} if timeout_ms is None else {"advice": {"timeout": timeout_ms}}))

    def subscribe(self, channel: Any = CHANNEL, replay: Any = None) -> dict[str, Any]:
        extension = {} if replay is None else {"ext": {"replay": {CHANNEL: replay}}}
        return self.send({"channel": "/meta/subscribe", "clientId": self.id, "subscription": channel, **extension})[0]


def test_the_first_connect_is_answered_at_once_and_the_next_waits(service: EventsThread) -> None:
    client = Bayeux(service)
    assert client.connect()[-1]["advice"] == {
        "reconnect": "retry",
        "interval": 0,
        "timeout": 5000,
        "maxInterval": 40000,
    }
    assert client.subscribe()["successful"] is True
    assert [message["channel"] for message in client.connect(timeout_ms=50)] == ["/meta/connect"]
    publish(service, "w-1")
    event, reply = client.connect()
    assert (numbers([event]), reply["successful"]) == (["w-1"], True)


@pytest.mark.parametrize("replay", ["one", 1.5, True, -3, 10**6, 10**30, None])
def test_an_invalid_replay_id_is_refused_in_salesforces_words(service: EventsThread, replay: Any) -> None:
    client = Bayeux(service)
    message = {
        "channel": "/meta/subscribe",
        "clientId": client.id,
        "subscription": CHANNEL,
        "ext": {"replay": {CHANNEL: replay}},
    }
    (reply,) = client.send(message)
    assert reply["successful"] is False
    assert reply["error"].startswith("400::The replayId {")
    assert "-2 to replay all events" in reply["error"]


def test_an_unknown_client_is_told_to_shake_hands(service: EventsThread) -> None:
    client = Bayeux(service)
    client.id = "nobody"
    (reply,) = client.connect()
    assert (reply["error"], reply["advice"]["reconnect"]) == ("403::Unknown client", "handshake")


def test_a_client_that_disconnects_is_forgotten(service: EventsThread) -> None:
    client = Bayeux(service)
    assert client.send({"channel": "/meta/disconnect", "clientId": client.id})[0]["successful"] is True
    assert client.connect()[0]["error"] == "403::Unknown client"


def test_without_a_session_the_handshake_is_denied(service: EventsThread) -> None:
    reply = Bayeux(service, token="forged").handshake
    assert reply["error"] == "403::Handshake denied"
    assert reply["ext"]["sfdc"]["failureReason"] == "401::Authentication invalid"


def test_a_session_that_ended_stops_a_connect(service: EventsThread) -> None:
    token = service.token()
    client = Bayeux(service, token=token)
    service.server.access.revoke(token)
    (reply,) = client.connect()
    assert (reply["error"], reply["advice"]["reconnect"]) == ("401::Authentication invalid", "none")


def test_a_client_that_hangs_up_loses_nothing(service: EventsThread) -> None:
    client = Bayeux(service)
    client.connect()
    client.subscribe()
    with pytest.raises(requests.ReadTimeout):
        message = {"channel": "/meta/connect", "clientId": client.id, "connectionType": "long-polling"}
        requests.post(client._url, json=message, headers=client._headers, timeout=0.2)
    _until(lambda: _client(service, client).connect is None)
    publish(service, "h-1")
    assert numbers(client.connect()[:-1]) == ["h-1"]


def test_events_wait_while_the_registry_is_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    with EventsThread(tmp_path_factory.mktemp("away")) as service:
        service.define()
        client = Bayeux(service)
        client.connect()
        client.subscribe()
        publish(service, "a-1", "a-2")
        service.server.catalog._by_id.clear()
        by_id = service.schemas.by_id

        def away(_: int) -> str:
            raise BusUnavailable("The registry is away")

        service.schemas.by_id = away
        assert client.connect(timeout_ms=10)[:-1] == []
        service.schemas.by_id = by_id
        assert numbers(client.connect()[:-1]) == ["a-1", "a-2"]


@pytest.mark.parametrize("call", ["any_schema", "known_schema"])
def test_a_connect_is_answered_whatever_goes_wrong(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with EventsThread(tmp_path_factory.mktemp("wrong")) as service:
        service.define()
        client = Bayeux(service)
        client.connect()
        client.subscribe()
        publish(service, "a-1")
        service.server.catalog._by_id.clear()
        monkeypatch.setattr(service.server.catalog, call, Mock(side_effect=RuntimeError("a fault of ours")))
        assert client.connect(timeout_ms=10)[-1]["successful"]
        monkeypatch.undo()
        if call == "any_schema":
            assert numbers(client.connect()[:-1]) == ["a-1"]


def test_a_topic_that_was_made_anew_shows_its_new_events(tmp_path_factory: pytest.TempPathFactory) -> None:
    with EventsThread(tmp_path_factory.mktemp("anew")) as service:
        service.define()
        key = {"Authorization": f"Bearer {service.token()}", "Idempotency-Key": "k"}

        def shown(number: str) -> list[str]:
            path = f"{service.url}/services/data/v60.0/sobjects/Order_Shipped__e"
            assert requests.post(path, json={"Order_Number__c": number}, headers=key, timeout=60).status_code == 201
            client = Bayeux(service)
            client.connect()
            client.subscribe(replay=-2)
            return numbers(client.connect()[:-1])

        assert shown("old") == ["old"]
        service.memory_log.delete("Order_Shipped__e")
        service.run(service.memory_log.create("Order_Shipped__e", 3_600_000))
        service.server._ids._checked_ms.clear()
        wait_until(lambda: all(tail.ended for tail in service.server.bus._tails.values()), "the end of what was there")
        assert shown("new") == ["new"]


def test_a_session_without_a_connect_is_cleared_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    with EventsThread(tmp_path_factory.mktemp("sweep"), **{"cometd.max.interval.ms": 200}) as service:
        service.define()
        client = Bayeux(service)
        client.subscribe()
        _until(lambda: service.server._cometd.sessions == 0)
        assert service.server.bus.subscriptions == 0
        assert client.connect()[0]["error"] == "403::Unknown client"


def test_the_number_of_sessions_is_limited(tmp_path_factory: pytest.TempPathFactory) -> None:
    with EventsThread(tmp_path_factory.mktemp("limit"), **{"cometd.max.sessions": 2}) as service:
        assert [Bayeux(service).handshake["successful"] for _ in range(3)] == [True, True, False]


def test_unsubscribing_ends_delivery(service: EventsThread) -> None:
    client = Bayeux(service)
    client.connect()
    client.subscribe()
    unsubscribe = {"channel": "/meta/unsubscribe", "clientId": client.id, "subscription": CHANNEL}
    assert client.send(unsubscribe)[0]["successful"] is True
    publish(service, "u-1")
    assert len(client.connect(timeout_ms=0)) == 1
    assert client.send(unsubscribe)[0]["error"].startswith("404::")


def test_publishing_over_cometd_is_refused(service: EventsThread) -> None:
    client = Bayeux(service)
    (reply,) = client.send({"channel": CHANNEL, "clientId": client.id, "data": {"Order_Number__c": "x"}})
    assert reply["error"].startswith("403::Publishing over CometD is not offered")


def test_an_unsupported_version_is_refused(service: EventsThread) -> None:
    headers = {"Authorization": f"Bearer {service.token()}"}
    answer = requests.post(
        f"{service.url}/cometd/9.0/handshake", json=[{"channel": "/meta/handshake"}], headers=headers, timeout=60
    )
    assert answer.json()[0]["error"].startswith("400::")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
META = st.sampled_from(
    ["/meta/handshake", "/meta/connect", "/meta/subscribe", "/meta/unsubscribe", "/meta/disconnect", CHANNEL]
)
MESSAGE = st.fixed_dictionaries(
    {"channel": META | JSON},
    optional={
        "clientId": st.just("ID") | JSON,
        "id": JSON,
        "subscription": st.just(CHANNEL) | JSON,
        "ext": st.fixed_dictionaries({"replay": st.fixed_dictionaries({CHANNEL: JSON}) | JSON}) | JSON,
        "advice": st.fixed_dictionaries({"timeout": st.just(0)}),
        "connectionType": st.just("long-polling") | JSON,
        "supportedConnectionTypes": st.just(["long-polling"]) | JSON,
    },
)


@settings(max_examples=effort(80, 2400), deadline=None)
@given(body=st.binary(max_size=200) | JSON | MESSAGE | st.lists(MESSAGE, max_size=4))
def test_whatever_is_sent_is_answered_in_json(service: EventsThread, body: Any) -> None:
    client = Bayeux(service)
    raw = body if isinstance(body, bytes) else json.dumps(body).replace('"ID"', f'"{client.id}"').encode()
    for reply in client.send(raw=raw):
        assert isinstance(reply, dict)
        assert "Internal" not in str(reply.get("error", ""))
    after = Bayeux(service)
    assert after.handshake["successful"] is True
    for made in (client, after):
        made.send({"channel": "/meta/disconnect", "clientId": made.id})


def _client(service: EventsThread, client: Bayeux) -> Any:
    return service.server._cometd._clients[client.id]


def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)

    asyncio.run(poll())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "400::API version in the URI is mandatory. URI format: '/cometd/66.0'"),
        ("/handshake", "400::API version in the URI is mandatory. URI format: '/cometd/66.0'"),
        (
            "/20.0",
            "400::Unsupported API version. Only API versions '31.0' and later are supported. URI format: '/cometd/66.0'",
        ),
    ],
)
def test_a_path_without_a_known_version_is_refused(service: EventsThread, path: str, said: str) -> None:
    message = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}
    headers = {"Authorization": f"Bearer {service.token()}"}
    (reply,) = requests.post(f"{service.url}/cometd{path}", json=message, headers=headers, timeout=60).json()
    assert (reply["error"], reply["advice"]["reconnect"]) == (said, "none")


def test_a_request_without_a_token_is_told_that_it_needs_one(service: EventsThread) -> None:
    message = {"channel": "/meta/connect", "clientId": "x", "connectionType": "long-polling"}
    (reply,) = requests.post(f"{service.url}/cometd/60.0", json=message, timeout=60).json()
    assert (reply["error"], reply["advice"]["reconnect"]) == ("401::Request requires authentication", "none")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            {"channel": "/meta/subscribe", "subscription": "event/X__e"},
            "400::Channel subscriptions must start with a leading '/'",
        ),
        ({"channel": "/meta/subscribe"}, "400::Channel name not specified"),
        ({"channel": "/meta/connect", "connectionType": "websocket"}, "400::Invalid connection type {websocket}"),
    ],
)
def test_a_refusal_says_what_is_wrong(service: EventsThread, message: dict[str, Any], said: str) -> None:
    client = Bayeux(service)
    assert client.send(message | {"clientId": client.id})[0]["error"] == said


def _subscribe(client: Bayeux, extension: dict[str, Any]) -> list[str]:
    message = {"channel": "/meta/subscribe", "clientId": client.id, "subscription": CHANNEL, "ext": extension}
    (reply,) = client.send(message)
    if not reply["successful"]:
        return [reply["error"]]
    client.connect()
    return numbers([message_received for message_received in client.connect(300) if "data" in message_received])


def test_a_stale_replay_id_leads_where_the_subscriber_says(service: EventsThread) -> None:
    publish(service, "old-1", "old-2")
    for asked in (10**9, "not a number"):
        replay = {CHANNEL: asked}
        (refusal,) = _subscribe(Bayeux(service), {"replay": replay})
        assert refusal.startswith("400::The replayId {")
        client = Bayeux(service)
        forgiven = {"replay": replay, "tidegate": {"staleReplay": "earliest"}}
        message = {"channel": "/meta/subscribe", "clientId": client.id, "subscription": CHANNEL, "ext": forgiven}
        assert client.send(message)[0]["successful"]
        assert client.connect()[0]["data"]["event"]["replayId"] == 1
        assert _subscribe(Bayeux(service), {"replay": replay, "tidegate": {"staleReplay": "latest"}}) == []
    unknown = {"replay": {CHANNEL: -1}, "tidegate": {"staleReplay": "never"}}
    assert _subscribe(Bayeux(service), unknown)[0].startswith("400::ext.tidegate")


def test_events_are_replayed_from_a_time(service: EventsThread) -> None:
    publish(service, "before")
    records = service.memory_log.topics["Order_Shipped__e"]
    last = max(record.timestamp_ms for record in records if record is not None)
    while time.time() * 1000 <= last + 2:
        time.sleep(0.001)
    publish(service, "from-here", "and-on")
    for said in (last + 1, datetime.fromtimestamp((last + 1) / 1000, UTC).isoformat()):
        times = {"tidegate": {"replayFrom": {CHANNEL: said}}}
        client = Bayeux(service)
        message = {"channel": "/meta/subscribe", "clientId": client.id, "subscription": CHANNEL, "ext": times}
        assert client.send(message)[0]["successful"]
        assert numbers([message_received for message_received in client.connect() if "data" in message_received]) == [
            "from-here",
            "and-on",
        ]
    assert "cannot be read" in _subscribe(Bayeux(service), {"tidegate": {"replayFrom": {CHANNEL: "noon"}}})[0]
