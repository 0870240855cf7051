"""Tells OpenLineage what a task moves, as Debezium's connectors do: START, RUNNING with each new flow, COMPLETE or FAIL.

https://debezium.io/documentation/reference/integrations/openlineage.html. Events are sent from a thread: a server that is away
delays no record, and what it missed is logged.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from connect.api import ConnectError, Dataset
from connect.config.connector import LineageConfig
from connect.task.lifecycle import TaskState
from connect.task.lineage import Flow
from tidegate.kit.file_access import require_file
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset

__all__ = ["OpenLineageEvents", "lineage_client", "pairs_of"]

logger = get_logger(__name__)

_MOST_WAITING: Final = 1000
_LAST_S: Final = 1.0
"""How long the end of a task waits for its last events. It has five seconds for all, after which it is cancelled."""
_END_S: Final = 5.0
_ENDS: Final = {TaskState.STOPPED: "COMPLETE", TaskState.FAILED: "FAIL"}


@cache
def _version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:
        return "unknown"


def _producer() -> str:
    """OpenLineage wants a URI."""
    return f"urn:tidegate:{_version()}"


def lineage_client(file: str) -> OpenLineageClient:
    """A client as a file says, in the form of OpenLineage's clients (YAML with ``transport``). Raises ConnectError."""
    try:
        import yaml
        from openlineage.client import OpenLineageClient
    except ImportError:
        raise ConnectError(
            "openlineage.integration.enabled=true needs openlineage-python: pip install 'tidegate[lineage]'"
        ) from None
    name = f"openlineage.integration.config.file.path={file}"
    try:
        require_file(file)
        settings = yaml.safe_load(Path(file).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConnectError(f"{name} can't be read: {error}") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("transport"), dict):
        raise ConnectError(
            f"{name} has no transport: it should look like transport: {{type: http, url: http://host:5000}}"
        )
    try:
        return OpenLineageClient(config=settings)
    except Exception as error:
        raise ConnectError(f"{name} makes no client: {error}") from error


class OpenLineageEvents:
    """The events of one run of a task: from a start to its end. ``job`` is its name."""

    def __init__(
        self, config: LineageConfig, client: OpenLineageClient, *, job: str, namespace: str, kafka: str, is_source: bool
    ) -> None:
        self._config, self._client, self._job, self._namespace = config, client, job, namespace
        self._kafka, self._is_source = kafka, is_source
        self._run = str(uuid4())
        self._flows: dict[tuple[str, Dataset | None], Flow] = {}
        self._began = False
        self._ends: float | None = None
        """The time, of the monotonic clock, after which nothing more is sent."""
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._send, name=f"lineage of {job}", daemon=True)
        self._thread.start()

    def on_state(self, state: TaskState, error: BaseException | None) -> None:
        """Hears of each state of the task."""
        if state in (TaskState.RUNNING, TaskState.PAUSED) and not self._began:
            self._began = True
            self._emit("START", ())
        elif state in _ENDS:
            self._emit(_ENDS[state], self._flows.values(), error)
            self.close()

    def close(self) -> None:
        """Wait a second for the last events to be sent; the thread goes on for a few more. May be called again."""
        if self._ends is not None:
            return
        self._ends = time.monotonic() + _END_S
        while True:
            try:
                self._waiting.put_nowait(None)
                break
            except queue.Full:
                with suppress(queue.Empty):
                    self._waiting.get_nowait()
        self._thread.join(_LAST_S)

    def on_flow(self, flow: Flow) -> None:
        self._flows[flow.topic, flow.dataset] = flow
        self._emit("RUNNING", [flow])

    def _emit(self, kind: str, flows: Any, error: BaseException | None = None) -> None:
        try:
            self._waiting.put_nowait((kind, tuple(flows), datetime.now(UTC).isoformat(), error))
        except queue.Full:
            logger.warning("an event of lineage is left out: too many wait", job=self._job, kind=kind)

    def _send(self) -> None:
        while (item := self._waiting.get()) is not None and (self._ends is None or time.monotonic() < self._ends):
            try:
                self._client.emit(self._event(*item))
            except Exception as error:  # noqa: BLE001 - a lineage that is not told stops no record
                logger.warning("OpenLineage was not told", job=self._job, kind=item[0], error=str(error))
        self._client.close(_END_S)

    def _event(self, kind: str, flows: Sequence[Flow], at: str, error: BaseException | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import error_message_run, processing_engine_run

        facets: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                _version(), "Tidegate", producer=_producer()
            )
        }
        if error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(str(error), "Python", producer=_producer())
        inputs: dict[Dataset, InputDataset] = {}
        outputs: dict[Dataset, OutputDataset] = {}
        for flow in flows:
            self._add(flow, inputs, outputs)
        return RunEvent(
            eventTime=at,
            eventType=RunState[kind],
            run=Run(self._run, facets),
            job=Job(self._namespace, self._job, self._job_facets()),
            inputs=list(inputs.values()),
            outputs=list(outputs.values()),
            producer=_producer(),
        )

    def _job_facets(self) -> dict[str, Any]:
        from openlineage.client.facet_v2 import documentation_job, job_type_job, ownership_job, tags_job

        config = self._config
        facets: dict[str, Any] = {
            "documentation": documentation_job.DocumentationJobFacet(config.job_description, producer=_producer()),
            "jobType": job_type_job.JobTypeJobFacet("STREAMING", "TIDEGATE", "TASK", producer=_producer()),
        }
        if config.job_owners:
            owners = [ownership_job.Owner(name, kind) for kind, name in pairs_of(config.job_owners).items()]
            facets["ownership"] = ownership_job.OwnershipJobFacet(owners, producer=_producer())
        if config.job_tags:
            tags = [tags_job.TagsJobFacetFields(k, v, "CONFIG") for k, v in pairs_of(config.job_tags).items()]
            facets["tags"] = tags_job.TagsJobFacet(tags, producer=_producer())
        return facets

    def _add(self, flow: Flow, inputs: dict[Dataset, InputDataset], outputs: dict[Dataset, OutputDataset]) -> None:
        from openlineage.client.event_v2 import InputDataset, OutputDataset

        topic = Dataset(self._kafka, flow.topic)
        types, columns = dict(flow.fields), flow.columns or ()
        of_topic = _schema(flow.fields)
        of_dataset = _schema([(column, types.get(field, "")) for column, field in columns])
        if self._is_source:
            if flow.dataset is not None:
                inputs[flow.dataset] = InputDataset(*flow.dataset, facets=of_dataset)
            lineage = _lineage(flow.dataset, [(field, column) for column, field in columns])
            outputs[topic] = OutputDataset(*topic, facets=of_topic | lineage)
        else:
            inputs[topic] = InputDataset(*topic, facets=of_topic)
            if flow.dataset is not None:
                outputs[flow.dataset] = OutputDataset(*flow.dataset, facets=of_dataset | _lineage(topic, columns))


def pairs_of(texts: Sequence[str]) -> Mapping[str, str]:
    """``["team=shop"]`` as a mapping."""
    return dict(text.split("=", 1) for text in texts)


def _schema(fields: Sequence[tuple[str, str]]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset as facet

    if not fields:
        return {}
    listed = [facet.SchemaDatasetFacetFields(name, kind or None) for name, kind in fields]
    return {"schema": facet.SchemaDatasetFacet(listed, producer=_producer())}


def _lineage(source: Dataset | None, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """``columns`` are the output's fields, each with the field of the source that it has the data of."""
    from openlineage.client.facet_v2 import column_lineage_dataset as facet

    if source is None or not columns:
        return {}
    fields = {
        made: facet.Fields([facet.InputField(*source, field, [facet.Transformation("DIRECT", "IDENTITY")])])
        for made, field in columns
    }
    return {"columnLineage": facet.ColumnLineageDatasetFacet(fields, producer=_producer())}
