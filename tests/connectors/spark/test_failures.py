"""Which failures of a job pass, by what the JVM says of them; without a JVM."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from connectors.spark.failures import first_words, is_passing


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
    assert is_passing(error) is passes


def test_causes_in_a_circle_come_to_an_end() -> None:
    thrown = Thrown("a.A")
    thrown._cause = thrown
    assert not is_passing(error_of(thrown))


LOST_EXECUTOR = (
    "An error occurred while calling o80.save.\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed "
    "4 times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (127.0.0.1 executor 3): ExecutorLostFailure (executor 3 exited caused by "
    "one of the running tasks) Reason: Command exited with code 137\nDriver stacktrace:\n\tat org.apache.spark.X.run(X.scala:1)\n"
)
"""Of local-cluster, whose executor was killed with -9 by its task each time."""
TRACEBACK = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "records.py", line 80, in read
    consumer.assign([(part.topic, part.partition)])
{}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
Caused by: org.apache.spark.SparkException: worker lost
"""


@pytest.mark.parametrize(
    ("last_line", "passes", "words"),
    [
        ("pyspark_tidegate.records.StalledRead: t-0: nothing came", True, "t-0: nothing came"),
        ("tidegate.kit.errors.UsageError: there is no column x", False, "there is no column x"),
        ("tidegate.kit.errors.NoSuchError: odd", False, "odd"),
    ],
)
def test_an_error_of_ours_in_a_python_worker_says_whether_it_passes(last_line: str, passes: bool, words: str) -> None:
    error = RuntimeError(TRACEBACK.format(last_line))
    assert is_passing(error) is passes
    assert first_words(error) == words


def test_another_error_is_told_by_its_first_line_and_its_last_cause() -> None:
    error = RuntimeError(TRACEBACK.format("ValueError: of a function"))
    assert first_words(error).startswith("Job aborted due to stage failure")
    assert first_words(error).endswith("| Caused by: org.apache.spark.SparkException: worker lost")


def test_a_lost_executor_is_told_with_its_task_and_its_status() -> None:
    told = first_words(RuntimeError(LOST_EXECUTOR))
    assert told.startswith(
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times"
    )
    assert told.endswith(
        "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with code 137"
    )


def test_an_error_of_the_jvm_is_told_by_its_own_words_and_not_by_the_call() -> None:
    words = (
        "An error occurred while calling o153.save.\n: org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/out\n"
        "\tat org.apache.hadoop.fs.RawLocalFileSystem.mkdirs(RawLocalFileSystem.java:1)\n"
    )
    told = first_words(RuntimeError(words))
    assert told == "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/out"


def test_a_value_that_fails_in_a_stream_is_told_with_its_line_of_sql() -> None:
    words = (
        "[STREAM_FAILED] Query [id = 6f1c, runId = 9a7d] terminated with exception: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "== SQL (line 2, position 10) ==\n  price / quantity AS each\n  ^^^^^^^^^^^^^^^^\n\tat org.apache.spark.X.run(X.scala:1)\n"
    )
    told = first_words(RuntimeError(words))
    assert told == "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012 | line 2, position 10: price / quantity AS each"


def test_an_error_of_the_gateway_is_told_by_the_exception_of_the_jvm() -> None:
    words = "An error occurred while calling o75.sql.\n: org.apache.iceberg.exceptions.ServiceFailureException: Server error: away\n\tat a.B.c(B.java:1)\n"
    assert (
        first_words(RuntimeError(words)) == "org.apache.iceberg.exceptions.ServiceFailureException: Server error: away"
    )
