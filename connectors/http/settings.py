"""The settings of the HTTP sinks, independent of the names of the keys."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

__all__ = ["HttpSettings", "OAuth", "Retries", "status_codes"]

_LONGEST_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class OAuth:
    """Client credentials (RFC 6749, 4.4). ``in_header`` says whether id and secret are sent in a header."""

    url: str
    parameters: Mapping[str, str]
    client_id: str
    secret: str = field(repr=False)
    in_header: bool = True
    id_name: str = "client_id"
    secret_name: str = "client_secret"
    token_name: str = "access_token"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is repeated, after which pauses and for which responses.

    A missing response is always retried.
    """

    most: int
    pause_s: float
    codes: Sequence[range]
    doubles: bool = False
    """Whether each pause is about twice as long as the one before."""

    def pause_before(self, attempt: int) -> float:
        """The pause in seconds before the retry with this number (1 is the first retry)."""
        if not self.doubles:
            return self.pause_s
        longest = min(self.pause_s * float(2 ** min(attempt - 1, 16)), max(_LONGEST_PAUSE_S, self.pause_s))
        return longest * random.uniform(0.5, 1)

    def again(self, status: int) -> bool:
        return any(status in codes for codes in self.codes)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """``url`` may contain ``${topic}``, ``${key}`` and fields. ``separator`` separates the records in a body."""

    url: str
    method: str = "POST"
    headers: Sequence[tuple[str, str]] = ()
    fills_headers: bool = False
    """Whether placeholders in the header values are replaced too."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Added to the query string of every address."""
    records: int = 1
    """The most records in one request."""
    prefix: str = ""
    suffix: str = ""
    separator: str = ","
    json: bool = False
    """Whether values are sent as JSON, rather than as the text of Java's toString."""
    structs_as_json: bool = False
    """Whether values other than plain texts and numbers are sent as JSON."""
    group_by: str = ""
    """Records share a request only where this template gives the same text for them."""
    replacements: Sequence[tuple[str, str]] = ()
    nulls: str = "ignore"
    """How records without value are handled: ignore, log, delete, fail."""
    skips_errors: bool = False
    retries: Retries = Retries(0, 0, ())
    connect_timeout_s: float = 30
    timeout_s: float = 30
    user: tuple[str, str] | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    tls: ssl.SSLContext | None = None
    proxy: str | None = field(default=None, repr=False)


def status_codes(text: str) -> list[range]:
    """Parses ``429,500-599,600-``, a list of status codes and ranges. Raises ValueError."""
    codes = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if last else (999 if dash else low)
        if not 100 <= low <= high:
            raise ValueError(part)
        codes.append(range(low, high + 1))
    return codes
