"""``tidegate serve``: one component alone, configured by a properties file like the original's."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate import platform
from tidegate.components import COMPONENTS
from tidegate.kit import logs
from tidegate.kit.errors import UsageError
from tidegate.kit.properties import read_properties

__all__ = ["serve"]


@click.command()
@click.argument("component", type=click.Choice(list(COMPONENTS)))
@click.argument("properties_file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.argument("connector_files", type=click.Path(dir_okay=False, path_type=Path), nargs=-1)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set or override one property.")
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"])
)
@click.option(
    "--ready-file", type=click.Path(dir_okay=False, path_type=Path), help="Written when ready: pid and addresses."
)
@click.option("--stop-with-stdin", is_flag=True, help="Stop when standard input ends.")
def serve(
    component: str,
    properties_file: Path | None,
    connector_files: tuple[Path, ...],
    overrides: tuple[str, ...],
    log_level: str,
    ready_file: Path | None,
    stop_with_stdin: bool,
) -> None:
    """Run one component until Ctrl-C: broker, registry, connect, events, triggers or console.

    serve connect WORKER.PROPERTIES CONNECTOR_FILES... is connect-standalone: the connectors are in JSON or properties files.
    """
    if connector_files and component != "connect":
        raise UsageError(f"serve {component} takes one properties file; connector files belong to serve connect")
    logs.configure(log_level)
    properties = read_properties(properties_file) if properties_file else {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise UsageError(f"--set {override!r}: give KEY=VALUE")
        properties[key.strip()] = value
    status = platform.serve(
        component,
        properties,
        ready_file=ready_file,
        stop_with_stdin=stop_with_stdin,
        connector_files=connector_files,
    )
    raise click.exceptions.Exit(status)
