"""The models and properties of disk and log failures, with more examples than everyday runs have time for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.broker.log.test_model import LogMachine
from tests.broker.metadata.test_model import MetadataMachine
from tests.events import test_faulty_log as events
from tests.registry import test_faulty_log as registry

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(3600)]

EXAMPLES: Final = 1500


@pytest.mark.parametrize("model", [LogMachine, MetadataMachine])
def test_a_disk_that_fails_at_any_step(model: type[RuleBasedStateMachine], record_property: Any) -> None:
    record_property("examples", EXAMPLES)
    run_state_machine_as_test(model, settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None))


def test_a_log_of_schemas_that_fails_in_any_call(record_property: Any) -> None:
    record_property("examples", EXAMPLES)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(registry.CALLS)
    def holds(faults: Sequence[tuple[str, int, str]]) -> None:
        asyncio.run(registry.run(faults))

    holds()


def test_a_log_of_events_that_fails_in_any_call(tmp_path_factory: Any, record_property: Any) -> None:
    record_property("examples", EXAMPLES * 4)

    @settings(max_examples=EXAMPLES * 4, deadline=None)
    @given(events.CALLS, events.STEPS)
    def holds(faults: set[tuple[str, int, str]], steps: Sequence[tuple[str, Sequence[int]]]) -> None:
        folder: Path = tmp_path_factory.mktemp("ids")
        asyncio.run(events.run(folder, sorted(faults), steps))

    holds()
