"""``tidegate spark``: what a Spark cluster needs of Tidegate."""

from __future__ import annotations

import importlib.util
import platform
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final

import click

from tidegate.cli.connectors.files import read_connector
from tidegate.cli.credentials import registry_properties
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import done, done_option, json_option, print_json
from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole

__all__ = ["spark"]

_OURS: Final = ("broker", "registry", "tidegate", "pyspark_tidegate")
"""The packages that the data source ``tidegate`` runs."""
_LEFT_OUT: Final = frozenset(("__pycache__", "tests", "include"))
"""Folders of packages that nothing imports when a job runs; pyarrow's and numpy's are large."""


@click.group()
def spark() -> None:
    """Spark: ship the data source to executors, write a connector as a pipeline."""


@spark.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def pack(file: Path, as_json: bool) -> None:
    """Pack the data source and what it imports into FILE (.tar.gz), for executors that have nothing but Python and Spark.

    The archive holds what is installed here, so it is for this version of Python and this platform.
    """
    if not file.name.endswith((".tar.gz", ".tgz")):
        raise UsageError(f"the file is {file}: Spark unpacks .tar.gz and .tgz, so its name must end so")
    names = _requirements("tidegate")
    # Not named by what it is made for until it is whole.
    part = file.with_name(f"{file.name}.part")
    try:
        with tarfile.open(part, "w:gz", compresslevel=3) as archive:
            for path, name in _files(names):
                archive.add(path, name, recursive=False)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    made = {
        "file": str(file),
        "bytes": file.stat().st_size,
        "python": f"{platform.python_implementation()} {version}",
        "platform": sysconfig.get_platform(),
        "distributions": {name: metadata.version(name) for name in ("tidegate", *sorted(names))},
    }
    if as_json:
        print_json(made)
        return
    click.echo(
        f"{file}: {file.stat().st_size / 1e6:.0f} MB, for {made['python']} on {made['platform']}, as executors must have\n"
        f"spark.archives={file}#tidegate\nspark.executorEnv.PYTHONPATH=tidegate"
    )


@spark.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
@done_option
def pipeline(
    file: Path,
    folder: Path,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
) -> None:
    """Write the SparkTransform connector in FILE as a project of Spark Declarative Pipelines into FOLDER, for `spark-pipelines run`.

    FOLDER gets spark-pipeline.yml and a module with the topics, the query and the target. A key that a
    project has nothing like is refused by name. Passwords are not written: add the options of a secured cluster to the module.

    Example: tidegate spark pipeline sales-by-hour.json sales-by-hour
    """
    from connectors.spark.pipeline_project import project_of

    name, config = read_connector(file)
    kafka = client_config(data, bootstrap_servers, properties, command_config)
    address = registry_properties(data, registry).get("schema.registry.url", "")
    texts = project_of(name, config, {"bootstrap.servers": kafka.bootstrap_servers}, address)
    for path in texts:
        if (folder / path).exists():
            raise UsageError(f"{folder / path} exists: give a folder without it")
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / path, text)
        done(str(folder / path), file=str(folder / path))


def _requirements(root: str) -> set[str]:
    """The distributions that a distribution needs without its extras, and those that they need. Raises UsageError for one that
    is not installed."""
    from packaging.requirements import Requirement

    found: dict[str, frozenset[str]] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(root, frozenset())]
    while waiting:
        name, extras = waiting.pop()
        if extras <= found.get(name, frozenset()) and name in found:
            continue
        found[name] = found.get(name, frozenset()) | extras
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            raise UsageError(f"{name} is not installed, and the archive needs it: pip install {name}") from None
        for text in requires:
            requirement = Requirement(text)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *found[name])
            ):
                waiting.append((_normalized(requirement.name), frozenset(requirement.extras)))
    return set(found) - {root}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files(distributions: set[str]) -> Iterator[tuple[Path, str]]:
    """The files of the archive, with their names there."""
    for package in _OURS:
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.origin is not None, package
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*")):
            name = PurePosixPath(package, path.relative_to(folder).as_posix())
            if path.is_file() and _is_used(name):
                yield path, str(name)
    for distribution in sorted(distributions):
        for file in metadata.files(distribution) or []:
            path = Path(str(file.locate()))
            # Scripts and data files lie outside of the folder of modules.
            if ".." not in file.parts and not file.is_absolute() and path.is_file() and _is_used(file):
                yield path, file.as_posix()


def _is_used(name: PurePosixPath) -> bool:
    return not _LEFT_OUT.intersection(name.parts[:-1])
