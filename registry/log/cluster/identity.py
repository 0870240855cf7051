"""The messages of registries in their group. They are Confluent's JSON, so that Confluent's and our registries can
share a group.

The protocol type is ``sr``, its only protocol ``v0``. A member's metadata is its identity. An assignment names the
writer (still "master" on Confluent's wire); all members get the same assignment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from tidegate.kit.errors import TidegateError

__all__ = ["DUPLICATE_URLS", "PROTOCOL", "PROTOCOL_TYPE", "Assignment", "Identity", "InvalidAssignment"]

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
DUPLICATE_URLS: Final = 1
"""Two members claim the same address, so clients could not be sent to the right one."""
_VERSION: Final = 1


class InvalidAssignment(TidegateError):
    """A member of the group sent invalid data."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The address of a registry for the others, and whether it may be elected."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True
    version: int = _VERSION

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def encode(self, *, leader: bool) -> bytes:
        """Metadata of a member; ``leader`` is whether it writes at the moment."""
        return _write(self._as_json(leader=leader))

    def _as_json(self, *, leader: bool) -> dict[str, Any]:
        return {
            "version": self.version,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "leader": leader,
        }

    @classmethod
    def decode(cls, data: bytes) -> tuple[Identity, bool]:
        """A member's identity, and whether it claims to write. Raises InvalidAssignment."""
        return _identity(_read(data))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The writer: its member id in the group and its identity; none if no member is eligible."""

    error: int = 0
    member_id: str | None = None
    leader: Identity | None = None

    def encode(self) -> bytes:
        value: dict[str, Any] = {"version": _VERSION, "error": self.error}
        if self.member_id:
            value["master"] = self.member_id
        if self.leader is not None:
            value["master_identity"] = self.leader._as_json(leader=False)
        return _write(value)

    @classmethod
    def decode(cls, data: bytes) -> Assignment:
        """Raises InvalidAssignment."""
        value = _read(data)
        error, member_id, leader = value.get("error", 0), value.get("master"), value.get("master_identity")
        if not isinstance(error, int) or not isinstance(member_id, str | None):
            raise InvalidAssignment(f"an assignment with error {error!r} and master {member_id!r}")
        return cls(error, member_id, None if leader is None else _identity(leader)[0])


def _identity(value: Any) -> tuple[Identity, bool]:
    if not isinstance(value, dict):
        raise InvalidAssignment(f"an identity that is no JSON object: {value!r}")
    host, port, scheme = value.get("host"), value.get("port"), value.get("scheme") or "http"
    eligible, version = value.get("master_eligibility"), value.get("version", _VERSION)
    named = isinstance(host, str) and host and isinstance(scheme, str) and isinstance(version, int)
    if not named or not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 1 << 16:
        raise InvalidAssignment(f"an identity without host and port: {json.dumps(value)[:200]}")
    return Identity(str(host), port, str(scheme), eligible is True, int(version)), value.get("leader") is True


def _write(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _read(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidAssignment(f"{data[:200]!r} is not JSON") from error
    if not isinstance(value, dict):
        raise InvalidAssignment(f"{data[:200]!r} is no JSON object")
    return value
