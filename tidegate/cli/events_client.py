"""The address and the login of the events service, for all commands about events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.credentials import credentials_for
from tidegate.cli.options import address_of, data_option

if TYPE_CHECKING:
    from events.client import EventsClient

__all__ = ["client_of", "events_options"]

F = TypeVar("F", bound=Callable[..., Any])


def events_options(function: F) -> F:
    """The options for the address of the service and the login."""
    function = click.option("--events", "url", metavar="URL", help="The events service to talk to.")(function)
    function = click.option("--pubsub", metavar="H:P", help="Its Pub/Sub API, with TLS where TIDEGATE_CA is given.")(
        function
    )
    function = click.option(
        "--user",
        envvar="TIDEGATE_EVENTS_USER",
        show_envvar=True,
        help="Who asks; by default who may do everything on the platform of --data, else developer@tidegate.local.",
    )(function)
    function = click.option("--password", envvar="TIDEGATE_EVENTS_PASSWORD", show_envvar=True)(function)
    return data_option(function)


def client_of(data: Path, url: str | None, pubsub: str | None, user: str | None, password: str | None) -> EventsClient:
    from events.client import EventsClient
    from events.config import DEFAULT_PASSWORD, DEFAULT_USER

    known = credentials_for(data, url)
    return EventsClient(
        address_of("events", data, url),
        user=user or known.user or DEFAULT_USER,
        password=password or known.password or DEFAULT_PASSWORD,
        pubsub=address_of("pubsub" if known.ca else "pubsub-plain", data, pubsub, needed=url is None),
        ca=known.ca or None,
    )
