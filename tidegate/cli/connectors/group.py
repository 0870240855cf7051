"""The click group of this package's commands."""

from __future__ import annotations

import click

__all__ = ["connectors"]


@click.group()
def connectors() -> None:
    """Manage connectors over Connect's REST API, write your own, and look at what one would do."""
