"""What the sink needs to know, whatever the keys are called."""

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
    """Client credentials (RFC 6749, 4.4). ``in_header`` says where the id and the secret stand."""

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
    """How often a request is sent again, after which pause, and for which answers; no answer at all is always one."""

    most: int
    pause_s: float
    codes: Sequence[range]
    doubles: bool = False
    """Whether the pause is about twice as long each time."""

    def pause_before(self, attempt: int) -> float:
        """In seconds, before the second attempt (1) and those after it."""
        if not self.doubles:
            return self.pause_s
        longest = min(self.pause_s * float(2 ** min(attempt - 1, 16)), max(_LONGEST_PAUSE_S, self.pause_s))
        return longest * random.uniform(0.5, 1)

    def again(self, status: int) -> bool:
        return any(status in codes for codes in self.codes)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """``url`` may hold ``${topic}``, ``${key}`` and fields. ``separator`` stands between the records of a body."""

    url: str
    method: str = "POST"
    headers: Sequence[tuple[str, str]] = ()
    fills_headers: bool = False
    """Whether placeholders in their values are filled in too."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Added to the query of every address."""
    records: int = 1
    """The most in one request."""
    prefix: str = ""
    suffix: str = ""
    separator: str = ","
    json: bool = False
    """Whether values are sent as JSON rather than as the text that Java makes of them."""
    structs_as_json: bool = False
    """Whether at least values that are no plain text or number are sent as JSON."""
    group_by: str = ""
    """Records share a request only where this, filled in, is the same."""
    replacements: Sequence[tuple[str, str]] = ()
    nulls: str = "ignore"
    """What becomes of a record without value: ignore, log, delete, fail."""
    skips_errors: bool = False
    retries: Retries = Retries(0, 0, ())
    connect_timeout_s: float = 30
    timeout_s: float = 30
    user: tuple[str, str] | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    tls: ssl.SSLContext | None = None
    proxy: str | None = field(default=None, repr=False)


def status_codes(text: str) -> list[range]:
    """``429,500-599,600-``: the answers of these codes. Raises ValueError."""
    codes = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if last else (999 if dash else low)
        if not 100 <= low <= high:
            raise ValueError(part)
        codes.append(range(low, high + 1))
    return codes
