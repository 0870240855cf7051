"""Two workers with the same plugins: Kafka Connect's with those on Maven Central, and ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaConnect
from tests.support.worker import ConnectWorker

_PLUGINS = ("kafka", "connect-mirror", "debezium-postgres", "debezium-mariadb")


@pytest.fixture(scope="session")
def judges(apache_kafka, tmp_path_factory) -> Iterator[tuple[str, str]]:
    """The addresses of the original and of ours. The original takes twenty seconds to look through its plugins."""
    folders = or_skip(lambda: [str(require(name).absolute() / "plugins") for name in _PLUGINS])
    # Not all of these plugins say what they have.
    settings = {"plugin.path": ",".join(folders), "plugin.discovery": "hybrid_warn", "group.id": "judges"}
    settings |= {f"{kind}.storage.topic": f"judges-{kind}" for kind in ("config", "offset", "status")}
    theirs = KafkaConnect(tmp_path_factory.mktemp("theirs"), apache_kafka.bootstrap_servers, settings, heap="1G")
    schemas = {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
    schemas["offset.flush.interval.ms"] = "1000"
    ours = ConnectWorker(tmp_path_factory.mktemp("ours"), apache_kafka.bootstrap_servers, schemas, name="judged")
    theirs.start()
    ours.start()
    yield theirs.url, ours.url
    ours.stop()
    theirs.stop()
