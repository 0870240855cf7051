"""The guarantees of every source."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from connect.api import MAX_BATCH_BYTES, RecordBatch, SourceConnector
from connect.bench import Bench
from connect.task.sources.offsets import OffsetKeys, SubmittedBatches
from tidegate.kit.config import validate

__all__ = ["SourceSuite"]


class SourceSuite:
    """Set ``connector_class`` and the fixtures ``properties`` (a source with a fixed content) and ``expected_rows``."""

    connector_class: ClassVar[type[SourceConnector[Any]]]
    stop_within_s: ClassVar[float] = 5.0

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        """The connector's own keys for a source whose rows do not change during a test."""
        raise NotImplementedError

    @pytest.fixture
    def expected_rows(self) -> int:
        """The number of its rows, over all tasks' source partitions."""
        raise NotImplementedError

    @pytest.fixture
    def bench(self, properties: Mapping[str, str]) -> Bench:
        return Bench(self.connector_class, properties)

    def test_its_configuration_is_right(self, bench: Bench) -> None:
        judged = validate(self.connector_class.config_class, bench.properties)
        errors = [error for judged_key in judged for error in judged_key.errors]
        assert errors == [], f"the configuration is not right: {'; '.join(errors)}"

    def test_keys_it_does_not_know_do_not_disturb_it(self, bench: Bench) -> None:
        judged = validate(self.connector_class.config_class, {**bench.properties, "no.such.key": "x"})
        errors = [error for judged_key in judged for error in judged_key.errors]
        assert errors == [], f"the configuration is not right: {'; '.join(errors)}"

    def test_every_key_says_what_it_is_for(self) -> None:
        for judged in validate(self.connector_class.config_class, {}):
            assert judged.key.doc.strip(), f"{judged.key.name} has no doc"

    def test_its_plan_fits_the_tasks_allowed(self, bench: Bench) -> None:
        for allowed in (1, 3):
            planned = bench.plan(allowed)
            assert 1 <= len(planned) <= allowed, f"{len(planned)} tasks are planned where tasks.max is {allowed}"
            for task in planned:
                wrong = {name: value for name, value in task.items() if not isinstance(value, str)}
                assert wrong == {}, f"a task's configuration has only text; these are none: {wrong}"

    def test_its_batches_keep_the_contract(self, bench: Bench, expected_rows: int) -> None:
        with bench.task() as running:
            for batch in running.poll_rows(expected_rows):
                check_batch(batch)

    def test_it_delivers_every_row_once(self, bench: Bench, expected_rows: int) -> None:
        with bench.task() as running:
            batches = running.poll_rows(expected_rows)
            batches += running.task.poll()
        delivered = sum(len(batch) for batch in batches)
        assert delivered == expected_rows, (
            f"{delivered} rows were delivered; the fixture expected_rows says {expected_rows}"
        )

    def test_it_goes_on_from_any_committed_position(self, bench: Bench, expected_rows: int) -> None:
        """Stopped after each batch and restarted from the committed position, it delivers the same rows in the same
        order.
        """
        with bench.task() as running:
            whole = rows_of(running.poll_rows(expected_rows))
        pieces: list[str] = []
        deadline = time.monotonic() + 60
        while len(pieces) < len(whole):
            assert time.monotonic() < deadline, f"{len(pieces)} rows of {len(whole)} after a minute"
            with bench.task() as running:
                batches = running.poll_rows(1)[:1]
            bench.commit(batches)
            pieces += rows_of(batches)
        differing = next((n for n, (a, b) in enumerate(zip(pieces, whole, strict=False)) if a != b), len(whole))
        assert pieces == whole, (
            f"started again from each committed offset, it delivers other rows from row {differing} on: "
            f"{pieces[differing : differing + 1]} in place of {whole[differing : differing + 1]}"
        )

    def test_it_stops_soon_while_it_waits_for_more(self, bench: Bench, expected_rows: int) -> None:
        with bench.task() as running:
            running.poll_rows(expected_rows)
            ended = threading.Event()

            def poll_until_stopped() -> None:
                while not running.context.stopping.is_set():
                    running.task.poll()
                ended.set()

            threading.Thread(target=poll_until_stopped, daemon=True).start()
            running.context.stopping.set()
            assert ended.wait(self.stop_within_s), f"poll went on for {self.stop_within_s:g} s after stopping was set"


def check_batch(batch: RecordBatch) -> None:
    """Check the runtime's requirements for a source's batch."""
    assert batch.topic, "a batch has no topic"
    if batch.value_schema is not None:
        expected = batch.value_schema.arrow_type
        assert batch.values.type == expected, f"values are {batch.values.type}, and their schema says {expected}"
    batch.values.validate(full=True)
    if batch.keys is not None:
        if batch.key_schema is not None:
            expected = batch.key_schema.arrow_type
            assert batch.keys.type == expected, f"keys are {batch.keys.type}, and their schema says {expected}"
        batch.keys.validate(full=True)
    assert batch.nbytes <= MAX_BATCH_BYTES or len(batch) == 1, f"a batch of {batch.nbytes} bytes"
    if batch.source_offset is not None:
        assert batch.source_partition is not None, "a source offset without its partition"
        SubmittedBatches(OffsetKeys("suite", {})).add(batch.source_partition, batch.source_offset, [])
        stored = json.loads(json.dumps(dict(batch.source_offset)))
        assert stored == batch.source_offset, f"the offset {batch.source_offset} comes back from JSON as {stored}"


def rows_of(batches: Sequence[RecordBatch]) -> list[str]:
    return [repr((record.topic, record.key, record.value)) for batch in batches for record in batch.records()]
