"""``tidegate connectors new|preview|test``: for authors of connectors, and for previews."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.cli.connectors.files import read_connector
from tidegate.cli.connectors.group import connectors
from tidegate.cli.credentials import credentials_for
from tidegate.cli.options import address_of, data_option, json_option, print_json, print_table
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.scrubbing import scrubbed
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from connect.api import RecordBatch, Schema
    from connect.preview import Preview

__all__: list[str] = []

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@connectors.command()
@click.argument("name")
@click.option("--sink", "kind", flag_value="sink", help="A sink.")
@click.option("--source", "kind", flag_value="source", default=True, help="A source of rows; the default.")
def new(name: str, kind: str) -> None:
    """Create a folder NAME with a new connector: the class, its configuration, its tests."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a connector: use words of small letters with hyphens, like orders-feed")
    folder = Path(name)
    if folder.exists():
        raise UsageError(f"{folder} is there already")
    words = {"distribution": name, "module": name.replace("-", "_"), "name": name.title().replace("-", "")}
    folder.mkdir()
    for template in sorted(
        resources.files(__package__).joinpath("templates", kind).iterdir(), key=lambda entry: entry.name
    ):
        target = template.name.removesuffix(".txt")
        stem = name if target.endswith(".json") else words["module"]
        path = folder / target.replace("connector", stem)
        path.write_text(Template(template.read_text()).substitute(words))
        click.echo(f"{path}")


@connectors.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-n", "rows", type=click.IntRange(min=1), default=10, show_default=True, help="How many rows.")
@click.option(
    "--timeout", "timeout_s", default=30.0, show_default=True, help="Seconds to wait for the first of them at most."
)
@click.option("--bootstrap-servers", metavar="LIST", help="Where a sink's topics are.")
@click.option("--registry", metavar="URL", help="The schema registry.")
@click.option(
    "--worker", type=click.Path(path_type=Path), help="A worker's properties file: its default converters and so on."
)
@data_option
@json_option
def preview(
    file: Path,
    rows: int,
    timeout_s: float,
    bootstrap_servers: str | None,
    registry: str | None,
    worker: Path | None,
    data: Path,
    as_json: bool,
) -> None:
    """Show what a connector would do, through its real transforms and converters; nothing is written.

    A source shows its first records and their schemas, and needs no platform. A sink reads its topics and shows its
    records and what it would write: names of objects, statements.
    """
    from connect.plugins.registry import load_plugins
    from connect.preview import facts
    from connect.preview import preview as shown
    from tidegate.kit.properties import read_properties

    name, config = read_connector(file)
    worker_properties = read_properties(worker) if worker is not None else {}
    credentials = credentials_for(data, bootstrap_servers or registry)
    settings = {
        **credentials.kafka,
        **credentials.registry,
        "bootstrap.servers": address_of("broker", data, bootstrap_servers, needed=False),
        **worker_properties,
    }
    with contextlib.suppress(UsageError):  # for a platform without one
        settings.setdefault("schema.registry.url", address_of("registry", data, registry, needed=False))
    with _importable(file.parent):
        properties = {"name": name, **{key: str(value) for key, value in config.items() if value is not None}}
        result = shown(load_plugins(), settings, properties, rows=rows, timeout_s=timeout_s)
    if as_json:
        print_json(facts(result))
    else:
        _print(result)
    if not result.batches and not result.actions:
        raise TidegateError(f"{name} delivered nothing within {timeout_s:g} s")


@connectors.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
def test(path: Path) -> None:
    """Test that a connector meets the runtime's requirements.

    PATH is a folder or a file with tests (the current folder by default), or the JSON of a source that holds a fixed
    content.
    """
    try:
        import pytest
    except ImportError as error:
        raise UsageError("testing connectors needs pytest: pip install pytest") from error
    if path.suffix != ".json":
        with _importable(path if path.is_dir() else path.parent):
            raise click.exceptions.Exit(int(pytest.main(["-q", "-p", "no:cacheprovider", str(path)])))
    with _importable(path.parent), tempfile.TemporaryDirectory(prefix="tidegate-suite-") as folder:
        module = Path(folder) / "test_source.py"
        name, config = read_connector(path)
        module.write_text(_SUITE.format(config={"name": name, **{key: str(value) for key, value in config.items()}}))
        raise click.exceptions.Exit(
            int(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", folder, str(module)]))
        )


_SUITE: Final = """\
import pytest

from connect.notebook import batches
from connect.plugins.registry import load_plugins
from connect.testing import SourceSuite

CONFIG = {config!r}


class TestSource(SourceSuite):
    connector_class = load_plugins().connector(CONFIG["connector.class"]).load()

    @pytest.fixture
    def properties(self):
        return CONFIG

    @pytest.fixture
    def expected_rows(self):
        return sum(map(len, batches(self.connector_class, CONFIG)))
"""


@contextlib.contextmanager
def _importable(folder: Path) -> Any:
    """Make ``module:Class`` next to the file importable."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def _print(result: Preview) -> None:
    for batch in result.batches:
        _print_batch(batch)
    if result.schemas:
        seen = {(schema.subject, schema.text): schema for schema in result.schemas}.values()
        rows = [
            [schema.subject, "id " + str(schema.schema_id) if schema.schema_id else "new", schema.text]
            for schema in seen
        ]
        print_table(["subject", "registered", "schema"], rows)
    for failure in result.left_out:
        click.echo(
            f"cannot be handled in {failure.stage} ({failure.component}): {scrubbed(str(failure.error))}", err=True
        )
    if result.actions:
        click.echo("The sink would do this:")
    for action in result.actions:
        click.echo(f"  {scrubbed(action)}")


def _print_batch(batch: RecordBatch) -> None:
    import json

    columns = [] if batch.value_schema is None else list(batch.value_schema.field_names)
    records = list(batch.records())
    keyed = any(record.key is not None for record in records)
    head = [*(["key"] if keyed else []), *(_column(batch.value_schema, name) for name in columns)] or ["value"]
    rows = []
    for record in records:
        cells: list[Any] = [json.dumps(record.key, default=str)] if keyed else []
        if columns:
            cells += [None if record.value is None else record.value[name] for name in columns]
        else:
            cells += [json.dumps(record.value, default=str, ensure_ascii=False)]
            head = [*(["key"] if keyed else []), "value"]
        rows.append(cells)
    click.echo(f"{batch.topic}: {counted(len(batch), 'row')}")
    print_table(head, rows)
    click.echo()


def _column(schema: Schema | None, name: str) -> str:
    assert schema is not None
    field = schema.field(name).schema
    kind = (field.name or field.type.value).rpartition(".")[2].lower()
    return f"{name} {kind}{'?' if field.optional else ''}"
