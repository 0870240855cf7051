"""Looking at the org when a configuration is validated, so that a wrong password is known before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from connect.api import ConnectError, Problem, RetriableConnectError
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import SalesforceConfig

__all__ = ["problems_of"]


def problems_of(config: SalesforceConfig, key: str, look: Callable[[SalesforceClient], object]) -> Iterable[Problem]:
    """What ``look`` raises with a client of the org: of the login where that is refused, else of ``key``."""
    client = SalesforceClient(config)
    try:
        look(client)
    except ConnectError as error:
        yield Problem("salesforce.instance" if "logging in" in error.message else key, error.message)
    except RetriableConnectError as error:
        yield Problem("salesforce.instance", error.message)
    finally:
        client.close()
