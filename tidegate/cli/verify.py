"""The commands ``tidegate verify topics``, ``tidegate verify tables`` and ``tidegate verify sink``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.credentials import credentials_for
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import address_of, json_option, print_json, print_table
from tidegate.cli.progress import progress_of
from tidegate.clients.worker import path_of
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from tidegate.verify.states import Difference, States
    from tidegate.verify.tables import CapturedTables

__all__ = ["verify"]

_KINDS = {
    "only left": "only in {0}",
    "only right": "only in {1}",
    "value": "other values",
    "count": "{2} times in {0}, {3} times in {1}",
}
F = TypeVar("F", bound=Callable[..., Any])


def _key_options(function: F) -> F:
    """Which keys are compared, and how many differences are shown."""
    options = [
        click.option("--key-from", metavar="KEY", help="The first key to compare: a number, or a text."),
        click.option("--key-to", metavar="KEY", help="The last key to compare."),
        click.option("--ranges", type=click.IntRange(min=1), help="Also count keys and differences in so many ranges."),
        click.option(
            "-n",
            "limit",
            type=click.IntRange(min=1),
            default=10,
            show_default=True,
            help="How many differences to show.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.group()
def verify() -> None:
    """Compare what should be the same. Exit status 1 where something differs."""


@verify.command()
@click.argument("left")
@click.argument("right")
@click.option("--records", is_flag=True, help="Compare all records in their order, not only the newest of each key.")
@click.option("--to-bootstrap-servers", metavar="LIST", help="The Kafka of the second topic, if it is another.")
@click.option(
    "--to-command-config", type=click.Path(dir_okay=False, path_type=Path), help="A properties file for that Kafka."
)
@_key_options
@kafka_options
@json_option
def topics(
    left: str,
    right: str,
    records: bool,
    to_bootstrap_servers: str | None,
    to_command_config: Path | None,
    key_from: str | None,
    key_to: str | None,
    ranges: int | None,
    limit: int,
    as_json: bool,
    **where: Any,
) -> None:
    """Compare two topics, of one Kafka or of two, up to their present ends.

    The newest values of keys are compared as bytes, whatever partitions and offsets they have. With --records all
    records of equal partitions must be alike in their order: keys, values, headers, timestamps.

    Example: tidegate verify topics orders orders --to-bootstrap-servers other:9092
    """
    from tidegate.verify.states import States
    from tidegate.verify.topics import Side, compare_keys, compare_records

    config = client_config(**where)
    other = config
    if to_bootstrap_servers or to_command_config:
        other = client_config(where["data"], to_bootstrap_servers, (), to_command_config)
    sides = Side(config, left), Side(other, right)
    names = (left, right) if left != right else (f"the first {left}", f"the second {right}")
    if records:
        with progress_of("comparing") as progress:
            alike, differing = compare_records(*sides, progress)
        told: dict[str, Any] = {"alike": alike, "differing": [entry._asdict() for entry in differing]}
        if as_json:
            print_json(told)
        elif differing:
            columns = ["partition", *(f"offset in {name}" for name in names)]
            print_table(columns, [[d.partition, *(_offset(o) for o in d[1:])] for d in differing])
            click.echo(f"{alike:,} records are alike; the first that differs is shown for each partition")
        else:
            click.echo(f"all {alike:,} records are alike")
    else:
        with States((key_from, key_to)) as states, progress_of("comparing") as progress:
            without = compare_keys(*sides, states, progress)
            told = _facts(states, limit, ranges) | {"records_without_key": without}
        if as_json:
            print_json(told)
        else:
            _print_differences(told, names)
            if without:
                click.echo(f"{without:,} records have no key and were not compared; --records compares all", err=True)
    if told["differing"]:
        raise click.exceptions.Exit(1)


def _offset(offset: int | None) -> str:
    return "no more records" if offset is None else str(offset)


def _facts(states: States, limit: int, ranges: int | None, *, lasting: bool = False) -> dict[str, Any]:
    told = {
        "keys": [states.count(0), states.count(1)],
        "differing": states.lasting() if lasting else states.differing(),
        "differences": [_told(difference) for difference in states.differences(limit, lasting=lasting)],
    }
    return told | ({"ranges": [each._asdict() for each in states.ranges(ranges)]} if ranges else {})


def _told(difference: Difference) -> dict[str, Any]:
    """Without what this kind of difference does not have."""
    return {name: value for name, value in difference._asdict().items() if value not in ((), None)}


def _print_differences(
    told: dict[str, Any], sides: tuple[str, str], *, part: str = "topic", counted: str = "keys"
) -> None:
    keys, differing = told["keys"], told["differing"]
    if told.get("ranges"):
        rows = [
            [
                each["part"] or "-",
                str(each["first"]),
                str(each["last"]),
                f"{each['left']:,}",
                f"{each['right']:,}",
                each["differing"],
            ]
            for each in told["ranges"]
        ]
        print_table([part, "first key", "last key", f"in {sides[0]}", f"in {sides[1]}", "differing"], rows)
    if not differing:
        click.echo(f"all {keys[0]:,} {counted} are alike")
        return
    shown: list[dict[str, Any]] = told["differences"]
    print_table([part, "key", "difference"], [[d["part"] or "-", d["key"], _kind(d, sides)] for d in shown])
    more = f", of which {len(shown)} are shown" if differing > len(shown) else ""
    click.echo(f"{differing:,} {counted} differ{more}: {keys[0]:,} {counted} in {sides[0]}, {keys[1]:,} in {sides[1]}")


def _kind(difference: dict[str, Any], sides: tuple[str, str]) -> str:
    if columns := difference.get("columns"):
        return f"other {', '.join(columns)}"
    return _KINDS[difference["kind"]].format(*sides, *difference.get("counts", ()))


def _connector_options(function: F) -> F:
    """The way to a connector, to its worker's settings and to its topics."""
    options = [
        click.option(
            "--worker",
            type=click.Path(path_type=Path),
            help="The worker's properties file, if it has other converters than the platform's.",
        ),
        click.option(
            "--bootstrap-servers", metavar="LIST", help="The Kafka that has the topics, instead of the platform's."
        ),
        click.option("--registry", metavar="URL", help="The registry, if it is not the platform's."),
        connect_options,
        json_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _reached(
    name: str,
    *,
    worker: Path | None,
    bootstrap_servers: str | None,
    registry: str | None,
    data: Path,
    connect: str | None,
) -> tuple[dict[str, str], dict[str, str], ClientConfig]:
    """A connector's configuration with its name, the settings of a worker for it, and the Kafka of its topics."""
    from tidegate.kit.properties import read_properties

    config = rest_of(data, connect).call("GET", path_of(name, "/config"))
    credentials = credentials_for(data, bootstrap_servers or registry)
    settings = {
        **credentials.registry,
        "bootstrap.servers": address_of("broker", data, bootstrap_servers),
        **(read_properties(worker) if worker is not None else {}),
    }
    with suppress(UsageError):  # for a platform without one
        settings.setdefault("schema.registry.url", address_of("registry", data, registry))
    return {"name": name, **config}, settings, client_config(data, bootstrap_servers, (), None)


@verify.command()
@connector_argument()
@click.option("--table", "tables_", multiple=True, metavar="REGEX", help="Only tables with such a full name.")
@click.option("--settle", "settle_s", default=5.0, show_default=True, help="Seconds in which a change must arrive.")
@click.option("--repair", is_flag=True, help="Have the connector read the tables that differ again.")
@_key_options
@_connector_options
def tables(
    name: str,
    tables_: tuple[str, ...],
    settle_s: float,
    repair: bool,
    key_from: str | None,
    key_to: str | None,
    ranges: int | None,
    limit: int,
    as_json: bool,
    **where: Any,
) -> None:
    """Compare the tables that a CDC connector captures with its topics, row by row.

    The tables are read as of one moment, as the connector reads them, then the topics to their ends. Where keys differ,
    both are read again after --settle seconds: a key differs only if neither side has changed meanwhile.

    Example: tidegate verify tables shop --table 'public\\.orders'
    """
    from connect.plugins.registry import load_plugins
    from tidegate.verify.states import States
    from tidegate.verify.tables import CapturedTables

    config, settings, kafka = _reached(name, **where)
    captured = CapturedTables(load_plugins(), settings, config, tables_, kafka)
    with closing(captured), States((key_from, key_to)) as states:
        _compare(captured, states)
        if states.differing():
            states.remember()
            time.sleep(settle_s)
            _compare(captured, states)
        told = _facts(states, limit, ranges, lasting=True) | {"tables": sorted(captured.topics.values())}
        told["changing"] = states.differing() - told["differing"]
        parts = [captured.topics[topic] for topic in states.parts_differing(lasting=True)]
    if not told["tables"]:
        raise UsageError(f"{name} captures no table" + (f" with a name like {', '.join(tables_)}" if tables_ else ""))
    told["repairing"] = _repair(config, parts, kafka) if repair and parts else None
    if as_json:
        print_json(told)
    else:
        _print_differences(told, ("the table", "the topic"))
        if told["changing"]:
            click.echo(f"{told['changing']:,} more keys changed while they were compared", err=True)
        if told["repairing"]:
            click.echo(
                f"{', '.join(parts)}: an incremental snapshot is asked for, by signal {told['repairing']}", err=True
            )
            if any(d["kind"] == "only right" for d in told["differences"]):
                click.echo("a snapshot does not remove rows that only the topic has", err=True)
    if told["differing"]:
        raise click.exceptions.Exit(1)


def _compare(captured: CapturedTables, states: States) -> None:
    with progress_of("reading tables") as progress:
        captured.read_tables(states, lambda rows, note: progress(rows, None, note))
    with progress_of("reading topics") as progress:
        captured.read_topics(states, lambda records, note: progress(records, None, note))


def _repair(config: dict[str, str], parts: list[str], kafka: Any) -> str:
    """Send the signal. Returns its id."""
    from broker.client.blocking import BatchProducer
    from tidegate.verify.tables import repair_signal

    signal_id = str(uuid.uuid4())
    topic, key, value = repair_signal(config, parts, signal_id)
    with BatchProducer(kafka) as producer:
        producer.send(topic, key, value, partition=0)
    return signal_id


@verify.command()
@connector_argument()
@click.option(
    "--key", "keys", multiple=True, metavar="COLUMN", help="A column that identifies a row, of a sink that appends."
)
@_key_options
@_connector_options
def sink(
    name: str,
    keys: tuple[str, ...],
    key_from: str | None,
    key_to: str | None,
    ranges: int | None,
    limit: int,
    as_json: bool,
    **where: Any,
) -> None:
    """Compare what a sink wrote with its topics, row by row: tables by JDBC, of Iceberg and Delta, and files.

    Both sides are read up to the position that the table states, or the group's. Rows are found by the key that the sink
    changes them by. Rows that it appends are found by --key; without, only how often each row is there is compared.

    Example: tidegate verify sink warehouse --ranges 10
    """
    from connect.plugins.registry import load_plugins
    from tidegate.verify.rows import RowStates
    from tidegate.verify.sinks import compare_sink

    config, settings, kafka = _reached(name, **where)
    with RowStates((key_from, key_to)) as states, progress_of("comparing") as progress:
        compared = compare_sink(
            load_plugins(),
            settings,
            config,
            states,
            kafka=kafka,
            keys=keys,
            by_row=any((key_from, key_to, ranges)),
            progress=lambda note, done: progress(done, None, note),
        )
        told = _facts(states, limit, ranges) | {
            "targets": compared.targets,
            "records": compared.records,
            "refused": compared.refused,
            "reason": compared.reason,
            "changing": states.touched(),
            "positions": {str(partition): offset for partition, offset in compared.positions.items()},
            "shortened": [str(partition) for partition in compared.shortened],
        }
    if as_json:
        print_json(told)
    else:
        _print_differences(told, ("the target", "the topic"), part="target")
        _print_notes(told)
    if told["differing"]:
        raise click.exceptions.Exit(1)


def _print_notes(told: dict[str, Any]) -> None:
    if told["changing"]:
        click.echo(f"{told['changing']:,} more keys were being written, and were not compared", err=True)
    if told["refused"]:
        click.echo(f"{told['refused']:,} records are left out: the sink does not write them", err=True)
        if told["reason"]:
            click.echo(f"the first of them, {told['reason']}", err=True)
    if told["shortened"]:
        click.echo(
            f"the log of {', '.join(told['shortened'])} has lost its oldest records: rows that only the target has were "
            "not counted as differences",
            err=True,
        )
