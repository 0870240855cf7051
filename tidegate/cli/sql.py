"""``tidegate sql``: a query over topics, run once by Spark."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from tidegate.cli.credentials import registry_properties
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.cli.progress import status_of

__all__ = ["sql"]


@click.command()
@click.argument("query")
@click.option("-n", "--rows", type=click.IntRange(min=1), default=100, show_default=True, help="Print so many rows.")
@click.option(
    "--metadata",
    is_flag=True,
    help="Add the columns __topic, __partition, __offset, __timestamp, __error and __bytes to every topic.",
)
@click.option(
    "--fail-on-undecodable", is_flag=True, help="End the query at a record that can't be decoded, and name the record."
)
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
@json_option
def sql(
    query: str,
    rows: int,
    metadata: bool,
    fail_on_undecodable: bool,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
    as_json: bool,
) -> None:
    """Run one query of Spark SQL over topics, as they are now, and print the result.

    A topic is a view by its name, with its values' fields as columns. Records without a schema have the columns of their
    JSON, or else the column value. A record that can't be decoded is a row of nulls, and a line on standard error counts them;
    --metadata shows the reason (__error) and the value (__bytes) of each. Write a name in backticks that has dots or dashes. A query that does not parse, or that names a topic
    that there is not, is refused before Spark starts. Spark starts and ends with the
    query, which takes ten seconds or more, and half of that once the machine's first query has shown what Spark loads. The same text is a Spark sink's spark.sql.

    Example: tidegate sql "SELECT carrier, count(*) AS flights FROM flights GROUP BY carrier"
    """
    from connectors.spark.query import Query, run_query

    config = client_config(data, bootstrap_servers, properties, command_config)
    asked = Query(
        sql=query,
        rows=rows,
        metadata_columns=metadata,
        kafka={"bootstrap.servers": config.bootstrap_servers, **config.properties},
        registry=registry_properties(data, registry),
        fails_on_undecodable=fail_on_undecodable,
    )
    with ExitStack() as running:
        with status_of("asking for the topics") as tell:
            result = running.enter_context(run_query(asked, on_progress=tell))
        for note in result.notes:
            click.echo(note, err=True)
        if as_json:
            print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
            return
        print_table(result.columns, [[_shown(value) for value in row] for row in result.rows], grouped=False)
        if result.more:
            click.echo(f"The first {rows} rows; -n prints more.", err=True)


def _shown(value: Any) -> Any:
    from tidegate.cli.options import as_json

    return as_json(value, indent=None) if isinstance(value, dict | list) else value
