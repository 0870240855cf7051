"""SASL on the wire: requests allowed before authentication, refusals, and re-authentication."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import struct
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.broker.security.conftest import PASSWORD, USER, Doors, Issuer, doors_settings, unsecured
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread
from tests.support.certificates import Authority
from tests.support.wire import exchange, receive_frame

NONE, UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 0, 33, 34, 58
API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)
METADATA = struct.pack(">hhihi", 3, 1, 7, -1, -1)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">h", len(data)) + data


def handshake(mechanism: str, version: int = 1) -> bytes:
    return struct.pack(">hhih", 17, version, 7, -1) + text(mechanism)


def authenticate(message: bytes, version: int = 1) -> bytes:
    return struct.pack(">hhih", 36, version, 7, -1) + struct.pack(">i", len(message)) + message


def answered(frame: bytes) -> tuple[int, str, bytes, int]:
    """(error, message, challenge, session lifetime) of a SaslAuthenticate answer of version 1."""
    error, size = struct.unpack_from(">hh", frame, 4)
    at = 8 + max(size, 0)
    (length,) = struct.unpack_from(">i", frame, at)
    (lifetime,) = struct.unpack_from(">q", frame, at + 4 + length)
    return error, frame[8:at].decode(), frame[at + 4 : at + 4 + length], lifetime


def plain(user: str, password: str, authzid: str = "") -> bytes:
    return f"{authzid}\0{user}\0{password}".encode()


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def connect(doors: Doors, listener: str = "SASL_PLAINTEXT") -> socket.socket:
    return socket.create_connection(("127.0.0.1", doors.port(listener)), 10)


def log_in(sock: socket.socket, mechanism: str, message: bytes) -> tuple[int, str, bytes, int]:
    assert struct.unpack_from(">h", exchange(sock, handshake(mechanism)), 4) == (NONE,)
    return answered(exchange(sock, authenticate(message)))


def test_other_requests_are_refused_before_authentication(doors: Doors) -> None:
    for frame in (
        METADATA,
        struct.pack(">hhih", 0, 7, 1, -1),
        authenticate(plain(USER, PASSWORD)),
        b"",
        b"\x60garbage",
    ):
        with connect(doors) as sock:
            assert exchange(sock, frame) == b""
    with connect(doors) as sock:
        assert exchange(sock, API_VERSIONS)
        assert exchange(sock, METADATA) == b""
    with connect(doors) as sock:
        assert exchange(sock, API_VERSIONS)
        assert exchange(sock, API_VERSIONS) == b""


def test_an_unknown_version_of_api_versions_leaves_room_for_another(doors: Doors) -> None:
    with connect(doors) as sock:
        assert struct.unpack_from(">h", exchange(sock, struct.pack(">hhih", 18, 99, 7, -1)), 4) == (35,)
        assert struct.unpack_from(">h", exchange(sock, API_VERSIONS), 4) == (NONE,)
        assert log_in(sock, "PLAIN", plain(USER, PASSWORD))[0] == NONE
        assert exchange(sock, METADATA)


def test_another_mechanism_is_refused_with_those_there_are(doors: Doors) -> None:
    with connect(doors) as sock:
        answer = exchange(sock, handshake("GSSAPI"))
        assert struct.unpack_from(">h", answer, 4) == (UNSUPPORTED_MECHANISM,)
        assert b"SCRAM-SHA-512" in answer
        assert receive_frame(sock) == b""


def test_a_request_during_authentication_is_an_illegal_state(doors: Doors) -> None:
    with connect(doors) as sock:
        exchange(sock, handshake("PLAIN"))
        assert struct.unpack_from(">h", exchange(sock, API_VERSIONS), 4) == (ILLEGAL_STATE,)
        assert receive_frame(sock) == b""


def test_clients_of_kafka_0_10_send_bare_messages(doors: Doors) -> None:
    with connect(doors) as sock:
        assert struct.unpack_from(">h", exchange(sock, handshake("PLAIN", 0)), 4) == (NONE,)
        message = plain(USER, PASSWORD)
        sock.sendall(struct.pack(">i", len(message)) + message + struct.pack(">i", len(METADATA)) + METADATA)
        head = sock.recv(4, socket.MSG_WAITALL)
        assert head == b"\0\0\0\0"  # an empty challenge is all there is to say
        assert struct.unpack_from(">i", receive_frame(sock)) == (7,)
    with connect(doors) as sock:
        exchange(sock, handshake("PLAIN", 0))
        assert exchange(sock, plain(USER, "wrong")) == b""


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (plain(USER, "wrong"), "Invalid username or password"),
        (plain("nobody", "wrong"), "Invalid username or password"),
        (plain(USER, PASSWORD, "bob"), "authorization id"),
        (plain(USER, ""), "password not specified"),
        (plain("", "x"), "username not specified"),
        (b"x", "expected 3 tokens"),
    ],
)
def test_plain_says_why_not(doors: Doors, message: bytes, told: str) -> None:
    with connect(doors) as sock:
        error, why, challenge, _ = log_in(sock, "PLAIN", message)
        assert (error, challenge) == (FAILED, b"")
        assert told in why
        assert receive_frame(sock) == b""


def scram(sock: socket.socket, user: str, password: str, *, extra: str = "") -> tuple[int, str, bytes, int]:
    """Log in by SCRAM-SHA-256; the answer to the proof."""
    first = f"n={user},r=abcdef{extra}"
    error, why, challenge, _ = log_in(sock, "SCRAM-SHA-256", f"n,,{first}".encode())
    assert (error, why) == (NONE, "")
    fields = dict(field.split("=", 1) for field in challenge.decode().split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c=biws,r={fields['r']}"
    signature = hmac.digest(
        hashlib.sha256(client_key).digest(), f"{first},{challenge.decode()},{final}".encode(), "sha256"
    )
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    return answered(exchange(sock, authenticate(f"{final},p={proof}".encode())))


def test_an_unknown_user_looks_like_one_with_another_password(doors: Doors) -> None:
    answers = []
    for user in (USER, "nobody", "nobody"):
        with connect(doors) as sock:
            answers.append(scram(sock, user, "wrong"))
            assert receive_frame(sock) == b""
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == FAILED
    salts = []
    for _ in range(2):
        with connect(doors) as sock:
            _, _, challenge, _ = log_in(sock, "SCRAM-SHA-256", b"n,,n=nobody,r=abcdef")
            salts.append(challenge.split(b",")[1:])
    assert salts[0] == salts[1]
    with connect(doors) as sock:
        assert scram(sock, USER, PASSWORD)[0] == NONE


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,n=a", b"y,,n=a,r=b", b"n,,n=,r=b", b"n,,n=a=b,r=c", b"\xff", b"n,a=bob,n=alice,r=abcdef", b"p=x"],
)
def test_scram_takes_no_other_messages(doors: Doors, message: bytes) -> None:
    with connect(doors) as sock:
        assert log_in(sock, "SCRAM-SHA-256", message)[0] == FAILED
        assert receive_frame(sock) == b""


def test_a_token_that_is_refused_is_told_as_json_first(doors: Doors) -> None:
    with connect(doors) as sock:
        error, _, challenge, _ = log_in(sock, "OAUTHBEARER", bearer(unsecured(exp=time.time() - 1)))
        assert (error, challenge) == (NONE, b'{"status":"invalid_token"}')
        error, why, _, _ = answered(exchange(sock, authenticate(b"\x01")))
        assert (error, why) == (FAILED, '{"status":"invalid_token"}')
        assert receive_frame(sock) == b""


def test_a_session_lasts_as_long_as_the_token(doors: Doors) -> None:
    with connect(doors) as sock:
        error, _, _, lifetime = log_in(sock, "OAUTHBEARER", bearer(unsecured(exp=int(time.time()) + 100)))
        assert error == NONE
        assert 90_000 < lifetime <= 100_000
        assert exchange(sock, METADATA)


@pytest.mark.parametrize(
    ("claims", "header"),
    [
        ({"aud": "other"}, {}),
        ({"aud": None}, {}),
        ({"iss": "https://other"}, {}),
        ({"exp": 1}, {}),
        ({"iat": None}, {}),
        ({"nbf": 1e10}, {}),
        ({"sub": " "}, {}),
        ({"sub": 5}, {}),
        ({"scope": ["a", "a"]}, {}),
        ({"scope": {}}, {}),
        ({}, {"kid": "k2"}),
        ({}, {"alg": "none"}),
        ({}, {"alg": "HS256"}),
        ({}, {"alg": "RS512"}),
    ],
)
def test_a_signed_token_is_refused_for(doors: Doors, claims: dict[str, Any], header: dict[str, Any]) -> None:
    right: dict[str, Any] = {"aud": ["x", "kafka"], "iss": "https://issuer"}
    with connect(doors, "SIGNED") as sock:
        token = doors.issuer.token(header=header, **{**right, **claims})
        assert log_in(sock, "OAUTHBEARER", bearer(token))[2] == b'{"status":"invalid_token"}'
    with connect(doors, "SIGNED") as sock:
        good = doors.issuer.token(**right, scope=["a", "b"])
        assert log_in(sock, "OAUTHBEARER", bearer(good))[:3] == (NONE, "", b"")
        assert exchange(sock, METADATA)
    with connect(doors, "SIGNED") as sock:
        head, _, signature = good.rpartition(".")
        forged = f"{head}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}" if not claims else f"{head}."
        assert log_in(sock, "OAUTHBEARER", bearer(forged))[2] == b'{"status":"invalid_token"}'


def test_large_requests_are_refused_before_authentication_only(doors: Doors) -> None:
    with connect(doors) as sock:
        sock.sendall(struct.pack(">i", 524_289))
        assert receive_frame(sock) == b""
    with connect(doors) as sock:
        long = plain(USER, "x" * 300_000)
        assert log_in(sock, "PLAIN", long)[0] == FAILED
    with connect(doors) as sock:
        assert log_in(sock, "PLAIN", plain(USER, PASSWORD))[0] == NONE
        assert exchange(sock, METADATA + b"\0" * 1_000_000)


def test_requests_may_follow_the_last_message_at_once(doors: Doors) -> None:
    with connect(doors) as sock:
        exchange(sock, handshake("PLAIN"))
        frames = [authenticate(plain(USER, PASSWORD)), METADATA, METADATA + b"\0" * 100_000]
        sock.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
        assert answered(receive_frame(sock))[0] == NONE
        assert len(receive_frame(sock)) == len(receive_frame(sock)) > 20


def test_authentication_is_over_when_it_is_over(doors: Doors) -> None:
    with connect(doors) as sock:
        log_in(sock, "PLAIN", plain(USER, PASSWORD))
        assert struct.unpack_from(">h", exchange(sock, handshake("PLAIN")), 4) == (ILLEGAL_STATE,)
        assert struct.unpack_from(">h", exchange(sock, authenticate(b"")), 4) == (ILLEGAL_STATE,)
    with socket.create_connection(("127.0.0.1", doors.port("PLAINTEXT"))) as sock:
        assert struct.unpack_from(">h", exchange(sock, handshake("PLAIN")), 4) == (ILLEGAL_STATE,)


def test_authentications_are_counted(doors: Doors) -> None:
    def counted(outcome: str) -> float:
        with urllib.request.urlopen(doors.broker.addresses["broker-metrics"], timeout=60) as answer:
            text = answer.read().decode()
        name = f"kafka_server_socketservermetrics_{outcome}_authentication_total"
        (line,) = (line for line in text.splitlines() if line.startswith(name + '{listener="SASL_PLAINTEXT"'))
        return float(line.rpartition(" ")[2])

    before = counted("successful"), counted("failed")
    with connect(doors) as sock:
        log_in(sock, "PLAIN", plain(USER, PASSWORD))
        assert counted("successful") >= before[0] + 1
    with connect(doors) as sock:
        log_in(sock, "PLAIN", plain(USER, "wrong"))
        assert receive_frame(sock) == b""
    wait_until(lambda: counted("failed") >= before[1] + 1, "the failure's count")


@pytest.fixture(scope="module")
def short_sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("short")
    authority, issuer = Authority(directory / "authority"), Issuer(directory)
    more = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "300"}
    with BrokerThread(doors_settings(directory / "data", authority, issuer, **more)) as broker:
        yield Doors(broker, authority, issuer, directory)


class Clock:
    """Stands in for the module ``time`` where sessions are judged."""

    time_ns = staticmethod(time.time_ns)

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("broker.network.sasl_authenticator.time", made)
    return made


def test_a_session_that_ended_takes_no_requests(short_sessions: Doors, clock: Clock) -> None:
    with connect(short_sessions) as sock:
        assert log_in(sock, "PLAIN", plain(USER, PASSWORD))[3] == 300
        clock.now_s += 0.3
        assert exchange(sock, METADATA)
        clock.now_s += 0.01
        assert exchange(sock, METADATA) == b""


def test_a_client_authenticates_again_and_goes_on(short_sessions: Doors, clock: Clock) -> None:
    with connect(short_sessions) as sock:
        assert log_in(sock, "PLAIN", plain(USER, PASSWORD))[3] == 300
        clock.now_s += 0.35
        assert log_in(sock, "PLAIN", plain(USER, PASSWORD))[0] == NONE
        assert exchange(sock, METADATA)
        # Not twice within a second: the handshake is a request like others then.
        assert struct.unpack_from(">h", exchange(sock, handshake("PLAIN")), 4) == (ILLEGAL_STATE,)


def test_a_client_stays_who_it_is(short_sessions: Doors) -> None:
    with connect(short_sessions) as sock:
        log_in(sock, "PLAIN", plain(USER, PASSWORD))
        error, why, _, _ = log_in(sock, "PLAIN", plain("bob", "bob's"))
        assert (error, why) == (FAILED, "Cannot change principals during re-authentication from User.alice: User.bob")
        assert receive_frame(sock) == b""
    with connect(short_sessions) as sock:
        log_in(sock, "PLAIN", plain(USER, PASSWORD))
        error, why, _, _ = log_in(sock, "SCRAM-SHA-256", b"n,,n=alice,r=x")
        assert error == FAILED
        assert "not supported for re-authentication" in why


def test_a_connection_that_does_not_authenticate_is_closed(doors: Doors, tmp_path: Path) -> None:
    impatient = doors_settings(
        tmp_path, doors.authority, doors.issuer, **{"connections.authentication.timeout.ms": "200"}
    )
    with BrokerThread(impatient) as broker:
        renewed = replace(doors, broker=broker)
        sockets = [connect(renewed, listener) for listener in ("SASL_PLAINTEXT", "SSL", "SASL_SSL")]
        with socket.create_connection(("127.0.0.1", renewed.port("PLAINTEXT"))) as bystander:
            for sock in sockets:
                assert receive_frame(sock) == b""
                sock.close()
            assert exchange(bystander, METADATA)


FRAMES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "x"]).flatmap(
        lambda name: st.integers(0, 2).map(lambda version: handshake(name, version))
    ),
    st.binary(max_size=60).map(authenticate),
    st.sampled_from(
        [API_VERSIONS, METADATA, authenticate(b"n,,n=alice,r=x"), authenticate(b"\x01"), authenticate(bearer("a.b."))]
    ),
    st.tuples(st.sampled_from([17, 18, 36]), st.integers(-1, 9), st.binary(max_size=40)).map(
        lambda made: struct.pack(">hhih", made[0], made[1], 7, -1) + made[2]
    ),
)


@given(st.lists(FRAMES, min_size=1, max_size=6))
@hypothesis_settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_no_sequence_of_frames_lets_a_stranger_in(doors: Doors, frames: list[bytes]) -> None:
    with connect(doors) as sock:
        try:
            for frame in [*frames, METADATA]:
                sock.sendall(struct.pack(">i", len(frame)) + frame)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            return
        received = b""
        while part := _receive(sock):
            received += part
        assert b"127.0.0.1" not in received  # what Metadata would have told


def _receive(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65536)
    except ConnectionResetError:
        return b""
