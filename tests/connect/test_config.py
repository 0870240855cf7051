from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config.client_keys import client_key
from connect.config.worker import WorkerConfig, client_properties
from tidegate.kit.config import keys_of, parse
from tidegate.kit.errors import ConfigError, UsageError
from tidegate.kit.properties import read_properties


def worker(**properties):
    return parse(WorkerConfig, {"bootstrap.servers": "127.0.0.1:9092", **properties})


@pytest.mark.parametrize(("listener", "address"), [
    ("http://127.0.0.1:8083", ("127.0.0.1", 8083)), ("http://:0", ("0.0.0.0", 0)), ("http://[::1]:1", ("::1", 1)),
])  # fmt: skip
def test_where_to_listen(listener, address):
    assert worker(listeners=listener).listeners == [("http", *address)]


@pytest.mark.parametrize("listener", ["8083", "ftp://x:1", "http://x", ""])
def test_unsupported_listeners_are_refused(listener):
    with pytest.raises(ConfigError, match="for configuration listeners"):
        worker(listeners=listener)


def test_a_client_gets_the_plain_keys_then_its_own_then_overrides():
    properties = {
        "bootstrap.servers": "b", "group.id": "g", "config.storage.topic": "c", "security.protocol": "SSL",
        "producer.linger.ms": "5", "producer.acks": "1", "consumer.x": "y", "key.converter.schema.registry.url": "u",
    }  # fmt: skip
    made = client_properties(properties, "producer", {"acks": "all"})
    assert made == {"security.protocol": "SSL", "linger.ms": "5", "acks": "all"}


def test_keys_of_the_worker_are_not_passed_to_its_clients():
    """Every client would log those that it does not read."""
    made = client_properties({key.name: "x" for key in keys_of(WorkerConfig)}, "consumer")
    assert [name for name in made if client_key(name) is None] == []


def test_a_properties_file_is_read_as_java_does(tmp_path):
    file = tmp_path / "worker.properties"
    file.write_text(
        "# comment\n! another\n\nbootstrap.servers=a:1,\\\n    b:2\nspaced : value \nempty=\nnothing\n"
        "path=C\\:\\\\x\\ty\nunicode=\\u00e9\nkey\\ with\\ space = v\n"
    )
    assert read_properties(file) == {
        "bootstrap.servers": "a:1,b:2", "spaced": "value", "empty": "", "nothing": "", "path": "C:\\x\ty",
        "unicode": "é", "key with space": "v",
    }  # fmt: skip


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match="no.properties"):
        read_properties(tmp_path / "no.properties")


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("p") / "x"
    file.write_bytes(data)
    try:
        assert all(isinstance(value, str) for value in read_properties(file).values())
    except UsageError:
        pass
