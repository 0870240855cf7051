"""Shared by the commands for the log: options for the address and the login."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.credentials import credentials_for
from tidegate.cli.options import address_of, data_option
from tidegate.kit.properties import read_properties

if TYPE_CHECKING:
    from broker.client import ClientConfig

__all__ = ["client_config", "kafka_options", "key_values"]

F = TypeVar("F", bound=Callable[..., Any])


def kafka_options(function: F) -> F:
    """``--bootstrap-servers``, ``--command-config``, ``--property`` and ``--data``."""
    function = click.option(
        "--command-config",
        type=click.Path(dir_okay=False, path_type=Path),
        help="A properties file of Kafka client settings, as Kafka's own tools take it.",
    )(function)
    function = click.option(
        "--bootstrap-servers", metavar="LIST", help="The Kafka to talk to, instead of the platform's."
    )(function)
    function = click.option(
        "--property",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Kafka client setting, such as security.protocol.",
    )(function)
    return data_option(function)


def key_values(texts: Sequence[str], option: str) -> dict[str, str]:
    """KEY=VALUE texts as a dict. An error names the invalid text."""
    made = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{option} {text!r}: give KEY=VALUE")
        made[key.strip()] = value
    return made


def client_config(
    data: Path, bootstrap_servers: str | None, properties: Sequence[str], command_config: Path | None, **more: str
) -> ClientConfig:
    """The client configuration from the options. Single properties override the file's."""
    from broker.client import ClientConfig

    command_properties = read_properties(command_config) if command_config is not None else {}
    bootstrap_servers = bootstrap_servers or command_properties.get("bootstrap.servers")
    command_properties |= key_values(properties, "--property")
    credentials = credentials_for(data, bootstrap_servers)
    if "security.protocol" not in command_properties:
        command_properties = {**credentials.kafka, **command_properties}
    return ClientConfig(address_of("broker", data, bootstrap_servers), {**command_properties, **more})
