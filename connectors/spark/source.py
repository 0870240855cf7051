"""The Spark source: files, tables and databases that Spark reads, as records of a topic."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from broker.client import TransactionalProducer
from broker.client.blocking import Admin
from broker.client.errors import InvalidPidMapping, InvalidProducerEpoch, InvalidTxnState, ProducerFenced
from connect.api import (
    ConnectError,
    Dataset,
    OffsetChanges,
    Problem,
    SourceConnector,
    SourceJobTask,
    TidegateError,
    Written,
    get_logger,
)
from connectors.spark.client import SparkDriver, tell
from connectors.spark.config import REGISTERED
from connectors.spark.jars import packages_for
from connectors.spark.load import Load
from connectors.spark.parsing import problems_of_query
from connectors.spark.source_config import SparkSourceConfig

__all__ = ["SparkSourceConnector", "SparkSourceTask"]

logger = get_logger(__name__)


class SparkSourceTask(SourceJobTask[SparkSourceConfig]):
    """Has Spark write what is new, and commits its transactions."""

    def start(self) -> None:
        self._driver = SparkDriver(
            stopping=self.context.stopping, idle_s=self.config.idle_timeout_ms / 1000, packages=self._packages
        )
        self.resources.callback(self._driver.close)
        if self.config.warm_start:
            self._driver.warm(self._load(None), self._tell)

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        config = self.config
        return (
            Dataset("spark", config.table)
            if config.table
            else Dataset.of_location(config.path)
            if config.path
            else None
        )

    def cancel(self) -> None:
        self._driver.kill()

    def source_partition(self) -> Mapping[str, Any]:
        return {"input": self.config.source}

    def write(self, position: Mapping[str, Any] | None, run_id: str) -> Written | None:
        config = self.config
        self.context.create_topic(config.topic)
        load = self._load(position)
        try:
            done = self._driver.run(load, self._tell)
        except BaseException:
            self._abort(load)
            raise
        if done["position"] is None:
            return None
        note = f"wrote {done['note']} to {config.topic}" + (f"; {done['lost']}" if done["lost"] else "")
        self.context.progress(done["rows"], done["rows"], unit="rows", note=note)
        receipt = json.dumps(done["transactions"]) if done["transactions"] else ""
        return Written(done["position"], [config.topic], done["rows"], receipt, done["more"])

    def _abort(self, load: Load) -> None:
        """Abort what the tasks have left open, so that readers of committed records need not wait for its timeout."""
        if self.config.exactly_once:
            with contextlib.suppress(TidegateError), Admin(self.context.kafka) as admin:
                admin.fence_producers(load.transactional_ids)

    def publish(self, receipt: str) -> bool:
        transactions = [TransactionalProducer(*parts) for parts in json.loads(receipt)]
        try:
            with Admin(self.context.kafka) as admin:
                admin.commit_transactions(transactions)
        except (InvalidProducerEpoch, InvalidTxnState, InvalidPidMapping, ProducerFenced) as error:
            logger.warning("a transaction of a load was aborted", connector=self.context.connector, error=str(error))
            return False
        return True

    def preview(self, rows: int) -> Iterable[str]:
        config = self.config
        yield f"{config.format} {config.source} by Spark on {config.master} to {config.topic}, mode {config.mode}"
        driver = SparkDriver(stopping=self.context.stopping, idle_s=0, packages=self._packages)
        try:
            yield from driver.run(self._load(None, preview_rows=rows), lambda said: None)["preview"]
        finally:
            driver.close()

    @property
    def _packages(self) -> Any:
        return packages_for(self.config.format, self.config.conf, self.config.path)

    def _tell(self, said: Any) -> None:
        tell(self.context, said)

    def _load(self, position: Mapping[str, Any] | None, *, preview_rows: int = 0) -> Load:
        config, registry = self.config, self.context.registry_properties
        formats = {"spark.output.value.format": config.value_format, "spark.output.key.format": config.format_of_keys}
        if not config.key_columns:
            formats.popitem()
        for name, format_ in formats.items():
            if format_ in REGISTERED and not registry:
                raise ConnectError(
                    f"{name} is {format_}, and the worker has no schema registry: set schema.registry.url in its configuration, or "
                    "another format"
                )
        return Load(
            name=f"tidegate {self.context.connector}",
            connector=self.context.connector,
            format=config.format,
            path=config.path or "",
            table=config.table or "",
            schema=config.schema,
            options=config.options,
            mode=config.mode,
            changes=config.changes,
            most_files=config.most_files,
            late_ms=config.late_ms,
            watermark=config.watermark,
            sql=config.sql or "",
            topic=config.topic,
            key_columns=config.key_columns,
            write_options={
                **config.write_options,
                "value.format": config.value_format,
                "key.format": config.format_of_keys if config.key_columns else "binary",
                "transactions": str(config.exactly_once).lower(),
            },
            master=config.master,
            tasks=config.tasks,
            jars=config.jars,
            conf=config.conf,
            kafka={"bootstrap.servers": self.context.kafka.bootstrap_servers, **self.context.kafka.properties},
            registry=dict(registry),
            position=None if position is None else dict(position),
            preview_rows=preview_rows,
        )


class SparkSourceConnector(SourceConnector[SparkSourceConfig]):
    """Moves what Spark reads to a topic, in jobs that the worker starts, watches and can cancel."""

    config_class = SparkSourceConfig
    task_class = SparkSourceTask

    @classmethod
    def exactly_once(cls, config: SparkSourceConfig) -> bool:
        return config.exactly_once

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Positions are in the worker's offset topic alone."""
        return True

    @classmethod
    def check(cls, config: SparkSourceConfig) -> Iterable[Problem]:
        return problems_of_query(config.sql)
