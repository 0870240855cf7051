"""DataFrames as files of a folder, each run's files once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["write"]

_DENSITY: Final = {"parquet": 4, "orc": 4, "avro": 2}
"""How many bytes of a shuffle become a byte of a file, about; 1 in other formats."""
_MOST_PARTITIONS: Final = 200
"""Spark puts partitions of a shuffle together until they have the size, and divides them only where many tasks wrote them."""
_MOST_DEPTH: Final = 3
"""How deep files of a run are looked for at least: its first attempt may have had more columns to partition by."""
_DEFAULT_OPTIONS: Final = {"csv": {"header": "true"}}
_NO_MARK: Final = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""No file ``_SUCCESS``, which would not be moved: on a local disk Hadoop starts a process for the rights of each file."""


def write(
    spark: SparkSession, job: Job, frames: Sequence[DataFrame], path: str, *, wanted: Callable[[], bool] = lambda: True
) -> int:
    """Write to a folder aside, then move the files into the target under names that begin with the run's id. Returns their number.

    ``wanted`` is asked when they are written and not yet moved: if it says no, none of them is.

    A run that was killed left files of the same id at most: they are deleted before the new ones move in. With the mode overwrite
    the files of other runs are deleted then, in the folders that this run writes to.
    """
    staging = f"{path}/.staging-{job.run_id}"
    hadoop = spark._jvm.org.apache.hadoop.fs
    root, base = hadoop.Path(path), hadoop.Path(staging)
    system = root.getFileSystem(spark._jsc.hadoopConfiguration())
    system.delete(base, True)
    for number, frame in enumerate(frames):
        writer = _arranged(spark, job, frame).write.mode("overwrite").format(job.format)
        options = _NO_MARK | _DEFAULT_OPTIONS.get(job.format, {}) | job.options
        writer.options(**options).partitionBy(*job.partition_by).save(f"{staging}/{number}")
    stem = f"part-{job.run_id}-"
    for depth in range(max(_MOST_DEPTH, len(job.partition_by)) + 1):
        pattern = "/".join([_as_glob(path), *["*"] * depth, f"{stem}*"])
        for old in system.globStatus(hadoop.Path(pattern)) or ():
            if staging not in old.getPath().toString():
                system.delete(old.getPath(), False)
    moved, folders = 0, {}
    for number in range(len(frames) if wanted() else 0):
        prefix = system.makeQualified(hadoop.Path(f"{staging}/{number}")).toString()
        for file in _files(system, hadoop.Path(prefix)):
            if not file.getName().startswith("part-"):
                continue
            inner = file.getParent().toString().removeprefix(prefix).strip("/")
            target = folders[inner] = hadoop.Path(root, inner) if inner else root
            system.mkdirs(target)
            ending = file.getName().partition(".")[2]
            if not system.rename(file, hadoop.Path(target, f"{stem}{moved:05d}.{ending}")):
                raise RuntimeError(f"could not move {file} to {target}: is there a file of that name?")
            moved += 1
    if job.mode == "overwrite":
        for folder in folders.values():
            _delete_other_runs(system, folder, stem)
    system.delete(base, True)
    return moved


def _arranged(spark: SparkSession, job: Job, frame: DataFrame) -> DataFrame:
    """The rows divided into as many files as asked for. Without a wish, each folder gets one file."""
    if job.file_bytes:
        advisory = job.file_bytes * _DENSITY.get(job.format, 1)
        spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(advisory))
        spark.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
        spark.conf.set("spark.sql.adaptive.coalescePartitions.initialPartitionNum", str(_MOST_PARTITIONS))
        return frame.hint("rebalance", *job.partition_by)
    if job.files:
        return frame.repartition(job.files, *job.partition_by)
    return frame.repartition(*job.partition_by) if job.partition_by else frame


def _delete_other_runs(system: Any, folder: Any, stem: str) -> None:
    """Delete the data files in a folder that are not of this run; folders in it stay, and so do files that are not a run's."""
    for status in system.listStatus(folder):
        name = status.getPath().getName()
        if status.isFile() and name.startswith("part-") and not name.startswith(stem):
            system.delete(status.getPath(), False)


def _files(system: Any, folder: Any) -> list[Any]:
    """The files below a folder. ``listFiles`` would start a process for each on a local disk, which tells its rights."""
    if not system.exists(folder):
        return []
    files, folders = list[Any](), [folder]
    while folders:
        for status in system.listStatus(folders.pop()):
            (folders if status.isDirectory() else files).append(status.getPath())
    return files


def _as_glob(path: str) -> str:
    return re.sub(r"[\\*?{}\[\]]", r"\\\g<0>", path)
