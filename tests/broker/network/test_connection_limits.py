"""Limits on the number of connections and on the rate of new ones."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path

import pytest

from broker.network.connection_limits import ConnectionLimits
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings
from tests.support.wire import exchange, receive_frame

API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)
NO_LIMIT = (1 << 31) - 1


def limits(**overrides: object) -> ConnectionLimits:
    usual: dict[str, object] = {
        "most": NO_LIMIT,
        "most_by_listener": {"A": NO_LIMIT, "B": NO_LIMIT},
        "rate": NO_LIMIT,
        "rate_by_listener": {"A": NO_LIMIT, "B": NO_LIMIT},
        "most_per_address": NO_LIMIT,
        "most_by_address": {},
        "protected": None,
    }
    return ConnectionLimits(**{**usual, **overrides})  # type: ignore[arg-type]


def test_a_broker_is_full_for_all_listeners_but_the_protected_one() -> None:
    made = limits(most=2, protected="B")
    made.enter("A", "1.1.1.1")
    made.enter("A", "1.1.1.1")
    assert not made.has_room("A")
    assert made.has_room("B")
    made.enter("B", "1.1.1.1")
    assert made.is_over
    made.leave("A", "1.1.1.1")
    assert not made.is_over
    assert not made.has_room("A")
    made.leave("A", "1.1.1.1")
    assert made.has_room("A")


def test_the_only_listener_is_not_exempt_from_the_limit() -> None:
    made = limits(most=0, most_by_listener={"A": 9}, protected="A")
    assert not made.has_room("A")


def test_a_listener_has_a_limit_of_its_own() -> None:
    made = limits(most_by_listener={"A": 1, "B": NO_LIMIT})
    made.enter("A", "1.1.1.1")
    assert (made.has_room("A"), made.has_room("B")) == (False, True)


def test_an_address_has_a_limit_that_single_ones_override() -> None:
    made = limits(most_per_address=1, most_by_address={"127.0.0.1": 2, "no.such.host.invalid": 5})
    assert made.enter("A", "1.1.1.1") is None
    assert "max.connections.per.ip" in (made.enter("A", "1.1.1.1") or "")
    assert made.enter("A", "2.2.2.2") is None
    assert [made.enter("B", "127.0.0.1") is None for _ in range(3)] == [True, True, False]
    made.leave("A", "1.1.1.1")
    assert made.enter("B", "1.1.1.1") is None
    assert made.total == 4


def test_connections_that_come_too_fast_wait() -> None:
    made = limits(rate_by_listener={"A": 1, "B": NO_LIMIT})
    waits = [made.count_accepted("A") for _ in range(12)]
    assert waits[:10] == [0.0] * 10  # a burst of all windows but one
    assert 0 < waits[11] <= 1
    assert made.count_accepted("B") == 0


def test_more_connections_of_an_address_are_closed(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path) | {"max.connections.per.ip.overrides": "localhost:2"}
    with BrokerThread(broker_settings) as broker:
        address = ("127.0.0.1", broker.port)
        with socket.create_connection(address) as first, socket.create_connection(address) as two:
            assert exchange(first, API_VERSIONS)
            assert exchange(two, API_VERSIONS)
            with socket.create_connection(address) as three:
                assert receive_frame(three) == b""
        wait_until(lambda: not broker.server._connections, "the connections' end")
        with socket.create_connection(address) as four:
            assert exchange(four, API_VERSIONS)


def test_a_listener_for_brokers_takes_the_place_of_a_quiet_client(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path) | {
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": "1",
    }
    with BrokerThread(broker_settings) as broker:
        ports = {name: listener.port for name, listener in broker.server.broker.advertised.items()}
        with socket.create_connection(("127.0.0.1", ports["CLIENTS"])) as client:
            assert exchange(client, API_VERSIONS)
            with socket.create_connection(("127.0.0.1", ports["BROKERS"])) as other:
                assert exchange(other, API_VERSIONS)
                assert receive_frame(client) == b""


def test_a_rate_holds_up_those_who_come_and_nobody_else(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path) | {
        "listener.name.plaintext.max.connection.creation.rate": "100",
        "quota.window.num": "2",
    }
    with BrokerThread(broker_settings) as broker:
        address = ("127.0.0.1", broker.port)
        began = time.monotonic()
        for _ in range(130):
            with socket.create_connection(address) as sock:
                assert exchange(sock, API_VERSIONS)
        assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max.connections.per.ip.overrides", "localhost", "name:value"),
        ("max.connections.per.ip.overrides", "a:b", "number of connections"),
        ("listener.security.protocol.map", "A:TLS", "does not name one of PLAINTEXT"),
        ("listeners", "OTHER://127.0.0.1:0", "No security protocol defined for listener OTHER"),
        ("listeners", "PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:1", "must have a different name"),
        ("listeners", "SASL_PLAINTEXT://127.0.0.1:0", "offers GSSAPI, which is not served here"),
        ("controller.listener.names", "PLAINTEXT", "name one for clients"),
        ("listener.name.plaintext.max.connections", "many", r"listener\.name\.plaintext\.max\.connections"),
    ],
)
def test_settings_that_cannot_be_are_named(tmp_path: Path, name: str, value: str, told: str) -> None:
    from broker.server import serve
    from tidegate.kit.errors import ConfigError

    with pytest.raises(ConfigError, match=told):
        serve(settings(tmp_path) | {name: value})
