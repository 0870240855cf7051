"""Keys of the Spark pipeline."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, config, family, key

__all__ = ["SparkPipelineConfig"]


@config
class SparkPipelineConfig:
    """The project to run, and the Spark to run it on. Scheduling keys (``job.*``) are the runtime's, common to all job sinks."""

    spec: str = key(
        "spark.pipeline.spec",
        doc="The file spark-pipeline.yml of the project, an absolute path on the worker's machine.",
        importance="high",
        group="Pipeline",
    )
    remote: str = key(
        "spark.remote",
        default="local[*]",
        doc="The Spark to run on: local[N], for which each run starts a Spark Connect server of its own, or the sc:// address of one.",
        importance="high",
        group="Spark",
    )
    conf: dict[str, str] = family("spark.conf.", doc="Passed to Spark's configuration, prefix removed.")

    def problems(self) -> Iterable[Problem]:
        if not self.spec.startswith("/"):
            yield Problem("spark.pipeline.spec", f"spark.pipeline.spec is {self.spec!r}: give an absolute path")
        if not self.remote.startswith(("local", "sc://")):
            yield Problem(
                "spark.remote",
                f"spark.remote is {self.remote!r}: spark-pipelines runs on local[N] and on sc://host:port, where a Spark Connect server may "
                "have any master",
            )
