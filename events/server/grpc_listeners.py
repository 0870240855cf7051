"""The gRPC listeners of the Pub/Sub API, with TLS and plain."""

from __future__ import annotations

import ssl
from typing import Any, Final

import grpc
from grpc import aio

from events.fronts.pubsub.service import MAX_REQUEST_BYTES, PubSubFront
from tidegate.kit.certificates import TlsFiles
from tidegate.kit.errors import UsageError
from tidegate.kit.logs import get_logger

__all__ = ["GrpcServer"]

logger = get_logger(__name__)

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 60_000),  # detect clients that vanish silently
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.max_concurrent_streams", 1000),  # per connection, as in Salesforce
    # Calls that wait for their turn. Above 1,000 gRPC refuses some of all clients, and a single connection can open and
    # reset that many in a moment (CVE-2023-44487).
    ("grpc.server.max_pending_requests", 10_000),
    ("grpc.server.max_pending_requests_hard_limit", 20_000),
    # Time without a call. gRPC keeps the headers of a call that never finishes them, megabytes, as long as the
    # connection lives.
    ("grpc.max_connection_idle_ms", 20_000),
)


class GrpcServer:
    """One gRPC server, on an address with TLS and maybe a plain one. ``start`` returns them with the real ports."""

    def __init__(self, front: PubSubFront, *, grace_s: float = 1) -> None:
        self._front, self._grace_s = front, grace_s
        self._server: aio.Server | None = None

    async def start(
        self, secure: tuple[str, int], plain: tuple[str, int] | None, tls: TlsFiles
    ) -> tuple[str, str | None]:
        """Raises UsageError when an address cannot be had."""
        server = aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((self._front.handler(),))
        secure_address = _listen(server, secure, _credentials(tls))
        plain_address = _listen(server, plain, None) if plain is not None else None
        await server.start()
        self._server = server
        return secure_address, plain_address

    async def stop(self) -> None:
        """Accept no more calls; streams have a moment to end and are then cut off."""
        if self._server is not None:
            await self._server.stop(self._grace_s)


def _listen(server: aio.Server, wish: tuple[str, int], credentials: grpc.ServerCredentials | None) -> str:
    """The real address; without credentials it is plain."""
    host, port = wish
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        real = (
            server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
        )
    except RuntimeError as error:
        raise UsageError(f"cannot listen on {address} for gRPC; choose another address") from error
    return f"{address.rpartition(':')[0]}:{real}"


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    """Fetched at each handshake, so that new connections use a changed certificate."""
    stamp, configuration = _stamp(tls), _configuration(tls)

    def current() -> Any:
        """The configuration if it has changed, otherwise None."""
        nonlocal stamp
        try:
            now = _stamp(tls)
            if now == stamp:
                return None
            made = _configuration(tls)
        except (OSError, ValueError) as error:  # half of a new pair exists: keep the old one
            logger.warning("the certificate of the Pub/Sub API cannot be read again", reason=str(error))
            return None
        stamp = now
        logger.info("the Pub/Sub API has a new certificate")
        return made

    return grpc.dynamic_ssl_server_credentials(configuration, current, require_client_authentication=False)


def _stamp(tls: TlsFiles) -> tuple[tuple[int, int, int], ...]:
    files = [path.stat() for path in (tls.private_key, tls.certificate)]
    return tuple((file.st_mtime_ns, file.st_size, file.st_ino) for file in files)


def _configuration(tls: TlsFiles) -> Any:
    """Raises ValueError if key and certificate do not match: gRPC would refuse every connection."""
    pair = (tls.private_key.read_bytes(), tls.certificate.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.private_key)
    except ssl.SSLError as error:
        raise ValueError(f"{tls.certificate} and {tls.private_key} do not fit: {error}") from error
    return grpc.ssl_server_certificate_configuration([pair])
