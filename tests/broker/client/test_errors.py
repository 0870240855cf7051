"""The exceptions that the client raises, and the modules that importing the client loads."""

from __future__ import annotations

import subprocess
import sys

import aiokafka.errors as library
import pytest

import broker.client
from broker.client import errors
from broker.errors import IllegalGeneration, NotLeaderOrFollower, TopicAuthorizationFailed
from tidegate.kit.errors import TidegateError


@pytest.mark.parametrize(
    ("theirs", "ours", "retriable"),
    [
        (library.NotLeaderForPartitionError(), NotLeaderOrFollower, True),
        (library.IllegalGenerationError(), IllegalGeneration, False),
        (library.TopicAuthorizationFailedError("secret"), TopicAuthorizationFailed, False),
        (library.ProducerFenced(), errors.ProducerFenced, False),
        (library.KafkaConnectionError("refused"), errors.NotReachable, True),
        (library.KafkaTimeoutError(), errors.ClientTimeout, True),
        (TimeoutError(), errors.ClientTimeout, True),
        (library.ProducerClosed(), errors.ClientClosed, False),
        (library.IllegalOperation("not now"), errors.IllegalUse, False),
        (library.KafkaError("odd"), errors.BrokerError, False),
    ],
)
def test_each_error_is_converted_to_one_of_our_classes(
    theirs: Exception, ours: type[TidegateError], retriable: bool
) -> None:
    with pytest.raises(ours, match="doing this") as caught, errors.translating("doing this"):
        raise theirs
    assert caught.value.__cause__ is theirs
    assert caught.value.retriable is retriable


def test_errors_of_the_program_pass() -> None:
    with pytest.raises(ZeroDivisionError), errors.translating("dividing"):
        1 / 0


def test_an_error_of_ours_is_not_wrapped_again() -> None:
    converted = errors.IllegalUse("x")
    assert errors.translated(converted, "about") is converted


@pytest.mark.parametrize("module", [broker.client, errors])
def test_names_in_dunder_all_exist(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]
        assert hasattr(module, name), name


def test_single_records_need_neither_numpy_nor_pyarrow() -> None:
    """The registry and the events service live without them: 400 MB are for four processes."""
    script = "import sys, broker.client, broker.client.blocking; print({'numpy', 'pyarrow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "set()"
