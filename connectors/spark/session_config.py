"""Keys of the Spark that a connector runs on."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, at_least, config, family, key

__all__ = ["SparkSessionConfig"]


@config
class SparkSessionConfig:
    """The Spark to run on, and how long it stays."""

    master: str = key(
        "spark.master",
        default="local[*]",
        doc="The Spark to run on: local[N], spark://host:port, yarn, k8s://...",
        importance="high",
        group="Spark",
    )
    jars: list[str] = key(
        "spark.jars.extra",
        default=[],
        doc="Jars for the job, as Spark takes them, such as the driver of a database.",
        group="Spark",
    )
    warm_start: bool = key(
        "spark.warm.start",
        default=False,
        doc="Start Spark when the task starts, also where it is paused, so that the first job begins at once. By default the first job "
        "starts it.",
        group="Spark",
    )
    idle_timeout_ms: int = key(
        "spark.idle.timeout.ms",
        default=60_000,
        check=at_least(0),
        doc="How long a Spark session stays for the next job before it is given back.",
        group="Spark",
    )
    conf: dict[str, str] = family("spark.conf.", doc="Passed to Spark's configuration, prefix removed.")

    def problems(self) -> Iterable[Problem]:
        if self.master.startswith("sc:"):
            yield Problem(
                "spark.master",
                f"spark.master is {self.master!r}: a connector's driver needs the JVM of its own Spark, which Spark Connect does not give. "
                'Give local[N], spark://, yarn or k8s://, or read the topic in your own program with spark.read.format("tidegate")',
            )
