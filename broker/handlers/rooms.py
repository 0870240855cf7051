"""API families that few clients use. This table declares their versions. Their modules are imported with the first
request.

So a broker without share groups, streams groups, delegation tokens and client metrics does not load their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from broker.api.routes import DeferredRoute
from broker.protocol.api import ApiKey

__all__ = ["DEFERRED", "SERVED"]

_ROOMS: Final[Mapping[str, Mapping[ApiKey, range]]] = {
    "broker.handlers.share_fetch": {
        ApiKey.SHARE_FETCH: range(1, 3),
        ApiKey.SHARE_ACKNOWLEDGE: range(1, 3),
    },
    "broker.handlers.share_groups": {
        ApiKey.SHARE_GROUP_HEARTBEAT: range(1, 2),
        ApiKey.SHARE_GROUP_DESCRIBE: range(1, 2),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: range(1),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: range(1),
    },
    "broker.handlers.share_offsets": {
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: range(2),
    },
    "broker.handlers.share_state": {
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: range(1),
        ApiKey.WRITE_SHARE_GROUP_STATE: range(2),
        ApiKey.DELETE_SHARE_GROUP_STATE: range(1),
        ApiKey.READ_SHARE_GROUP_STATE: range(1),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: range(2),
    },
    "broker.handlers.streams_groups": {
        ApiKey.STREAMS_GROUP_HEARTBEAT: range(1),
        ApiKey.STREAMS_GROUP_DESCRIBE: range(1),
    },
    "broker.handlers.telemetry": {
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: range(1),
        ApiKey.PUSH_TELEMETRY: range(1),
    },
    "broker.handlers.tokens": {
        ApiKey.CREATE_DELEGATION_TOKEN: range(1, 4),
        ApiKey.RENEW_DELEGATION_TOKEN: range(1, 3),
        ApiKey.EXPIRE_DELEGATION_TOKEN: range(1, 3),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: range(1, 4),
    },
}

SERVED: Final = dict(chain.from_iterable(versions.items() for versions in _ROOMS.values()))
"""The served versions, by API."""

DEFERRED: Final = [
    DeferredRoute(key, versions, module) for module, served in _ROOMS.items() for key, versions in served.items()
]
