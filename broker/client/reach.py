"""The first connection to a cluster, with an error that says why it failed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Any, Final

import aiokafka.errors as library
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from broker.client.errors import NotReachable, translated

__all__ = ["closed", "first_answer", "first_connection"]

_TO_ITS_END_S: Final = 2.0
_FAREWELL_S: Final = 2.0
"""How long a broker may take to answer a TLS close."""


async def first_connection(connect: Coroutine[Any, Any, Any], bootstrap_servers: str) -> None:
    """Run aiokafka's first connection. A failure is raised as NotReachable, or as the broker's refusal, with the
    reason.

    aiokafka leaves a socket open if it is cancelled during bootstrap. So bootstrap runs to its end before the caller's
    cancellation continues.
    """
    connecting = asyncio.ensure_future(connect)
    try:
        await asyncio.shield(connecting)
    except asyncio.CancelledError:
        await asyncio.wait([connecting], timeout=_TO_ITS_END_S)
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        raise
    except (library.KafkaError, TimeoutError) as error:
        raise translated(error, f"connecting to {bootstrap_servers}") from error


async def first_answer(client: AIOKafkaClient) -> tuple[AIOKafkaConnection, Any]:
    """A connection to the first bootstrap address that answers a metadata request, and its answer.

    All connections made here are in ``client.closing``. Closing the client waits for them; waiting here would delay its
    start. Raises NotReachable or the broker's refusal for the first address that failed.
    """
    failures: list[BaseException] = []
    for host, port, _ in client.hosts:
        connection = _connection(client, host, port)
        client.closing.add(connection)
        try:
            await connection.connect()
            return connection, await connection.send(MetadataRequest([]))
        except library.BrokerResponseError as error:
            failures.append(translated(error, f"{host}:{port} refuses the connection"))
        except (OSError, library.KafkaError, TimeoutError) as error:
            told = f"no broker can be reached at {client._bootstrap_servers}: {error or type(error).__name__}"
            failures.append(NotReachable(told + _advice(error, client._security_protocol)))
        connection.close()
    raise failures[0] if failures else NotReachable("no address of a broker is given")


def _advice(error: BaseException, protocol: str) -> str:
    """Advice on the client's settings, for errors in which the broker cannot respond or closes the connection without one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "; ssl.truststore.location names the authorities that are trusted (commands: TIDEGATE_CA)"
    if isinstance(error, ssl.SSLError):
        return f"; security.protocol is {protocol}: does the broker take TLS there?"
    if isinstance(error, ConnectionResetError) or str(error).endswith(" closed"):
        return (
            f"; security.protocol is {protocol}: a broker hangs up on a client without the TLS or the login it asks for "
            "(commands: TIDEGATE_CA, TIDEGATE_USER and TIDEGATE_PASSWORD)"
        )
    return ""


def _connection(client: AIOKafkaClient, host: str, port: int) -> AIOKafkaConnection:
    return AIOKafkaConnection(
        host,
        port,
        client_id=client._client_id,
        request_timeout_ms=client._request_timeout_ms,
        ssl_context=client._ssl_context,
        security_protocol=client._security_protocol,
        max_idle_ms=client._connections_max_idle_ms,
        sasl_mechanism=client._sasl_mechanism,
        sasl_plain_username=client._sasl_plain_username,
        sasl_plain_password=client._sasl_plain_password,
        sasl_kerberos_service_name=client._sasl_kerberos_service_name,
        sasl_kerberos_domain_name=client._sasl_kerberos_domain_name,
        sasl_oauth_token_provider=client._sasl_oauth_token_provider,
    )


async def closed(*connections: AIOKafkaConnection) -> None:
    """Close connections and wait until their sockets are closed; with TLS that includes both close messages."""
    ends = []
    for connection in connections:
        end = connection.close()
        # a connection that was never made has an end that never comes
        if connection._protocol is not None and not end.done():
            ends.append(end)
    if ends:
        await asyncio.wait(ends, timeout=_FAREWELL_S)
