"""``tidegate demo``: the main use case on real data."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["demo"]


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="tidegate-demo",
    show_default=True,
    help="Where database, platform data and Parquet go; made anew.",
)
@click.option(
    "--database", "database_url", metavar="URL", help="postgresql://user:password@host/name instead of SQLite."
)
@click.option("--keep", is_flag=True, help="Leave the platform running and print its addresses.")
def demo(folder: Path, database_url: str | None, keep: bool) -> None:
    """Load 336,776 flights into a database, move them through log, schemas, events and Spark to Parquet, check every count."""
    from rich.console import Console

    from tidegate.demo.run import run

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)  # a log has no width, and the default of 80 would break the tables
    run(folder.absolute(), database_url=database_url, keep=keep, console=console)
