"""Attacks on the Kafka protocol: frames that lie, logins that fail, and requests of a user who may write a few topics."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import random
import ssl
import struct
import uuid
from typing import Final

from broker.protocol.compression import Codec
from tests.hostile.siege import Attack, Target
from tests.proofs.fuzz.mutate import mutated
from tests.proofs.fuzz.requests import APIS, request
from tests.proofs.fuzz.values import Names
from tests.support.hostile import MANY, batch_of, many_records
from tests.support.wire import exchange, fetch_frame, produce_frame, receive_frame

__all__ = ["ATTACKS", "TOPIC", "log_in"]

TOPIC: Final = "mallory"
_API_VERSIONS, _METADATA, _HANDSHAKE, _AUTHENTICATE = 18, 3, 17, 36
_NAMES: Final = Names((TOPIC, "mallory-2", "witness"), (uuid.UUID(int=7),), groups=("mallory", "other"))


def _text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">h", len(data)) + data


def _frame(api: int, version: int, body: bytes = b"", *, correlation: int = 1) -> bytes:
    content = struct.pack(">hhi", api, version, correlation) + _text("x") + body
    return struct.pack(">i", len(content)) + content


def _authenticate(sock: ssl.SSLSocket, data: bytes) -> tuple[int, bytes]:
    """(error code, the server's message) of one step of a login."""
    sock.sendall(_frame(_AUTHENTICATE, 0, struct.pack(">i", len(data)) + data))
    answer = receive_frame(sock)
    if len(answer) < 8:
        return -1, b""
    (error,) = struct.unpack_from(">h", answer, 4)
    (length,) = struct.unpack_from(">h", answer, 6)
    at = 8 + max(length, 0)
    (size,) = struct.unpack_from(">i", answer, at)
    return error, answer[at + 4 : at + 4 + size]


def log_in(target: Target, user: str, password: str) -> ssl.SSLSocket | None:
    """A connection of a user (SCRAM-SHA-512, RFC 5802); None where the broker refuses."""
    sock = target.tls()
    try:
        if _prove(sock, user, password):
            return sock
    except BaseException:
        sock.close()
        raise
    sock.close()
    return None


def _prove(sock: ssl.SSLSocket, user: str, password: str) -> bool:
    sock.sendall(_frame(_HANDSHAKE, 1, _text("SCRAM-SHA-512")))
    receive_frame(sock)
    nonce = base64.b64encode(os.urandom(18)).decode()
    first = f"n={user},r={nonce}"
    error, answer = _authenticate(sock, f"n,,{first}".encode())
    if error:
        return False
    fields = dict(part.split("=", 1) for part in answer.decode().split(","))
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", "sha512")
    last = f"c=biws,r={fields['r']}"
    said = f"{first},{answer.decode()},{last}".encode()
    signature = hmac.digest(hashlib.sha512(key).digest(), said, "sha512")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    error, _ = _authenticate(sock, f"{last},p={proof}".encode())
    return not error


def _inside(target: Target) -> ssl.SSLSocket:
    sock = log_in(target, target.user, target.password)
    assert sock is not None, "the user with few rights cannot log in"
    sock.settimeout(30)
    return sock


def no_tls(target: Target) -> None:
    for data in (
        b"",
        _frame(_API_VERSIONS, 0),
        os.urandom(50_000),
        b"\x16\x03\x01\xff\xff" + bytes(100),
        b"\x16\x03\x01",
    ):
        sock = target.plain()
        target.leave_open(sock)
        sock.sendall(data)


def lying_frames(target: Target) -> None:
    for data in (
        b"",
        struct.pack(">i", 2**31 - 1) + bytes(100_000),
        struct.pack(">i", -1),
        struct.pack(">i", 104_857_600) + bytes(200_000),
        struct.pack(">i", 100) + bytes(50),
        bytes(100_000),
        os.urandom(100_000),
        _frame(_API_VERSIONS, 3)[:7],
        _frame(_API_VERSIONS, 32_767),
        _frame(-1, 0),
        _frame(32_767, 0),
    ):
        sock = target.tls()
        target.leave_open(sock)
        with contextlib.suppress(OSError):
            sock.sendall(data)


def requests_before_the_login(target: Target) -> None:
    for api in APIS:
        if api.key in (_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE):
            continue
        content = request(api, api.versions[-1], _NAMES, target.chance)
        with target.tls() as sock:
            sock.settimeout(5)
            answer = exchange(sock, content)
            assert not answer, f"{api.title} was answered before the login: {answer[:60]!r}"


def unread_answers(target: Target) -> None:
    sock = target.tls()
    target.leave_open(sock)
    sock.settimeout(1)
    sock.sendall(_frame(_API_VERSIONS, 0) * 20_000)


def odd_logins(target: Target) -> None:
    for mechanism in ("PLAIN", "GSSAPI", "OAUTHBEARER", "x" * 30_000, "", "SCRAM-SHA-512\0"):
        with target.tls() as sock:
            sock.settimeout(5)
            sock.sendall(_frame(_HANDSHAKE, 1, _text(mechanism)))
            receive_frame(sock)
            error, _ = _authenticate(sock, b"\0admin\0admin")
            assert error, f"{mechanism[:40]} let a stranger in"
    for first in (
        b"",
        b"n,,n=admin",
        b"n,,n=admin,r=",
        b"n,,n=" + b"a" * 200_000 + b",r=x",
        b"n,,n=a=2C=3Db,r=" + b"x" * 200_000,
        b"p=tls-unique,,n=admin,r=x",
        b"n,a=" + b"b" * 100_000 + b",n=admin,r=x",
        b"," * 200_000,
        b"\xff" * 1_000,
        b"n,,n=tidegate,r=x,tokenauth=true",
    ):
        with target.tls() as sock:
            sock.settimeout(5)
            sock.sendall(_frame(_HANDSHAKE, 1, _text("SCRAM-SHA-512")))
            receive_frame(sock)
            _authenticate(sock, first)
            error, _ = _authenticate(sock, b"c=biws,r=x,p=" + base64.b64encode(bytes(64)))
            assert error, f"{first[:40]!r} let a stranger in"


def guessed_passwords(target: Target) -> None:
    for user in ("admin", "tidegate", "nobody", target.user):
        assert log_in(target, user, f"{target.chance.random()}") is None


def many_connections(target: Target) -> None:
    for _ in range(100):
        target.leave_open(target.plain())
    for _ in range(10):
        target.leave_open(target.tls())


def packed_batches(target: Target) -> None:
    """A few KiB that stand for millions of records, or for none."""
    codec = target.chance.choice([codec for codec in Codec if codec is not Codec.NONE])
    with _inside(target) as sock:
        for records in (
            many_records(codec, MANY // 4),
            batch_of(bytes(50_000_000), 1, codec),
            batch_of(b"", 2**31 - 1, codec),
            batch_of(b"\xff" * 100_000, 1_000, codec),
            batch_of(b"\x02\0", 1, Codec.NONE) * 5_000,
        ):
            exchange(sock, produce_frame(TOPIC, 0, records))


def odd_fetches(target: Target) -> None:
    with _inside(target) as sock:
        for offset in (0, -1, 2**62):
            exchange(sock, fetch_frame(TOPIC, offset))
        partitions = struct.pack(">iiqqi", 0, -1, 0, -1, 1 << 30) * 20_000
        head = struct.pack(">iiiibii", -1, 0, 1, 1 << 30, 0, 0, -1)
        body = head + struct.pack(">i", 1) + _text(TOPIC) + struct.pack(">i", 20_000) + partitions
        exchange(sock, _frame(1, 11, body + struct.pack(">i", 0) + _text(""))[4:])


def large_requests(target: Target) -> None:
    names = b"".join(_text(f"mallory-{number}") for number in range(20_000))
    with _inside(target) as sock:
        exchange(sock, _frame(_METADATA, 4, struct.pack(">i", 20_000) + names + b"\0")[4:])
    with _inside(target) as sock:
        exchange(sock, _frame(_METADATA, 4, struct.pack(">i", 2**31 - 1) + names)[4:])
    with _inside(target) as sock:
        millions = _frame(_METADATA, 4, struct.pack(">i", 5_000_000) + bytes(10_000_000) + b"\0")
        assert not exchange(sock, millions[4:]), "a request of millions of entries was answered"
    with _inside(target) as sock:
        sock.settimeout(5)
        sock.sendall(_frame(_METADATA, 4, struct.pack(">i", -1) + b"\0") * 2_000)


def mutated_requests(target: Target) -> None:
    """The requests of the broker's fuzzer, as a user with few rights."""
    chance = random.Random(target.chance.random())
    for _ in range(10):
        with _inside(target) as sock:
            sock.settimeout(1)
            with contextlib.suppress(TimeoutError):
                for _ in range(10):
                    api, other = chance.choice(APIS), chance.choice(APIS)
                    content = request(api, chance.choice(api.versions), _NAMES, chance)
                    data, _ = mutated(content, request(other, other.versions[0], _NAMES, chance), chance)
                    sock.sendall(data)
                    if not receive_frame(sock):
                        break


def of_others(target: Target) -> None:
    """The user's records come into no topic of another, and the user sees none of its records."""
    with _inside(target) as sock:
        records = batch_of(b"\x0e\0\0\0\1\x02v\0", 1, Codec.NONE)
        answer = exchange(sock, produce_frame("witness", 0, records))
        (length,) = struct.unpack_from(">h", answer, 8)
        (error,) = struct.unpack_from(">h", answer, 10 + length + 8)
        assert error == 29, f"Produce to another's topic: error {error}"  # TOPIC_AUTHORIZATION_FAILED
        answer = exchange(sock, fetch_frame("witness", 0))
        assert len(answer) < 200, "records of another's topic were fetched"


ATTACKS: Final[list[Attack]] = [
    no_tls,
    lying_frames,
    requests_before_the_login,
    unread_answers,
    odd_logins,
    guessed_passwords,
    many_connections,
    packed_batches,
    odd_fetches,
    large_requests,
    mutated_requests,
    of_others,
]
