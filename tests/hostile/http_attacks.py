"""Attacks that any HTTP face has to bear, from clients without credentials."""

from __future__ import annotations

import base64
import gzip
import json
import os
from typing import Final

import requests

from tests.hostile.siege import Attack, Target, statuses

__all__ = ["OUTSIDERS", "ask"]

_CRLF: Final = b"\r\n"


def _head(target: Target, *headers: str, method: str = "GET", path: str | None = None) -> bytes:
    lines = [f"{method} {path or target.public} HTTP/1.1", f"Host: {target.address}", *headers]
    return "\r\n".join(lines).encode("latin-1") + 2 * _CRLF


def _refused(target: Target, data: bytes) -> None:
    """Nobody gets in: each answer is a refusal."""
    answer = target.say(data)
    let_in = [status for status in statuses(answer) if status < 400 or status == 500]
    assert not let_in, f"{data[:200]!r} was answered {answer[:300]!r}"


def half_heads(target: Target) -> None:
    for _ in range(20):
        sock = target.tls()
        target.leave_open(sock)
        sock.sendall(_head(target)[:-6])


def half_bodies(target: Target) -> None:
    for size in (1_000, 30_000_000, 10**12):
        sock = target.tls()
        target.leave_open(sock)
        sock.sendall(_head(target, f"Content-Length: {size}", "Content-Type: application/json", method="POST"))
        sock.sendall(b"[" * 500)


def trickled_heads(target: Target) -> None:
    sock = target.tls()
    target.leave_open(sock)
    for byte in _head(target)[:40]:
        sock.sendall(bytes([byte]))


def pipelined_heads(target: Target) -> None:
    _refused(target, _head(target) * 2_000)
    sock = target.tls()  # who sends and does not read
    target.leave_open(sock)
    sock.settimeout(1)
    sock.sendall(_head(target) * 2_000)


def huge_headers(target: Target) -> None:
    _refused(target, _head(target, "X: " + "x" * 1_000_000))
    _refused(target, _head(target, *(f"X-{number}: y" for number in range(20_000))))
    _refused(target, b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    _refused(target, _head(target, "Cookie: " + "a=b; " * 10_000))


def bodies_of_doubtful_length(target: Target) -> None:
    chunked, long = "Transfer-Encoding: chunked", "Content-Length: 5"
    for headers, body in (
        ((chunked, long), b"0\r\n\r\nGET " + target.public.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        ((chunked,), b"f" * 20 + b"\r\n"),
        ((chunked,), b"-1\r\n\r\n"),
        ((chunked,), b"1;" + b"x" * 100_000 + b"\r\na\r\n0\r\n\r\n"),
        ((chunked,), b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n"),
        (("Content-Length: -1",), b"x"),
        (("Content-Length: 1", "Content-Length: 2"), b"xx"),
        (("Content-Length: 99999999999999999999999",), b"x"),
        (("Transfer-Encoding: gzip, chunked",), b"0\r\n\r\n"),
        (("Transfer-Encoding : chunked",), b"0\r\n\r\n"),
        ((), b""),
    ):
        _refused(target, _head(target, "Content-Type: application/json", *headers, method="POST") + body)


def no_http(target: Target) -> None:
    for data in (
        os.urandom(100_000),
        b"\r\n" * 100_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9 * 1_000,
        b"GET  /\x00 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00" + b"\0" * 512,
        b"M" * 100_000,
        _head(target, method="A" * 60_000),
        _head(target, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: eA=="),
        _head(target, "Expect: 100-continue", "Content-Length: 10", method="POST"),
    ):
        answer = target.say(data)
        assert not [status for status in statuses(answer) if 200 <= status < 300], f"{data[:60]!r}: {answer[:300]!r}"


def no_tls(target: Target) -> None:
    for data in (b"", _head(target), os.urandom(20_000), b"\x16\x03\x01\xff\xff" + b"\0" * 100, b"\x16\x03\x01"):
        sock = target.plain()
        target.leave_open(sock)
        sock.sendall(data)
    sock = target.plain()
    sock.sendall(_head(target))
    sock.settimeout(2)
    try:
        assert not sock.recv(1000).startswith(b"HTTP/")
    finally:
        sock.close()


def foreign_sites(target: Target) -> None:
    for host in ("evil.example", "x/metrics?", "a@b", "x y", "", "[::1", "a" * 50_000, "localhost:99999999"):
        for path in (target.public, "/", "/nowhere"):
            _refused(target, f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode())
    for origin in ("https://evil.example", "null", "file://", "https://" + "a" * 50_000):
        _refused(target, _head(target, f"Origin: {origin}", "Content-Length: 0", method="POST"))


def odd_paths(target: Target) -> None:
    path = target.public
    for odd in (
        f"/{path}",
        f"{path}/../{path[1:]}",
        f"{path}%2f..%2f",
        f"/.{path}",
        f"/%2e{path}",
        f"{path};a=b",
        f"{path}%00",
        f"{path}\\..\\x",
        path.replace("s", "%73"),
        f"http://evil.example{path}",
        "/" + "a/" * 20_000,
        f"{path}?" + "a=b&" * 10_000,
        f"{path}?" + "%" * 10_000,
        "*",
        f"{path}/" + "%F0%28%8C%BC" * 100,
    ):
        answer = target.say(_head(target, path=odd))
        assert all(status >= 400 and status != 500 for status in statuses(answer)), f"{odd[:80]}: {answer[:300]!r}"


def odd_credentials(target: Target) -> None:
    def basic(text: bytes) -> str:
        return "Basic " + base64.b64encode(text).decode()

    for header in (
        "Basic",
        "Basic " + "A" * 50_000,
        "Basic " + "=" * 1_000,
        basic(b"\xff\xfe:\xff"),
        basic(b"admin"),
        basic(b"admin:"),
        basic(b":"),
        basic(b"admin\0:x"),
        basic(b"a" * 20_000 + b":" + b"b" * 20_000),
        "Bearer " + ".".join(["eyJhbGciOiJub25lIn0"] * 3),
        "Bearer " + "a" * 50_000,
        "OAuth " + "." * 50_000,
        "Digest username=admin",
        "Negotiate YII=",
        "Basic YTpi, Basic YTpi",
        "\x80\xff",
    ):
        _refused(target, _head(target, f"Authorization: {header}"))


def guessed_passwords(target: Target) -> None:
    """Each takes as long as a password is slow to guess."""
    login = base64.b64encode(f"admin:{target.chance.random()}".encode()).decode()
    _refused(target, _head(target, f"Authorization: Basic {login}") * 10)


def packed_bodies(target: Target) -> None:
    packed = gzip.compress(bytes(30_000_000))
    for encoding in ("gzip", "deflate", "br", "gzip, gzip"):
        headers = (f"Content-Encoding: {encoding}", f"Content-Length: {len(packed)}", "Content-Type: application/json")
        _refused(target, _head(target, *headers, method="POST") + packed)


def large_bodies(target: Target) -> None:
    """A client with wrong credentials is refused before its body is read."""
    data = b'{"a":' * 400_000
    for kind in ("application/json", "application/xml", "text/plain; charset=" + "x" * 1_000, "multipart/form-data"):
        headers = (f"Content-Type: {kind}", f"Content-Length: {len(data)}")
        _refused(target, _head(target, *headers, method="POST") + data)


def many_connections(target: Target) -> None:
    for _ in range(100):
        sock = target.plain()
        target.leave_open(sock)
    for _ in range(20):
        sock = target.tls()
        target.leave_open(sock)


OUTSIDERS: Final[list[Attack]] = [
    half_heads,
    half_bodies,
    trickled_heads,
    pipelined_heads,
    huge_headers,
    bodies_of_doubtful_length,
    no_http,
    no_tls,
    foreign_sites,
    odd_paths,
    odd_credentials,
    guessed_passwords,
    packed_bodies,
    large_bodies,
    many_connections,
]


def ask(
    target: Target,
    method: str,
    path: str,
    body: object = None,
    *,
    kind: str = "application/json",
    may_fail: bool = False,
    login: bool = True,
    **headers: str,
) -> requests.Response | None:
    """A request of the user with few rights: refused or answered, but never an unforeseen error; None where the face hung up."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    named = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    with requests.Session() as session:
        session.trust_env, session.verify = False, target.ca
        auth = None
        if target.token and login:
            named["Authorization"] = f"Bearer {target.token}"
        elif login:
            auth = (target.user, target.password)
        url = f"https://{target.address}{path}"
        try:
            answer = session.request(method, url, data=data, headers=named, auth=auth, timeout=60)
        except requests.Timeout:
            raise AssertionError(f"{method} {path[:80]} was not answered within 60 s") from None
        except requests.RequestException:
            return None
    # Confluent's API has code 50002 with 500 for a write that took longer than kafkastore.timeout.ms, as one of a besieged registry may.
    may_fail = may_fail or '"error_code":50002' in answer.text
    assert answer.status_code != 500 or may_fail, f"{method} {path[:80]} {(data or b'')[:120]!r}: {answer.text[:300]}"
    return answer
