"""Where the events service is and who asks: what the commands about events share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.options import address_of, data_option

if TYPE_CHECKING:
    from events.client import EventsClient

__all__ = ["client_of", "events_options"]

F = TypeVar("F", bound=Callable[..., Any])


def events_options(function: F) -> F:
    """The address of the service and who asks."""
    function = click.option("--events", "url", metavar="URL", help="The events service to talk to.")(function)
    function = click.option("--pubsub", metavar="H:P", help="Its Pub/Sub API without TLS.")(function)
    function = click.option(
        "--user", default="developer@tidegate.local", envvar="TIDEGATE_EVENTS_USER", show_default=True, show_envvar=True
    )(function)
    function = click.option("--password", envvar="TIDEGATE_EVENTS_PASSWORD", show_envvar=True)(function)
    return data_option(function)


def client_of(data: Path, url: str | None, pubsub: str | None, user: str, password: str | None) -> EventsClient:
    from events.client import EventsClient
    from events.config import DEFAULT_PASSWORD

    return EventsClient(
        address_of("events", data, url),
        user=user,
        password=password or DEFAULT_PASSWORD,
        pubsub=address_of("pubsub-plain", data, pubsub),
    )
