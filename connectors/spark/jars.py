"""Jars that Spark needs beside those of pip's pyspark: fetched once, by the Ivy that pyspark ships."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from connect.api import ConnectError
from connectors.spark.cache import arriving, cache_folder
from connectors.spark.java import trust_options

__all__ = ["PACKAGES", "Package", "fetch_jars", "packages_for"]

Package = tuple[str, str, str]
"""Organisation, module and version on Maven Central."""

PACKAGES: Final[Mapping[str, Sequence[Package]]] = {
    "avro": (("org.apache.spark", "spark-avro_2.13", "4.1.1"),),
    "iceberg": (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),),
    "delta": (("io.delta", "delta-spark_4.1_2.13", "4.3.1"), ("io.delta", "delta-storage", "4.3.1")),
}
"""The jars that formats of output need; the others need none. They are for the pyspark that is pinned: Spark's version is in their names."""
_OF_S3: Final[Sequence[Package]] = (
    ("org.apache.hadoop", "hadoop-aws", "3.4.2"),
    ("org.apache.iceberg", "iceberg-aws-bundle", "1.12.0"),
    ("software.amazon.awssdk", "apache-client", "2.29.52"),
    ("software.amazon.awssdk", "s3-transfer-manager", "2.29.52"),
    ("org.apache.httpcomponents", "httpclient", "4.5.14"),
    ("org.apache.httpcomponents", "httpcore", "4.4.16"),
)
"""The jars of ``s3a:`` paths and Iceberg's S3FileIO: Hadoop's file system for the Hadoop that is in pyspark. Iceberg's bundle of Amazon's
SDK has 69 MB; Amazon's own, which hadoop-aws asks for, has ten times that."""


def packages_for(format_: str, conf: Mapping[str, str], *paths: str | None) -> list[Package]:
    """The packages for a job of this format, with these settings of its session, that reads or writes these paths."""
    on_s3 = any((path or "").startswith("s3a:") for path in (*paths, *conf.values()))
    by_file_io = any(value.endswith("S3FileIO") for value in conf.values())
    return [*PACKAGES.get(format_, ()), *(_OF_S3 if on_s3 or by_file_io else ())]


def fetch_jars(java_home: Path, scratch: Path, packages: Sequence[Package]) -> list[Path]:
    """Exactly the jars of ``packages``, none of what they depend on; fetched if they are not there yet.

    Raises ConnectError with Ivy's words when that fails.
    """
    folder = cache_folder() / "spark-jars"
    jars = [folder / f"{module}-{revision}.jar" for _, module, revision in packages]
    if all(jar.is_file() for jar in jars):
        return jars
    description = scratch / "ivy.xml"
    description.write_text(_ivy_file(packages))
    with arriving(folder) as there:
        command: list[str | Path] = [
            java_home / "bin" / "java",
            *trust_options(java_home, scratch),
            "-jar", _ivy_jar(),
            "-cache", scratch / "ivy-cache",
            "-ivy", description,
            "-confs", "default",
            "-retrieve", f"{there}/[artifact]-[revision].[ext]",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired as error:
            raise ConnectError("fetching Spark's jars took longer than 300 s; is the network there?") from error
        for jar in there.glob("*.jar"):
            jar.replace(folder / jar.name)
    missing = [jar.name for jar in jars if not jar.is_file()]
    if done.returncode or missing:
        words = "\n".join(line for line in done.stdout.splitlines() if "WARN" in line or "ERROR" in line)[-1500:]
        raise ConnectError(f"could not fetch {', '.join(missing) or 'jars'} for Spark:\n{words}{done.stderr[-500:]}")
    return jars


def _ivy_jar() -> Path:
    import pyspark

    return next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))


def _ivy_file(packages: Sequence[Package]) -> str:
    rows = "".join(
        f'<dependency org="{org}" name="{module}" rev="{revision}" conf="default->master" transitive="false"/>'
        for org, module, revision in packages
    )
    return (
        '<ivy-module version="2.0"><info organisation="tidegate" module="spark-jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{rows}</dependencies></ivy-module>'
    )
