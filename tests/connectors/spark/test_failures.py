"""Which failures of a job pass, by what the JVM says of them; without a JVM."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from connectors.spark.driver import _is_passing


class Class:
    def __init__(self, *names: str) -> None:
        self._names = names

    def getName(self) -> str:
        return self._names[0]

    def getSuperclass(self) -> Class | None:
        return Class(*self._names[1:]) if len(self._names) > 1 else None


class Thrown:
    def __init__(self, *names: str, cause: Thrown | None = None) -> None:
        self._names, self._cause = names, cause

    def getClass(self) -> Class:
        return Class(*self._names)

    def getCause(self) -> Thrown | None:
        return self._cause


class Gone(Thrown):
    def getClass(self) -> Class:
        raise Py4JNetworkError("the JVM does not answer")


def error_of(thrown: Thrown) -> Exception:
    error = Py4JError("a job failed")
    error.java_exception = thrown
    return error


REFUSED = Thrown("java.net.ConnectException", "java.net.SocketException", "java.io.IOException")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (error_of(Thrown("org.apache.spark.SparkException", cause=REFUSED)), True),
        (error_of(Thrown("org.apache.spark.SparkException", cause=Thrown("java.io.IOException"))), False),
        (error_of(Gone("any")), False),
        (ValueError("of Python"), False),
    ],
)
def test_a_failure_passes_where_a_server_was_away(error: Exception, passes: bool) -> None:
    assert _is_passing(error) is passes


def test_causes_in_a_circle_come_to_an_end() -> None:
    thrown = Thrown("a.A")
    thrown._cause = thrown
    assert not _is_passing(error_of(thrown))
