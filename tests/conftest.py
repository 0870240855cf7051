"""Fixtures for all tests."""

import gc
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.servers.fetch import folder
from tests.servers.fixtures import (  # noqa: F401 - pytest finds fixtures by their names here
    apache_connect,
    apache_kafka,
    azure_server,
    hdfs_server,
    iceberg_rest,
    kafka_tools,
    mariadb_server,
    postgres_server,
    s3_server,
    tidegate_broker,
)
from tests.support.leftovers import complaints, logs_left

# Everyday runs give the same examples on every machine and do not mind a slow one (hypothesis' own profile for CI); the
# long proofs draw new ones each time.
settings.register_profile(
    "long",
    settings.get_profile("default"),
    derandomize=False,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("long" if os.environ.get("TIDEGATE_PROOF") == "long" else "ci")

# `tidegate secure init` makes contexts: not among those of who runs the tests.
os.environ.setdefault("TIDEGATE_CONTEXTS", os.path.join(tempfile.mkdtemp(prefix="tidegate-contexts-"), "contexts.json"))

# Many accounts may be on the machine that tests run on; only tests of the token ask for it.
os.environ.setdefault("TIDEGATE_CONNECT_TOKEN", "never")

_LONG = (
    "tests/pyspark_tidegate/",
    "tests/connectors/spark/",
    "tests/conformance/connect/",
    "tests/hostile/",
    "tests/proofs/",
    "tests/examples/",
    "tests/docs/",
    "tests/tidegate/",
    "tests/connect/test_recovery.py",
    "tests/events/triggers/",
    "tests/conformance/",
    "tests/connect/test_errors_end_to_end.py",
    "tests/connect/distributed/",
    "tests/connectors/postgres/",
    "tests/connectors/mysql/",
    "tests/connectors/test_suites.py",
    "tests/registry/server/test_service.py",
    "tests/registry/log/cluster/",
    "tests/broker/client/",
    "tests/broker/test_crash.py",
    "tests/broker/storage/",
)


_ORIGINAL_FIXTURES = frozenset({"apache_kafka", "apache_connect"})
_ORIGINAL_IDS = re.compile(r"(^|-)(apache|apache_kafka|kafka-connect|original|KafkaBroker)(-|$)")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that run an original: Java takes long to start, so they go with the short proofs.

    Files that take long go first, so that no process is left with one of them when the others are done.
    """
    for item in items:
        if isinstance(item, pytest.Function):
            parameters = item.callspec.id if hasattr(item, "callspec") else ""
            if not _ORIGINAL_FIXTURES.isdisjoint(item.fixturenames) or _ORIGINAL_IDS.search(parameters):
                item.add_marker(pytest.mark.original)
    items.sort(key=lambda item: next((n for n, path in enumerate(_LONG) if item.nodeid.startswith(path)), len(_LONG)))


def pytest_collection_finish() -> None:
    """Thousands of tests are there to the end: the garbage collector need not look at them each time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


_ONE_PROCESS = ("tests/pyspark_tidegate/", "tests/conformance/connect/", "tests/connectors/spark/")
"""Folders whose files share what is costly to start, such as a Spark or a Java worker, or which would start several at once,
each of which keeps both cores busy: one process runs all of them."""


class Scheduling(LoadFileScheduling):
    """``--dist=loadfile``, with some folders in place of their files."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((folder for folder in _ONE_PROCESS if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


_EVERYDAY_BYTES = 4_000_000


@pytest.fixture(scope="session", autouse=True)
def kafka_reads_what_brokers_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """When all is over, Kafka's dump tool reads the logs of every broker that was stopped: in proofs all of them, and
    some of each in the everyday run. It takes seconds, so not where a few tests are run by hand (in one process)."""
    yield
    proof = os.environ.get("TIDEGATE_PROOF")
    if not (proof or hasattr(request.config, "workerinput")):
        return
    logs = logs_left(most_bytes=None if proof == "long" else _EVERYDAY_BYTES)
    if logs and folder("kafka").exists():
        assert complaints(logs) == []
