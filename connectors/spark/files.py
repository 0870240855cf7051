"""DataFrames as files of a folder, each run's files once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectors.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["write"]


def write(spark: SparkSession, job: Job, frame: DataFrame, path: str) -> int:
    """Write to a folder aside, then move the files to their places under names that begin with the run's id.

    A run that was killed left files of the same id at most: they are deleted before the new ones move in.
    """
    staging = f"{path}/.staging-{job.run_id}"
    if job.files:
        frame = frame.repartition(job.files, *job.partition_by)
    elif job.partition_by:
        frame = frame.repartition(*job.partition_by)
    frame.write.mode("overwrite").format(job.format).partitionBy(*job.partition_by).save(staging)
    hadoop = spark._jvm.org.apache.hadoop.fs
    root = hadoop.Path(path)
    system = root.getFileSystem(spark._jsc.hadoopConfiguration())
    stem = f"part-{job.run_id}-"
    for old in _files(system, root):
        if old.getName().startswith(stem) and staging not in old.toString():
            system.delete(old, False)
    moved = 0
    base = hadoop.Path(staging)
    prefix = system.makeQualified(base).toString()
    for file in _files(system, base):
        if not file.getName().startswith("part-"):
            continue
        inner = file.getParent().toString().removeprefix(prefix).strip("/")
        target = hadoop.Path(root, inner) if inner else root
        system.mkdirs(target)
        ending = file.getName().partition(".")[2]
        if not system.rename(file, hadoop.Path(target, f"{stem}{moved:05d}.{ending}")):
            raise RuntimeError(f"could not move {file} to {target}: is there a file of that name?")
        moved += 1
    system.delete(base, True)
    return moved


def _files(system: Any, folder: Any) -> list[Any]:
    if not system.exists(folder):
        return []
    files, entries = [], system.listFiles(folder, True)
    while entries.hasNext():
        files.append(entries.next().getPath())
    return files
