"""Looking at connectors and at what the worker can run: list, status, show, topics, plugins, help."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
from click.shell_completion import CompletionItem

from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.offsets import compact
from tidegate.cli.connectors.progress import PART_COLUMNS, is_unfinished, part_rows, summary_of
from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.options import DEFAULT_DATA, echo_error, json_option, print_json, print_table
from tidegate.clients.counts import counts_of, error_of, totals_of
from tidegate.clients.rest import NotThere, Rest
from tidegate.clients.worker import masked_config, path_of, statistics_of, workers_in
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError
from tidegate.kit.texts import counted

__all__ = ["status_with_counts", "tell_missing_topics_of"]

_IMPORTANCES: Final = ("HIGH", "MEDIUM", "LOW")


def status_with_counts(status: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    """A status of Connect's REST API, each task with its ``counts`` and its ``progress``: None where the worker does not
    tell them.
    """
    tasks = counted.get(status["name"], {})
    return {
        **status,
        "tasks": [
            {
                **task,
                "counts": counts_of(tasks[task["id"]]) if task["id"] in tasks else None,
                "progress": tasks.get(task["id"], {}).get("progress"),
            }
            for task in status["tasks"]
        ],
    }


def _listed(rest: Rest) -> dict[str, Any]:
    """All connectors by name, each with its ``status`` with counts."""
    answer: dict[str, Any] = rest.call("GET", "/connectors", expand="status")
    statuses = [entry["status"] for entry in answer.values()]
    counted = statistics_of(rest, workers_in(statuses), echo_error) if statuses else {}
    for entry in answer.values():
        entry["status"] = status_with_counts(entry["status"], counted)
    return answer


def tell_missing_topics_of(rest: Rest, names: Container[str]) -> None:
    """A line for each of the connectors that waits for topics."""
    for name, entry in sorted(_listed(rest).items()):
        if name in names:
            _tell_missing_topics(name, entry["status"]["tasks"])


@connectors.command("list")
@connect_options
@json_option
def list_connectors(data: Path, connect: str | None, as_json: bool) -> None:
    """List connectors with their states, and how many records went to their dead letter queues.

    Example: tidegate connectors list
    """
    answer = _listed(rest_of(data, connect))
    if as_json:
        print_json(answer)
        return
    rows = []
    for name, entry in sorted(answer.items()):
        status = entry["status"]
        states = [task["state"] for task in status["tasks"]]
        summary = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
        rows.append([name, status["type"], status["connector"]["state"], summary, *_lost(status["tasks"])])
    print_table(["connector", "type", "state", "tasks", "skipped", "dead letters"], rows)
    for name, entry in sorted(answer.items()):
        _tell_missing_topics(name, entry["status"]["tasks"])


def _lost(tasks: Sequence[Mapping[str, Any]]) -> list[Any]:
    totals = _totals(tasks)
    return [totals["skipped"], totals["dead_letters"]]


def _totals(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return totals_of(task["counts"] for task in tasks if task["counts"] is not None)


@connectors.command()
@connector_argument()
@connect_options
@json_option
def status(name: str, data: Path, connect: str | None, as_json: bool) -> None:
    """Show the state of a connector and its tasks, the reason of a failure, what each task left out, and how far a
    snapshot of tables has come.

    Example: tidegate connectors status orders
    """
    rest = rest_of(data, connect)
    answer = rest.call("GET", path_of(name, "/status"))
    answer = status_with_counts(answer, statistics_of(rest, workers_in([answer]), echo_error))
    if as_json:
        print_json(answer)
        return
    rows: list[list[Any]] = [
        ["connector", answer["connector"]["state"], answer["connector"]["worker_id"], None, None, None]
    ]
    for task in answer["tasks"]:
        counts = task["counts"] or {}
        lost = [counts.get("rows"), counts.get("skipped"), counts.get("dead_letters")]
        rows.append([f"task {task['id']}", task["state"], task["worker_id"], *lost])
    print_table([name, "state", "worker", "rows", "skipped", "dead letters"], rows)
    for task in answer["tasks"]:
        if task["progress"] is not None and is_unfinished(task["progress"]):
            click.echo(f"\n{summary_of(task['progress'])}")
            print_table(PART_COLUMNS, list(part_rows(task["progress"])))
    for part in (answer["connector"], *answer["tasks"]):
        if part.get("trace"):
            click.echo(f"\n{part['trace'].strip()}")
    _tell_missing_topics(name, answer["tasks"])
    _tell_losses(rest, name, answer)


def _tell_missing_topics(name: str, tasks: Iterable[Mapping[str, Any]]) -> None:
    """A line if a sink waits for topics: nothing else would show that a name is wrong."""
    if missing := _totals(tasks)["missing_topics"]:
        topics = ", ".join(missing)
        click.echo(
            f"\n{name} waits for topics that do not exist: {topics} (`tidegate topics list` lists all)", err=True
        )


def _tell_losses(rest: Rest, name: str, answer: Mapping[str, Any]) -> None:
    """One line if records were left out although everything runs."""
    totals = _totals(answer["tasks"])
    if not totals["skipped"]:
        return
    queue = rest.call("GET", path_of(name, "/config")).get("errors.deadletterqueue.topic.name")
    letters = totals["dead_letters"]
    if queue and letters:
        where = f"{letters:,} of them in its dead letter queue {queue}: `tidegate dlq show {name}` says why"
    else:
        where = f"none is in its dead letter queue {queue}" if queue else "none is kept"
    click.echo(f"\nleft out since the tasks started: {counted(totals['skipped'], 'record')}; {where}", err=True)


@connectors.command()
@connector_argument()
@connect_options
@json_option
def show(name: str, data: Path, connect: str | None, as_json: bool) -> None:
    """Show all about a connector: its configuration without secrets, tasks, positions and lag, topics, dead letters and
    the last error.

    Example: tidegate connectors show orders
    """
    rest = rest_of(data, connect)
    told = _all_about(rest, name)
    if as_json:
        print_json(told)
        return
    click.echo(f"{name}  {told['type']}  {told['class']}  {told['state']}")
    click.echo("\nconfiguration")
    print_table(["key", "value"], [[key, value] for key, value in told["config"].items()])
    rows = []
    for task in told["tasks"]:
        counts = task["counts"] or {}
        rows.append(
            [f"task {task['id']}", task["state"], task["worker_id"]]
            + [counts.get(column) for column in ("rows", "rows_per_s", "lag", "skipped", "dead_letters")]
        )
    if rows:
        columns = ["task", "state", "worker", "rows", "rows/s", "lag", "skipped", "dead letters"]
        click.echo("\ntasks")
        print_table(columns, rows)
    if told["offsets"]:
        shown = [[compact(o["partition"]), compact(o["offset"]), o["lag"]] for o in told["offsets"]]
        click.echo("\npositions")
        print_table(["partition", "committed offset", "lag"], shown)
    _tell_missing_topics(name, told["tasks"])
    if told["topics"]:
        click.echo(f"\ntopics: {', '.join(told['topics'])}")
    letters = told["dead_letters"]
    if letters["topic"] or letters["records"]:
        click.echo(f"\ndead letters: {letters['records'] or 0:,} since the tasks started, to {letters['topic'] or '-'}")
    if (error := told["error"]) is not None:
        click.echo(f"\nlast error ({error['part']}): {error['message']}")


def _all_about(rest: Rest, name: str) -> dict[str, Any]:
    info = rest.call("GET", path_of(name))
    config = info["config"]
    try:
        status = rest.call("GET", path_of(name, "/status"))
    except NotThere:  # it follows the configuration a moment later
        status = {"name": name, "connector": {"state": "UNASSIGNED", "worker_id": ""}, "tasks": []}
    counted = statistics_of(rest, workers_in([status]), echo_error)
    status = status_with_counts(status, counted)
    totals = _totals(status["tasks"])
    lags = {
        (lag["topic"], lag["partition"]): lag["lag"] for task in counted.get(name, {}).values() for lag in task["lags"]
    }
    offsets = _unless_missing(rest, path_of(name, "/offsets"))
    topics = _unless_missing(rest, path_of(name, "/topics"))
    return {
        "name": name,
        "type": info.get("type"),
        "class": config.get("connector.class"),
        "state": status["connector"]["state"],
        "worker_id": status["connector"]["worker_id"],
        "config": masked_config(rest, config),
        "tasks": [{key: value for key, value in task.items() if key != "trace"} for task in status["tasks"]],
        "offsets": None
        if offsets is None
        else [
            {**o, "lag": lags.get((o["partition"].get("kafka_topic"), o["partition"].get("kafka_partition")))}
            for o in offsets["offsets"]
        ],
        "topics": None if topics is None else topics[name]["topics"],
        "dead_letters": {
            "topic": config.get("errors.deadletterqueue.topic.name") or None,
            "records": totals["dead_letters"],
            "skipped": totals["skipped"],
        },
        "error": _error_in(status),
    }


def _unless_missing(rest: Rest, path: str) -> Any:
    """None if the worker does not offer this: older ones have no offsets, and topics may be turned off."""
    try:
        return rest.call("GET", path)
    except TidegateError:
        return None


def _error_in(status: Mapping[str, Any]) -> dict[str, Any] | None:
    parts = [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]
    for part, told in parts:
        if told.get("trace"):
            return {"part": part, "message": error_of(told["trace"]), "trace": told["trace"]}
    return None


@connectors.command()
@connector_argument()
@click.option("--reset", is_flag=True, help="Forget the topics it has used so far.")
@connect_options
@json_option
def topics(name: str, reset: bool, data: Path, connect: str | None, as_json: bool) -> None:
    """List the topics that a connector has written to or read from.

    Example: tidegate connectors topics orders
    """
    rest = rest_of(data, connect)
    rest.call("GET", path_of(name))  # the call below knows nothing of names that are wrong
    if reset:
        rest.call("PUT", path_of(name, "/topics/reset"))
        click.echo(f"the topics of {name} are forgotten", err=True)
        return
    used = rest.call("GET", path_of(name, "/topics"))[name]["topics"]
    if as_json:
        print_json({"name": name, "topics": used})
        return
    for topic in used:
        click.echo(topic)


@connectors.command()
@connect_options
@json_option
def plugins(data: Path, connect: str | None, as_json: bool) -> None:
    """List the plugins that the worker can run.

    Example: tidegate connectors plugins --json
    """
    plugins_ = rest_of(data, connect).call("GET", "/connector-plugins", connectorsOnly="false")
    if as_json:
        print_json(plugins_)
    else:
        print_table(["class", "type", "version"], [[p["class"], p["type"], p.get("version")] for p in plugins_])


def _plugin_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        rest = rest_of(Path(ctx.params.get("data") or DEFAULT_DATA), ctx.params.get("connect"), timeout_s=2)
        classes = [plugin["class"] for plugin in rest.call("GET", "/connector-plugins", connectorsOnly="false")]
    except TidegateError:
        return []
    short = [name.rpartition(".")[2] for name in classes]
    return [CompletionItem(name) for name in sorted({*classes, *short}) if name.startswith(incomplete)]


@connectors.command("help")
@click.argument("class_name", metavar="CLASS", shell_complete=_plugin_names)
@click.option("--match", metavar="TEXT", help="Only keys that have this text in their name or description.")
@connect_options
@json_option
def help_(class_name: str, match: str | None, data: Path, connect: str | None, as_json: bool) -> None:
    """Show the keys of a class, as the worker knows it: a connector, transformation, predicate or converter, by its
    Java name or a short one.

    Keys that every connector has are in docs/reference/config/connector.md.

    Example: tidegate connectors help JdbcSink --match primary
    """
    rest = rest_of(data, connect)
    try:
        keys = rest.call("GET", f"/connector-plugins/{quote(class_name, safe='')}/config")
    except NotThere as error:
        raise TidegateError(_no_class(rest, class_name)) from error
    if match is not None:
        words = match.lower()
        keys = [key for key in keys if words in f"{key['name']} {key['documentation'] or ''}".lower()]
    if as_json:
        print_json(keys)
        return
    if not keys:
        click.echo(f"{class_name} has no key" + (f" with {match!r} in its name or description" if match else ""))
        return
    _print_keys(keys)


def _no_class(rest: Rest, class_name: str) -> str:
    classes = [plugin["class"] for plugin in rest.call("GET", "/connector-plugins", connectorsOnly="false")]
    by_short = {short: name for name in classes for short in _short_names(name)}
    near = nearest_name(class_name.rpartition(".")[2], by_short)
    hint = f"; did you mean {by_short[near]}?" if near else ""
    return f"the worker has no class {class_name}{hint} (`tidegate connectors plugins` lists all)"


def _short_names(name: str) -> set[str]:
    short = name.rpartition(".")[2]
    return {short, short.removesuffix("Connector")}


def _print_keys(keys: Sequence[Mapping[str, Any]]) -> None:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for key in keys:
        groups.setdefault(key["group"] or "", []).append(key)
    width = min(shutil.get_terminal_size().columns, 100)
    for group, members in groups.items():
        if group:
            click.echo(click.style(f"\n{group}", bold=True))
        for key in sorted(members, key=lambda key: (key["order_in_group"], _IMPORTANCES.index(key["importance"]))):
            default = key["default_value"]
            ending = "required" if key["required"] else f"default {'-' if default in (None, '') else default}"
            click.echo(f"  {click.style(key['name'], bold=True)}  {key['type'].lower()}, {ending}")
            for line in textwrap.wrap(key["documentation"] or "", width - 6):
                click.echo(f"      {line}")
