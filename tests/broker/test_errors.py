"""The error classes agree with Kafka's own list of codes."""

from __future__ import annotations

import pytest

from broker import errors
from broker.errors import BrokerError, CorruptMessage, UnknownServerError, error_for
from tidegate.kit.errors import RetriableError

CLASSES = [
    leaf
    for name in errors.__all__
    if isinstance(leaf := getattr(errors, name), type) and issubclass(leaf, BrokerError) and "code" in vars(leaf)
]


def kafka_codes() -> dict[int, bool]:
    kio = pytest.importorskip("kio.schema.errors")
    return {int(code): code.retriable for code in kio.ErrorCode}


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not BrokerError], ids=lambda cls: cls.__name__)
def test_code_and_retriability_are_kafkas(cls: type[BrokerError]) -> None:
    codes = kafka_codes()
    assert cls.code in codes
    assert cls.retriable == codes[cls.code] == issubclass(cls, RetriableError)


def test_no_two_classes_share_a_code() -> None:
    codes = [cls.code for cls in CLASSES if cls is not BrokerError]
    assert len(codes) == len(set(codes))


def test_a_code_leads_back_to_its_class() -> None:
    error = error_for(2, "batch at 7")
    assert type(error) is CorruptMessage
    assert error.message == "batch at 7"
    assert error_for(2).message == CorruptMessage.__doc__


def test_an_unknown_code_keeps_its_number() -> None:
    error = error_for(31_000)
    assert type(error) is UnknownServerError
    assert "31000" in error.message
