"""The gRPC listeners, with TLS and plain, in front of the Pub/Sub API."""

from __future__ import annotations

from typing import Final

import grpc
from grpc import aio

from events.fronts.pubsub.service import MAX_REQUEST_BYTES, PubSubFront
from tidegate.kit.certificates import TlsFiles
from tidegate.kit.errors import UsageError

__all__ = ["GrpcServer"]

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 60_000),  # a client that vanished without a word is noticed
    ("grpc.keepalive_timeout_ms", 20_000),
)


class GrpcServer:
    """One gRPC server on two addresses. ``start`` returns them with the real ports."""

    def __init__(self, front: PubSubFront, *, grace_s: float = 1) -> None:
        self._front, self._grace_s = front, grace_s
        self._server: aio.Server | None = None

    async def start(self, secure: tuple[str, int], plain: tuple[str, int], tls: TlsFiles) -> tuple[str, str]:
        """Raises UsageError when an address cannot be had."""
        server = aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((self._front.handler(),))
        pair = (tls.private_key.read_bytes(), tls.certificate.read_bytes())
        credentials = grpc.ssl_server_credentials([pair])
        bound = []
        for (host, port), secret in ((secure, True), (plain, False)):
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            try:
                real = server.add_secure_port(address, credentials) if secret else server.add_insecure_port(address)
            except RuntimeError as error:
                raise UsageError(f"cannot listen on {address} for gRPC; choose another address") from error
            bound.append(f"{address.rpartition(':')[0]}:{real}")
        await server.start()
        self._server = server
        return bound[0], bound[1]

    async def stop(self) -> None:
        """Take no more calls; streams have a moment to end and are then cut off."""
        if self._server is not None:
            await self._server.stop(self._grace_s)
