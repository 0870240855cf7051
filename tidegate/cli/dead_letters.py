"""``tidegate dlq``: the records that sinks could not handle, and why; edited and sent back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

from tidegate.cli.connectors.reach import connector_names, rest_of
from tidegate.cli.credentials import naming_subjects, registry_client
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.kafka.positions import POSITION
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.worker import path_of
from tidegate.dead_letters.causes import common_message, shape_of
from tidegate.dead_letters.letter_queue import Queue, told_by_source
from tidegate.dead_letters.replaying import Edits, Plan
from tidegate.dead_letters.trying import MOST_TRIED, Trial, try_letters
from tidegate.kit.errors import UsageError
from tidegate.kit.texts import counted, time_text
from tidegate.records.decoding import decoder
from tidegate.records.exact_json import json_text
from tidegate.records.positions import Position

if TYPE_CHECKING:
    from tidegate.clients.rest import Rest

__all__ = ["dlq"]

F = TypeVar("F", bound=Callable[..., Any])

_TOPIC: Final = "errors.deadletterqueue.topic.name"
_CONTEXT: Final = "errors.deadletterqueue.context.headers.enable"
_EXAMPLES: Final = 3
_NAMED: Final = 10
"""The most letters that a line names."""


@click.group()
def dlq() -> None:
    """Look at dead letters, by cause, and send those of sinks back."""


def _dlq_options(function: F) -> F:
    for option in (
        click.option("--registry", metavar="URL", help="The registry that knows the schemas."),
        click.option("--connect", metavar="URL", help="The Connect worker to ask for the queue's topic."),
        click.option(
            "--topic", metavar="TOPIC", help="The queue's topic; by default the connector's configuration says it."
        ),
    ):
        function = option(function)
    return kafka_options(function)


_start_option = click.option(
    "--from",
    "start",
    type=POSITION,
    help="Where to start in the queue; by default the letters that were not sent back.",
)


@dlq.command("list")
@click.option("--connect", metavar="URL", help="The Connect worker to ask.")
@kafka_options
@json_option
def list_queues(connect: str | None, as_json: bool, data: Path, **where: Any) -> None:
    """List the connectors that have a dead letter queue, with how many records lie in it, and how many were not sent back."""
    rest = rest_of(data, connect)
    expanded = rest.call("GET", "/connectors", expand="info")
    topics = {name: entry["info"]["config"].get(_TOPIC) or "" for name, entry in sorted(expanded.items())}
    config = client_config(data, **where)

    async def ask() -> list[dict[str, Any]]:
        from broker.client import Admin

        async with Admin(config) as admin:
            there = set(await admin.list_topics(internal=True))
            rows = []
            for name, topic in topics.items():
                if not topic:
                    continue
                queue = Queue(config, name, topic)
                sizes = (await queue.sizes(admin)) if topic in there else []
                left = [letter.where async for letter in queue.open_letters(admin)] if topic in there else []
                rows.append({"connector": name, "topic": topic, "records": sum(sizes), "not sent back": len(left)})
            return rows

    rows = asyncio.run(ask())
    if as_json:
        print_json(rows)
    else:
        print_table(["connector", "topic", "records", "not sent back"], [list(row.values()) for row in rows])


@dlq.command()
@click.argument("connector", shell_complete=connector_names)
@_start_option
@click.option("--records", is_flag=True, help="Print every record as a JSON line, which `dlq replay --edits` takes.")
@_dlq_options
@json_option
def show(
    connector: str,
    start: Position | None,
    records: bool,
    topic: str | None,
    connect: str | None,
    registry: str | None,
    as_json: bool,
    data: Path,
    **where: Any,
) -> None:
    """Show why records of a connector lie in its dead letter queue: each cause with its count and examples.

    Example: tidegate dlq show orders-sink --records > letters.jsonl
    """
    queue = Queue(client_config(data, **where), connector, topic or _queue_of(rest_of(data, connect), connector))
    with registry_client(data, registry) as client:
        decode = decoder(client)
        letters = [letter.shown(decode) for letter in queue.letters(start)]
    if records:
        for shown in letters:
            click.echo(json_text(shown, constants=True))
        return
    by_cause: dict[tuple[str | None, str | None, str], list[dict[str, Any]]] = {}
    for shown in letters:
        by_cause.setdefault((shown.get("stage"), shown.get("error"), shape_of(shown.get("message", ""))), []).append(
            shown
        )
    causes: list[dict[str, Any]] = [
        {
            "stage": stage,
            "error": error,
            "message": None if stage is None else common_message([shown["message"] for shown in alike]),
            "count": len(alike),
            "examples": alike[:_EXAMPLES],
        }
        for (stage, error, _), alike in sorted(by_cause.items(), key=lambda item: -len(item[1]))
    ]
    if as_json:
        print_json({"connector": connector, "topic": queue.topic, "records": len(letters), "causes": causes})
        return
    click.echo(f"{counted(len(letters), 'letter')} of {connector} in {queue.topic}")
    for cause in causes:
        _print_cause(cause)


def _print_cause(cause: Mapping[str, Any]) -> None:
    examples = cause["examples"]
    columns = {
        "letter": [f"{letter['partition']}:{letter['offset']}" for letter in examples],
        "topic": [letter.get("topic", "") for letter in examples],
        "record": [letter.get("from", "") for letter in examples],
        "time": [time_text(letter["timestamp"]) for letter in examples],
        "value": [_short(letter["value"]) for letter in examples],
    }
    if cause["stage"] is None:
        click.echo(
            f"\n{counted(cause['count'], 'letter')} without context: with {_CONTEXT}=true a sink writes into later ones where "
            "they came from and what was wrong"
        )
        del columns["topic"], columns["record"]
    else:
        stage = f" in {cause['stage']}" if cause["stage"] else ""
        message = f": {cause['message']}" if cause["message"] else ""
        click.echo(f"\n{counted(cause['count'], 'time')} {cause['error'] or 'an error'}{stage}{message}")
    told = [each for letter in examples if (each := told_by_source(letter["value"])) is not None]
    if len(told) == len(examples) and "topic" not in examples[0]:
        del columns["topic"], columns["record"], columns["value"]
        whole = ("file", "error")
        columns |= {
            name: [each.get(name) if name in whole else _short(each.get(name)) for each in told] for name in told[0]
        }
    print_table([*columns], [list(row) for row in zip(*columns.values(), strict=True)])


@dlq.command()
@click.argument("connector", shell_complete=connector_names)
@_start_option
@click.option(
    "--edits",
    type=click.File(),
    help="What `dlq show --records` printed, edited: only the letters of its lines are sent, with their key and value.",
)
@click.option(
    "--subject",
    help="Encode values that the edits change as Avro with the newest schema of this subject, not as they were encoded.",
)
@click.option(
    "--skip-others",
    is_flag=True,
    help="Count letters that the edits leave out, up to their last line, as done.",
)
@click.option("--again", is_flag=True, help="Those that were sent back before and failed once more, and only those.")
@click.option("--to", "target", metavar="TOPIC", help="Send it there, in place of the topic it came from.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help=f"Ask the worker what the connector would do with the first {MOST_TRIED}, through its converters, transforms "
    "and sink; nothing is written.",
)
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@_dlq_options
@json_option
def replay(
    connector: str,
    start: Position | None,
    edits: TextIO | None,
    subject: str | None,
    skip_others: bool,
    again: bool,
    target: str | None,
    tries: bool,
    execute: bool,
    topic: str | None,
    connect: str | None,
    registry: str | None,
    as_json: bool,
    data: Path,
    **where: Any,
) -> None:
    """Send dead letters of a connector back to the topic and partition they came from, where the sink reads them again.

    Every other reader of that topic gets them again, too; --to names another topic. One transaction holds the records and
    a note of what was sent, so that the command goes on where it stopped, and sends each letter once. A record that fails
    once more comes back as another letter, which is left out: --again sends those. --edits names letters, those too.
    --from sends letters on purpose, also those that were sent before.

    Example: tidegate dlq replay orders-sink --execute
    """
    if skip_others and edits is None:
        raise click.UsageError("--skip-others is about letters that --edits leaves out")
    if tries and execute:
        raise click.UsageError("--try writes nothing and --execute sends the letters: give one of them")
    if subject is not None and edits is None:
        raise click.UsageError("--subject is about values that --edits changes")
    queue = Queue(client_config(data, **where), connector, topic or _queue_of(rest_of(data, connect), connector))
    with registry_client(data, registry) as client, naming_subjects(client):
        read = None if edits is None else Edits(edits, client, subject)
        plan = Plan(queue, read, target, again=again, skip_others=skip_others)
        plan.rehearse(start)
        if execute:
            plan.execute(start)
    trial = try_letters(rest_of(data, connect), connector, plan.first) if tries and plan.sent else None
    sent, skipped = plan.sent, plan.skipped
    if as_json:
        counts = {why: len(letters) for why, letters in skipped.items()}
        told = {"connector": connector, "executed": execute, "sent": dict(sent), "skipped": counts}
        print_json(told | {"letters": dict(skipped)} | ({} if trial is None else {"trial": asdict(trial)}))
        return
    for name, count in sorted(sent.items()):
        verb = "would be" if not execute else "is" if count == 1 else "are"
        click.echo(f"{counted(count, 'letter')} {verb} sent to {name}")
    for why, letters in sorted(skipped.items()):
        click.echo(f"{counted(len(letters), 'letter')} left out ({_listed(letters)}): {why}")
    if not sent and not skipped:
        click.echo(f"nothing of {connector} is left in {queue.topic}")
    if trial is not None:
        _print_trial(trial)
    if not execute:
        click.echo("nothing is changed: --execute does it")


def _listed(letters: Sequence[str]) -> str:
    return ", ".join(letters[:_NAMED]) + (", ..." if len(letters) > _NAMED else "")


def _print_trial(trial: Trial) -> None:
    click.echo(f"{counted(trial.count, 'letter')} tried: {len(trial.records):,} would reach the sink's task")
    if trial.dropped:
        click.echo(f"{counted(len(trial.dropped), 'letter')} dropped by a transform ({_listed(trial.dropped)})")
    for failed in trial.failed[:_NAMED]:
        click.echo(f"{failed.where} would fail again in {failed.stage}: {failed.error}")
    if len(trial.failed) > _NAMED:
        click.echo(f"{len(trial.failed) - _NAMED:,} more would fail again; --json names them all")
    for action in trial.actions[:_NAMED]:
        click.echo(f"the sink would: {action}")


def _queue_of(rest: Rest, connector: str) -> str:
    config = rest.call("GET", path_of(connector, "/config"))
    if not config.get(_TOPIC):
        raise UsageError(f"connector {connector} has no dead letter queue: {_TOPIC} names it")
    return str(config[_TOPIC])


def _short(value: Any, longest: int = 60) -> str:
    text = json_text(value, constants=True)
    return text if len(text) <= longest else text[: longest - 1] + "…"
