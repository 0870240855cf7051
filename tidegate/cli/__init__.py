"""The command line. Each family of commands is a module in this package, imported when one of them is called."""

from __future__ import annotations

import importlib
import logging
import os
import select
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from tidegate.kit.errors import TidegateError
from tidegate.kit.scrubbing import Secrets, knowing

__all__ = ["main"]

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "up": ("tidegate.cli.up:up", "Start the platform: broker, registry, connect, events and console."),
    "down": ("tidegate.cli.up:down", "Stop the platform."),
    "status": ("tidegate.cli.up:status", "Show what runs, where, and how much memory it takes."),
    "restart": ("tidegate.cli.up:restart", "Restart a component of the running platform; the others go on."),
    "top": ("tidegate.cli.top:top", "Watch connectors and components: rows, lag, errors, dead letters, memory."),
    "serve": ("tidegate.cli.serve:serve", "Run one component alone."),
    "topics": ("tidegate.cli.kafka.topics:topics", "List, describe, create, alter and delete topics."),
    "groups": ("tidegate.cli.kafka.groups:groups", "List, describe, reset and delete consumer groups; their lag."),
    "produce": ("tidegate.cli.kafka.produce:produce", "Write lines to a topic."),
    "consume": ("tidegate.cli.kafka.consume:consume", "Read a topic as JSON lines."),
    "records": ("tidegate.cli.kafka.records:records", "Delete the oldest records of a topic."),
    "acls": ("tidegate.cli.kafka.acls:acls", "List, add and remove access control entries."),
    "quotas": ("tidegate.cli.kafka.quotas:quotas", "List, set and remove quotas of users and clients."),
    "scram": ("tidegate.cli.kafka.scram:scram", "List, set and delete SCRAM passwords."),
    "schemas": ("tidegate.cli.schemas:schemas", "List, get, register, check, diff and delete schemas."),
    "connectors": ("tidegate.cli.connectors:connectors", "Manage connectors; write, preview and test your own."),
    "lineage": ("tidegate.cli.lineage:lineage", "Show from where to where records have moved, to the column."),
    "jobs": ("tidegate.cli.jobs:jobs", "List the jobs of connectors such as Spark's, show their runs, run them now."),
    "dlq": ("tidegate.cli.dead_letters:dlq", "Look at dead letters by cause, edit them, send them back."),
    "loggers": ("tidegate.cli.loggers:loggers", "List and set levels of loggers of a worker or broker."),
    "events": ("tidegate.cli.events:events", "Define, list, publish and follow platform events."),
    "sql": ("tidegate.cli.sql:sql", "Query topics with Spark SQL and print the result."),
    "spark": ("tidegate.cli.spark:spark", "Ship the Spark data source to executors."),
    "secure": ("tidegate.cli.secure:secure", "TLS, users and rights for all faces of a platform."),
    "users": ("tidegate.cli.secure:users", "Manage the users that may log in to the platform, and their roles."),
    "use": ("tidegate.cli.use:use", "Choose which platform commands talk to, from any folder."),
    "export": ("tidegate.cli.configuration:export", "Write what is configured on a platform as files."),
    "import": ("tidegate.cli.configuration:import_", "Create and change what `export` wrote."),
    "backup": ("tidegate.cli.backup:backup", "Write records, positions and configuration to a folder or S3."),
    "restore": ("tidegate.cli.backup:restore", "Restore a backup into this platform or another Kafka, and compare."),
    "move": ("tidegate.cli.move:move", "Move all that a platform has to another one, by steps, and verify it."),
    "verify": (
        "tidegate.cli.verify:verify",
        "Compare two topics, or tables, sinks and their topics; show what differs.",
    ),
    "demo": ("tidegate.cli.demo:demo", "The whole path on real input: 336,776 flights from a database to Parquet."),
    "examples": ("tidegate.cli.examples:examples", "List, run and copy the examples that come with Tidegate."),
}


class _ReaderGone(Exception):
    """The reader of our output has ended (`consume TOPIC | head -n 1`): nothing is wrong."""


def _is_reader_gone() -> bool:
    """Whether standard output is the pipe that broke, and not a connection."""
    output = select.poll()
    output.register(1, 0)  # errors are told in any case
    return bool(output.poll(0))


class _Commands(click.Group):
    """The commands of the table above; a family's module is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if not _is_reader_gone():
                raise TidegateError(f"a connection was lost: {error}") from error
            raise _ReaderGone from error  # click would end with 1

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=_COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--context",
    envvar="TIDEGATE_CONTEXT",
    show_envvar=True,
    metavar="NAME",
    help="Talk to the platform of this context (tidegate use).",
)
@click.version_option(package_name="tidegate")
@click.pass_context
def tidegate(ctx: click.Context, context: str | None) -> None:
    """Tidegate: connectors, a partitioned log, an Avro schema registry, platform events and Spark bulk loads."""
    ctx.meta["tidegate.context"] = context


def _show_warnings() -> None:
    """Warnings of ours and of connectors (``kit.logs.get_logger``) are lines on standard error. Those of libraries are dropped: the
    error that follows says everything about a failed connection.
    """
    from tidegate.kit.log_throttle import Throttle

    lines = logging.StreamHandler()
    lines.setLevel(logging.WARNING)
    lines.setFormatter(logging.Formatter("warning: %(message)s"))
    lines.addFilter(lambda record: hasattr(record, "structured"))
    lines.addFilter(Throttle())
    logging.getLogger().addHandler(lines)


def main() -> None:
    """The entry point: errors are one line on standard error, with status 1 (2 for wrong usage)."""
    from tidegate.cli.shadows import refuse_shadowed_packages

    _show_warnings()
    secrets = Secrets()
    try:
        refuse_shadowed_packages()
        with knowing(secrets):
            status = tidegate(standalone_mode=False)  # the argument of click.exceptions.Exit, else None
        sys.exit(status if isinstance(status, int) else 0)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except TidegateError as error:
        print(secrets.scrub(f"error: {error}"), file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except _ReaderGone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes nowhere
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TIDEGATE_DEBUG"):
            raise
        kind = "" if isinstance(error, OSError) else f"unforeseen {type(error).__name__}: "
        print(secrets.scrub(f"error: {kind}{error} (TIDEGATE_DEBUG=1 shows where)"), file=sys.stderr)
        sys.exit(1)
