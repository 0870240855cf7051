"""Errors between registries; further subclasses of ``registry.errors.StoreError``."""

from __future__ import annotations

from registry.errors import StoreError

__all__ = ["ForwardingFailed", "NotCaughtUp", "NotLeader", "UnknownLeader"]


class ForwardingFailed(StoreError):
    """The registry that writes did not answer."""

    error_code = 50003


class UnknownLeader(StoreError):
    """No registry may write at the moment: an election is in progress, or none is eligible."""

    error_code = 50004
    retriable = True

    def __init__(self, message: str = "Leader not known.") -> None:
        super().__init__(message)


class NotLeader(UnknownLeader):
    """Another registry writes. Clients see this only if the write was forwarded to one that has just been replaced."""

    def __init__(self, url: str) -> None:
        super().__init__(f"Leader not known. This registry does not write; the last known leader is {url}")
        self.url = url


class NotCaughtUp(StoreError):
    """This registry has not read the whole log, so it can't tell whether an object exists."""

    http_status = 503
    error_code = 503
    retriable = True
