"""The authentication of clients on SASL listeners, and their reauthentication (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from broker.api.connection import ConnectionRefusal
from broker.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from broker.network.connection import Connection, FrameHandler
from broker.protocol.api import ApiKey, RequestHeader, begin_response, peek_request, read_request_header
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Request, Response
from broker.security.principal import Principal
from broker.security.sasl.mechanism import Identity, InvalidCredentials, Mechanism, Rejected

__all__ = ["Requests", "SaslAuthenticator", "SaslListener"]

_SIZE: Final = Struct(">i")
_HANDSHAKE_VERSIONS: Final = range(2)
_AUTHENTICATE_VERSIONS: Final = range(3)
_AGAIN_AFTER_S: Final = 1
"""The shortest interval at which a client may reauthenticate."""
_SASL_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")


class Requests(Protocol):
    """The broker behind the listener: handles frames, and creates the answer to a failed one."""

    def __call__(self, connection: Connection, frame: memoryview) -> None: ...

    def serves(self, key: int, version: int) -> bool: ...

    def failure(self, frame: memoryview, error: IllegalSaslState) -> Sequence[Any]:
        """Raises ConnectionRefusal if the request has no field for an error."""
        ...


class SaslListener(NamedTuple):
    """The settings shared by all authentications on one listener."""

    mechanisms: Mapping[str, Callable[[], Mechanism]]
    """Starts an authentication, by the mechanism's name."""
    max_session_ms: Mapping[str, int]
    """``connections.max.reauth.ms`` by mechanism; 0 is no limit."""
    requests: Requests
    max_frame_bytes: int
    failure_delay_s: float


class _Stage(Enum):
    FIRST = "the first request"
    HANDSHAKE = "SASL handshake"
    AUTHENTICATE = "SASL authentication"


class SaslAuthenticator:
    """Handles the frames of a connection until the client is authenticated."""

    def __init__(self, listener: SaslListener, previous: SaslAuthenticator | None = None) -> None:
        self._listener = listener
        self._previous = previous
        self._stage = _Stage.FIRST
        self._mechanism: Mechanism | None = None
        self._framed = False
        """Whether the mechanism's messages come in SaslAuthenticate requests instead of bare frames."""
        self._other_mechanism = ""
        self.mechanism_name = ""
        self.principal: Principal | None = None
        self.renewed_at = time.monotonic() if previous is not None else -math.inf

    @property
    def _doing(self) -> str:
        return "authentication" if self._previous is None else "re-authentication"

    def __call__(self, connection: Connection, frame: memoryview) -> None:
        try:
            if self._stage is not _Stage.AUTHENTICATE:
                self._before_mechanism(connection, frame)
            elif self._framed:
                self._authenticate(connection, frame)
            else:
                self._bare(connection, frame)
        except MalformedMessage as error:
            raise ConnectionRefusal(f"malformed request during {self._doing}: {error}") from error

    # Choice of the mechanism

    def _before_mechanism(self, connection: Connection, frame: memoryview) -> None:
        key, version, _ = peek_request(frame)
        if key == ApiKey.API_VERSIONS and self._stage is _Stage.FIRST and self._previous is None:
            if self._listener.requests.serves(key, version):
                self._stage = _Stage.HANDSHAKE
            self._listener.requests(connection, frame)
        elif key == ApiKey.SASL_HANDSHAKE:
            self._handshake(connection, frame, version)
        else:
            raise ConnectionRefusal(f"a request of API key {key} came before SASL authentication")

    def _handshake(self, connection: Connection, frame: memoryview, version: int) -> None:
        if version not in _HANDSHAKE_VERSIONS:
            raise ConnectionRefusal(f"SaslHandshake v{version} is not served here, 0 to 1 are")
        header, request = _read(SaslHandshakeRequest, frame, version)
        offered = list(self._listener.mechanisms)
        if request.mechanism not in offered:
            answer = SaslHandshakeResponse(error_code=UnsupportedSaslMechanism.code, mechanisms=offered)
            reason = f"the client wants SASL mechanism {request.mechanism[:40]!r}; {', '.join(offered)} are offered"
            self._fail(connection, _written(answer, header, SaslHandshakeRequest), reason)
            return
        if self._previous is not None and request.mechanism != self._previous.mechanism_name:
            self._other_mechanism = request.mechanism  # refused when it sends its credentials, as in Kafka
        else:
            self._mechanism = self._listener.mechanisms[request.mechanism]()
        self.mechanism_name = request.mechanism
        self._framed = version >= 1
        self._stage = _Stage.AUTHENTICATE
        answer = SaslHandshakeResponse(mechanisms=offered)
        connection.send(_written(answer, header, SaslHandshakeRequest))

    # The mechanism's exchange

    def _authenticate(self, connection: Connection, frame: memoryview) -> None:
        key, version, _ = peek_request(frame)
        if key != ApiKey.SASL_AUTHENTICATE:
            reason = f"a request of API key {key} came during SASL authentication"
            self._fail(connection, self._listener.requests.failure(frame, IllegalSaslState(reason)), reason)
            return
        if version not in _AUTHENTICATE_VERSIONS:
            raise ConnectionRefusal(f"SaslAuthenticate v{version} is not served here, 0 to 2 are")
        header, request = _read(SaslAuthenticateRequest, frame, version)
        try:
            challenge = self._evaluate(bytes(request.auth_bytes))
        except (Rejected, InvalidCredentials) as error:
            answer = SaslAuthenticateResponse(
                error_code=SaslAuthenticationFailed.code, error_message=self._error_message(error), auth_bytes=b""
            )
            self._fail(connection, _written(answer, header, SaslAuthenticateRequest), f"{self._doing} failed: {error}")
            return
        lifetime_ms = self._complete(connection)
        answer = SaslAuthenticateResponse(error_message=None, auth_bytes=challenge, session_lifetime_ms=lifetime_ms)
        connection.send(_written(answer, header, SaslAuthenticateRequest))

    def _bare(self, connection: Connection, frame: memoryview) -> None:
        """A message of the mechanism as a bare frame, as clients of Kafka 0.10 send it."""
        try:
            challenge = self._evaluate(bytes(frame))
        except (Rejected, InvalidCredentials) as error:
            self._fail(connection, (), f"{self._doing} failed: {error}")
            return
        self._complete(connection)
        connection.send([bytearray(_SIZE.pack(len(challenge)) + challenge)])

    def _evaluate(self, response: bytes) -> bytes:
        if self._mechanism is None:
            assert self._previous is not None
            raise Rejected(
                f"SASL mechanism '{self._other_mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._previous.mechanism_name}'"
            )
        challenge = self._mechanism.evaluate(response)
        identity = self._mechanism.identity
        if identity is not None and self._previous is not None and self._previous.principal is not None:
            before, now = self._previous.principal, identity.principal
            if before[:2] != now[:2]:
                raise Rejected(
                    f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                    f"{now.type}.{now.name}"
                )
        return challenge

    def _error_message(self, error: Exception) -> str:
        if isinstance(error, Rejected):
            return str(error)
        return f"Authentication failed during {self._doing} due to invalid credentials with SASL mechanism {self.mechanism_name}"

    # After authentication

    def _complete(self, connection: Connection) -> int:
        """Admit the client if it is authenticated.

        Returns the length of its session in milliseconds; 0 is unlimited.
        """
        identity = self._mechanism.identity if self._mechanism is not None else None
        if identity is None:
            return 0
        connection.principal = self.principal = identity.principal
        listener = self._listener
        lifetime_ms = self._lifetime_ms(identity)
        handle: FrameHandler = listener.requests
        if lifetime_ms is not None:
            handle = _Session(self, listener, time.monotonic() + lifetime_ms / 1000)
        connection.serve(handle, listener.max_frame_bytes)
        return lifetime_ms or 0

    def _lifetime_ms(self, identity: Identity) -> int | None:
        limit = self._listener.max_session_ms[self.mechanism_name]
        if identity.expires_at_ms is None:
            return limit or None
        left = max(0, identity.expires_at_ms - time.time_ns() // 1_000_000)
        return min(left, limit) if limit else left

    def _fail(self, connection: Connection, answer: Sequence[Any], reason: str) -> None:
        connection.finish(answer, reason, after_s=self._listener.failure_delay_s)


class _Session:
    """Handles the frames of a client whose session ends unless it reauthenticates."""

    def __init__(self, by: SaslAuthenticator, listener: SaslListener, ends_at: float) -> None:
        self._by = by
        self._listener = listener
        self._ends_at = ends_at

    def __call__(self, connection: Connection, frame: memoryview) -> None:
        now = time.monotonic()
        if frame[:2] == _SASL_HANDSHAKE and now - self._by.renewed_at >= _AGAIN_AFTER_S:
            again = SaslAuthenticator(self._listener, self._by)
            connection.serve(again, self._listener.max_frame_bytes)
            again(connection, frame)
        elif now > self._ends_at:
            raise ConnectionRefusal(f"the session of {connection.principal} ended without a re-authentication")
        else:
            self._listener.requests(connection, frame)


def _read(kind: type[Request], frame: memoryview, version: int) -> tuple[RequestHeader, Any]:
    header = read_request_header(frame, version >= kind.FLEXIBLE_SINCE)
    return header, kind.read(frame, version, header.body_at)


def _written(answer: Response, header: RequestHeader, kind: type[Request]) -> list[Any]:
    out = begin_response(header.correlation_id, header.version >= kind.FLEXIBLE_SINCE)
    parts = answer.write(header.version, out)
    _SIZE.pack_into(parts[0], 0, len(parts[0]) - 4)
    return parts
