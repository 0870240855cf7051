"""Checks against the org during validation, so that a wrong password is found before a task runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from connect.api import ConnectError, Problem, RetriableConnectError
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import SalesforceConfig

__all__ = ["problems_of"]


def problems_of(config: SalesforceConfig, key: str, look: Callable[[SalesforceClient], object]) -> Iterable[Problem]:
    """The problem that ``look`` raises when called with a client of the org: reported for the login where that was
    rejected, else for ``key``.
    """
    client = SalesforceClient(config)
    try:
        look(client)
    except ConnectError as error:
        yield Problem("salesforce.instance" if "logging in" in error.message else key, error.message)
    except RetriableConnectError as error:
        yield Problem("salesforce.instance", error.message)
    finally:
        client.close()
