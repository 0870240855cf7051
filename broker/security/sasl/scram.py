"""SCRAM (RFC 5802): the client proves that it knows a password, and verifies that the broker knows it too."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker.security.sasl.mechanism import Identity, InvalidCredentials, Rejected
from broker.security.scram import ScramMechanism
from tidegate.kit.scram import MIN_ITERATIONS, ScramCredential

__all__ = ["Login", "Lookup", "Scram", "client_final", "client_first", "nobody"]

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class ClientFirst(NamedTuple):
    user: str
    authzid: str
    nonce: str
    token: bool
    """Whether the user is the id of a delegation token."""
    bare: str


class ClientFinal(NamedTuple):
    nonce: str
    proof: bytes
    bare: str


class Login(NamedTuple):
    """The facts about a client that wants to log in."""

    credential: ScramCredential
    identity: Identity | None
    """The client's identity after a valid proof; None if the user does not exist, so that no proof is valid."""


Lookup = Callable[[str, ScramMechanism, bool], Login]
"""By user (or token id), mechanism, and whether it is a token."""


def client_first(message: bytes) -> ClientFirst:
    """Raises InvalidCredentials."""
    match = _FIRST.fullmatch(_text(message))
    if match is None:
        raise InvalidCredentials("the client's first message is malformed")
    token = False
    for extension in filter(None, match["extensions"].split(",")):
        name, _, value = extension.partition("=")
        if name == "tokenauth":
            token = value.lower() == "true"
    user = match["name"].replace("=2C", ",").replace("=3D", "=")
    return ClientFirst(user, match["authzid"] or "", match["nonce"], token, match["bare"])


def client_final(message: bytes) -> ClientFinal:
    """Raises InvalidCredentials."""
    match = _FINAL.fullmatch(_text(message))
    if match is None:
        raise InvalidCredentials("the client's final message is malformed")
    try:
        return ClientFinal(match["nonce"], base64.b64decode(match["proof"]), match["bare"])
    except binascii.Error as error:
        raise InvalidCredentials("the client's proof is not base 64") from error


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise InvalidCredentials("a message is not UTF-8") from error


class Scram:
    """One exchange. An unknown user is asked for a proof like any other, and fails like one with a wrong password."""

    def __init__(self, mechanism: ScramMechanism, look_up: Lookup) -> None:
        self._mechanism = mechanism
        self._look_up = look_up
        self._first: ClientFirst | None = None
        self._login: Login | None = None
        self._challenge = ""
        self._nonce = ""
        self.identity: Identity | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self._first is None:
            return self._begin(client_first(response))
        if self._login is None or self.identity is not None:
            raise InvalidCredentials("a message came after the last one")
        login, self._login = self._login, None
        return self._end(self._first, login, client_final(response))

    def _begin(self, first: ClientFirst) -> bytes:
        if first.authzid and first.authzid != first.user:
            raise Rejected(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._first = first
        self._login = self._look_up(first.user, self._mechanism, first.token)
        self._nonce = first.nonce + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._login.credential.salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={self._login.credential.iterations}"
        return self._challenge.encode()

    def _end(self, first: ClientFirst, login: Login, final: ClientFinal) -> bytes:
        if not hmac.compare_digest(final.nonce, self._nonce):
            raise InvalidCredentials("the nonce of the client's final message is another one")
        digest = self._mechanism.digest
        exchange = f"{first.bare},{self._challenge},{final.bare}".encode()
        stored = login.credential.stored_key
        signature = hmac.digest(stored, exchange, digest)
        if len(final.proof) != len(signature):
            raise InvalidCredentials("the proof has the wrong length")
        client_key = bytes(a ^ b for a, b in zip(signature, final.proof, strict=True))
        right = hmac.compare_digest(hashlib.new(digest, client_key).digest(), stored)
        if login.identity is None or not right:
            raise InvalidCredentials(f"{first.user!r} is unknown or has another password")
        self.identity = login.identity
        verifier = base64.b64encode(hmac.digest(login.credential.server_key, exchange, digest)).decode()
        return f"v={verifier}".encode()


def nobody(
    secret: bytes, user: str, mechanism: ScramMechanism, known: Sequence[tuple[str, ScramCredential]] = ()
) -> Login:
    """The answer for a user that does not exist: always the same salt, and keys that no password produces.

    The length of the salt and the iterations are copied from a ``known`` user, because clients choose both. It is
    always the same user as long as that one exists.
    """

    def mark(text: str) -> bytes:
        return hmac.digest(secret, f"{mechanism.title}:{user}:{text}".encode(errors="replace"), "sha512")

    model = min(known, key=lambda item: mark(item[0]), default=None)
    length, iterations = (len(model[1].salt), model[1].iterations) if model is not None else (24, MIN_ITERATIONS)
    salt = b"".join(mark(f"salt {part}") for part in range(length // 64 + 1))[:length]
    size = hashlib.new(mechanism.digest).digest_size
    return Login(ScramCredential(salt, secrets.token_bytes(size), secrets.token_bytes(size), iterations), None)
