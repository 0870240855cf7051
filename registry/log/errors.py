"""What can go wrong between registries; further branches of ``registry.errors.StoreError``."""

from __future__ import annotations

from registry.errors import StoreError

__all__ = ["ForwardingFailed", "NotCaughtUp", "NotLeader", "UnknownLeader"]


class ForwardingFailed(StoreError):
    """The registry that writes did not answer."""

    error_code = 50003


class UnknownLeader(StoreError):
    """Nobody may write at the moment: an election is under way, or nobody is eligible."""

    error_code = 50004
    retriable = True

    def __init__(self, message: str = "Leader not known.") -> None:
        super().__init__(message)


class NotLeader(UnknownLeader):
    """Another registry writes. Clients see it only where a write was passed on to one that lost its office meanwhile."""

    def __init__(self, url: str) -> None:
        super().__init__(f"Leader not known. This registry does not write; the last known leader is {url}")
        self.url = url


class NotCaughtUp(StoreError):
    """This registry knows that it has not read everything, and so whether the thing asked for exists."""

    http_status = 503
    error_code = 503
    retriable = True
