"""``tidegate examples``: small systems that come with Tidegate, to run, to copy and to change."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.kit.texts import counted

__all__ = ["examples"]


@click.group()
def examples() -> None:
    """List, run and copy the examples that come with Tidegate.

    Each is a folder with a README to follow in ten minutes.
    """


@examples.command("list")
@json_option
def list_examples(as_json: bool) -> None:
    """List the examples, with what this machine lacks to run them.

    Example: tidegate examples list
    """
    from tidegate.examples.catalog import examples as known_examples

    rows = [(example.name, example.title, " and ".join(example.lacks()) or None) for example in known_examples()]
    if as_json:
        print_json([dict(zip(("name", "title", "needs"), row, strict=True)) for row in rows])
    else:
        print_table(["example", "about", "needs"], rows)


@examples.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Run in this folder and keep it; without it the folder is temporary.",
)
def run(name: str, folder: Path | None) -> None:
    """Run an example: the commands of its README, one by one, on a fresh platform on free ports.

    Each command's output is compared with the README. The platform is stopped at the end, also after Ctrl-C.

    Example: tidegate examples run jdbc-to-parquet
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from tidegate.examples.catalog import example
    from tidegate.examples.run import run as run_example

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops the platform, as Ctrl-C does
    chosen = example(name)
    total = len(chosen.commands())
    console = Console(soft_wrap=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task(f"{name}: commands of its README", total=total)

        def on_command(number: int, text: str) -> None:
            progress.update(bar, completed=number - 1)
            progress.console.print(Text(f"$ {text}", style="bold"))

        def on_output(text: str) -> None:
            if text.strip():
                progress.console.print(Text(text.rstrip()))

        took = run_example(chosen, folder, on_command=on_command, on_output=on_output)
    where = "" if folder is None else f"; its files are in {folder}"
    click.echo(f"{name}: {counted(total, 'command')} printed what the README shows, in {took:.0f} s{where}")


@examples.command("copy")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to; without it a folder of the example's name.",
)
@done_option
def copy_example(name: str, folder: Path | None) -> None:
    """Copy an example, to follow its README by hand and to change it.

    Example: tidegate examples copy jdbc-to-parquet
    """
    from tidegate.examples.catalog import example
    from tidegate.examples.run import copy

    chosen = example(name)
    target = folder or Path(name)
    copy(chosen, target)
    done(f"{target / 'README.md'} says how to go on", example=name, action="copied", folder=str(target))
