"""New files of a folder, oldest first.

The position is the time of the newest file that was loaded, and a mark of each file that is hardly older: a file that appears with
an older time than the newest one, because another machine's clock is late or its upload took long, is still found. So the position
is bounded by the files of ``late_ms``, however many there have been.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connectors.spark.inputs.planned import Planned
from connectors.spark.load import Load
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["new_files", "read", "whole"]

_MOST_MARKS: Final = 40_000
_DEFAULT_OPTIONS: Final = {"csv": {"header": "true"}}


class _File(NamedTuple):
    modified_ms: int
    path: str
    size: int

    @property
    def mark(self) -> str:
        return hashlib.blake2b(f"{self.path} {self.size} {self.modified_ms}".encode(), digest_size=6).hexdigest()


def read(spark: SparkSession, load: Load, *paths: str) -> DataFrame:
    """The rows of files, with the columns that the names of their folders give."""
    reader = spark.read.format(load.format).options(**_DEFAULT_OPTIONS.get(load.format, {}) | load.options)
    if load.schema:
        reader = reader.schema(load.schema)
    return reader.option("basePath", load.path).load(list(paths))


def whole(spark: SparkSession, load: Load) -> DataFrame:
    return read(spark, load, load.path)


def new_files(spark: SparkSession, load: Load, position: Mapping[str, Any] | None) -> Planned | None:
    """The files that were not loaded, at most ``most_files`` of them; None where there is none."""
    newest = int(position["modified_ms"]) if position else 0
    marks = set(str(position["recent"]).split()) if position else set()
    listed = list(_listed(spark, load.path))
    new = sorted(
        file
        for file in listed
        if file.modified_ms > newest - load.late_ms and (file.modified_ms > newest or file.mark not in marks)
    )
    if not new:
        return None
    chosen = new[: load.most_files] if load.most_files else new
    after = max(newest, chosen[-1].modified_ms)
    # Marks of files that were loaded before are kept as long as their files could be taken for new ones.
    there = {file.mark for file in listed if file.modified_ms > after - load.late_ms}
    recent = sorted((marks & there) | {file.mark for file in chosen if file.modified_ms > after - load.late_ms})
    if len(recent) > _MOST_MARKS:
        raise UsageError(
            f"{len(recent)} files of {load.path} are of the last {load.late_ms} ms, too many for a position: lower "
            "spark.input.late.ms"
        )
    frame = read(spark, load, *(file.path for file in chosen))
    size = sum(file.size for file in chosen)
    note = f"{len(chosen)} {'file' if len(chosen) == 1 else 'files'} of {size} bytes"
    return Planned(frame, {"modified_ms": after, "recent": " ".join(recent)}, note, more=len(chosen) < len(new))


def _listed(spark: SparkSession, path: str) -> Iterator[_File]:
    """The files of a folder and those below it, without those that Spark does not read either. Raises UsageError where there is no
    folder."""
    jvm = spark._jvm
    root = jvm.org.apache.hadoop.fs.Path(path)
    system = root.getFileSystem(spark._jsc.hadoopConfiguration())
    if not system.exists(root):
        raise UsageError(f"there is no folder {path}, which spark.input.path names")
    base = system.makeQualified(root).toString()
    if base.startswith("file:/"):
        yield from _listed_here(base.removeprefix("file:"))
        return
    entries = system.listFiles(root, True)
    while entries.hasNext():
        entry = entries.next()
        name = entry.getPath().toString()
        inner = name.removeprefix(base).strip("/").split("/")
        if not any(_is_hidden(part) for part in inner) and entry.getLen():
            yield _File(int(entry.getModificationTime()), name, int(entry.getLen()))


def _listed_here(folder: str) -> Iterator[_File]:
    """Those on a local disk, for each of which Hadoop would start a process that tells its rights. Names are as Hadoop's.

    Raises UsageError for a name that is no UTF-8, which Spark can't read.
    """
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.is_file() and (size := (state := entry.stat()).st_size):
                    _require_text(entry.path)
                    yield _File(state.st_mtime_ns // 1_000_000, f"file:{entry.path}", size)


def _require_text(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the name of the file {os.fsencode(path)!r} is not UTF-8: rename it") from error


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name
