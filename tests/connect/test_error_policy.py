from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from connect.api import DataError, RecordBatch, RetriableConnectError, Schema, SchemaType
from connect.config.connector import SourceConfig
from connect.task.error_policy import ErrorPolicy, ToleranceExceeded
from tidegate.kit.config import parse


def policy(left_out=None, **errors):
    named = {f"errors.{key.replace('_', '.')}": value for key, value in errors.items()}
    config = parse(SourceConfig, {"name": "c", "connector.class": "x", **named})
    taken = None if left_out is None else lambda failure: left_out.extend(failure.batch.values.to_pylist())
    return ErrorPolicy(config, "c", 0, threading.Event(), on_tolerated=taken)


def batch(rows):
    return RecordBatch("t", pa.array(range(rows), pa.int64()), Schema(SchemaType.INT64))


def refuse(bad, *, named, calls):
    def operation(rows):
        calls.append(len(rows))
        at = [row for row, value in enumerate(rows.values.to_pylist()) if value in bad]
        if at:
            raise DataError("no", rows=at[:1] if named else ())
        return [rows]

    return operation


@pytest.mark.parametrize("named", [True, False])
def test_the_rows_at_fault_are_left_out_and_the_others_keep_their_order(named):
    left_out, calls = [], []
    made = policy(left_out, tolerance="all").guarded(
        "TRANSFORMATION", "X", batch(1000), refuse({3, 500, 999}, named=named, calls=calls)
    )
    assert [value for made_batch in made for value in made_batch.values.to_pylist()] == [
        n for n in range(1000) if n not in (3, 500, 999)
    ]
    assert left_out == [3, 500, 999]
    assert len(calls) < 70


def test_without_tolerance_the_first_row_at_fault_is_named():
    with pytest.raises(ToleranceExceeded, match="connector c, task 0, topic t, stage VALUE_CONVERTER \\(X\\): no"):
        policy().guarded("VALUE_CONVERTER", "X", batch(10), refuse({7}, named=False, calls=[]))


def test_a_retriable_failure_is_repeated():
    tries = []

    def sometimes():
        tries.append(1)
        if len(tries) < 3:
            raise RetriableConnectError("busy")
        return "done"

    patient = policy(retry_timeout="60000", retry_delay_max_ms="1")
    assert patient.retried(sometimes) == "done" and patient.retries == 2
    with pytest.raises(RetriableConnectError):
        policy().retried(lambda: (_ for _ in ()).throw(RetriableConnectError("busy")))


def test_a_timeout_counts_as_a_failure_of_each_record():
    def away(_):
        raise RetriableConnectError("the registry is away")

    rows = batch(2)
    left_out = []
    assert policy(left_out, tolerance="all").guarded("VALUE_CONVERTER", "c", rows, away) == []
    assert left_out == [0, 1]
    with pytest.raises(ToleranceExceeded, match="the registry is away"):
        policy().guarded("VALUE_CONVERTER", "c", rows, away)
