"""Connecting for the first time, and saying what is in the way when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import aiokafka.errors as library
from aiokafka.conn import collect_hosts, create_conn

from broker.client.errors import NotReachable, translated

__all__ = ["first_connection"]

_TO_ITS_END_S: Final = 2.0


async def first_connection(connect: Coroutine[Any, Any, Any], arguments: Mapping[str, Any]) -> None:
    """Run the library's first connection; a failure leaves as NotReachable, or as the broker's refusal, with the reason.

    The library only logs why an address failed, so the first one is tried once more to hear it. Cancelled amid its
    bootstrap it leaves a socket open, so it is let come to its end before the caller's cancellation goes on.
    """
    connecting = asyncio.ensure_future(connect)
    try:
        await asyncio.shield(connecting)
    except asyncio.CancelledError:
        await asyncio.wait([connecting], timeout=_TO_ITS_END_S)
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        raise
    except library.KafkaConnectionError as error:
        raise await _reason(arguments) or translated(error) from error
    except (library.KafkaError, TimeoutError) as error:
        raise translated(error, f"connecting to {arguments['bootstrap_servers']}") from error


async def _reason(arguments: Mapping[str, Any]) -> BaseException | None:
    options = {
        name: value
        for name, value in arguments.items()
        if name in ("client_id", "request_timeout_ms", "ssl_context") or name.startswith(("sasl_", "security_"))
    }
    host, port, _ = collect_hosts(arguments["bootstrap_servers"])[0]
    where = f"no broker can be reached at {arguments['bootstrap_servers']}"
    try:
        connection = await create_conn(host, port, **options)
    except library.BrokerResponseError as error:
        return translated(error, f"{host}:{port} refuses the connection")
    except (OSError, library.KafkaError) as error:
        return NotReachable(f"{where}: {error or type(error).__name__}")
    connection.close()
    return None
