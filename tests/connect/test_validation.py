from __future__ import annotations

import threading

import pytest

import connect.validation.validation as validation
from connect.api import SourceConnector
from connect.errors import BadRequest, UnknownPlugin
from connect.plugins.registry import load_plugins
from connect.validation.validation import key_infos, validate_connector
from tests.support.toys import NumbersConfig

PLUGINS = load_plugins(["tests.support.toy_plugins"], entry_points=False)
RIGHT = {"name": "n", "connector.class": "org.toys.NumbersConnector", "topic": "t"}
SINK = {"name": "n", "connector.class": "org.toys.RowsConnector", "topics": "t", "file": "/nowhere/x"}


def wrong(properties, **more):
    shown = validate_connector(PLUGINS, properties, **more).to_json()
    errors_by_key = {
        entry["value"]["name"]: entry["value"]["errors"] for entry in shown["configs"] if entry["value"]["errors"]
    }
    assert shown["error_count"] == sum(len(errors) for errors in errors_by_key.values())
    return errors_by_key


def test_a_valid_configuration_has_no_errors():
    assert wrong(RIGHT) == {} and wrong(SINK) == {}


def test_the_check_looks_at_the_outside_world_when_all_else_is_right():
    text = "Invalid value true for configuration refuse: the outside world says no"
    assert wrong({**RIGHT, "refuse": "true"}) == {"refuse": [text]}
    assert set(wrong({**RIGHT, "refuse": "true", "tasks.max": "0"})) == {"tasks.max"}
    assert wrong({**RIGHT, "refuse": "true"}, check=False) == {}


def test_a_check_that_fails_or_hangs_is_told(monkeypatch):
    released = threading.Event()

    class Failing(SourceConnector):
        config_class = NumbersConfig
        version = "1"

        @classmethod
        def check(cls, config):
            if config.hang:
                released.wait(60)
            raise OSError("no route")

    monkeypatch.setattr(validation, "CHECK_TIMEOUT_S", 0.05)
    monkeypatch.setattr("tests.support.toys.Failing", Failing, raising=False)
    Failing.task_class = type("T", (), {})
    properties = {**RIGHT, "connector.class": "tests.support.toys:Failing"}
    assert wrong(properties) == {"connector.class": ["the connector's check failed: OSError: no route"]}
    assert wrong({**properties, "hang": "true"}) == {"connector.class": ["no answer within 0.05 s"]}
    released.set()


def test_a_missing_package_leaves_the_plugin_listed_and_says_what_to_install():
    errors = wrong({**SINK, "connector.class": "org.toys.AbsentConnector"})
    assert "pip install 'tidegate[toys]'" in errors["connector.class"][0]


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({**SINK, "topics.regex": "t.*"}, {"topics", "topics.regex"}),
        ({key: value for key, value in SINK.items() if key != "topics"}, {"topics", "topics.regex"}),
        ({**SINK, "errors.deadletterqueue.topic.name": "t"}, {"topics"}),
        ({**SINK, "topics.regex": "("}, {"topics.regex"}),
        ({**RIGHT, "transforms": "a"}, {"transforms.a.type"}),
        ({**RIGHT, "transforms": "a", "transforms.a.type": "Nope"}, {"transforms.a.type"}),
        ({**RIGHT, "transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
         {"transforms.a.predicate"}),
        ({**RIGHT, "predicates": "p"}, {"predicates.p.type"}),
        ({**RIGHT, "value.converter": "Json", "value.converter.decimal.format": "x"}, {"value.converter.decimal.format"}),
        ({**RIGHT, "topic.creation.groups": "g", "topic.creation.default.partitions": "1",
          "topic.creation.default.replication.factor": "1"}, set()),  # a group that no topic is in
        ({**RIGHT, "topic.creation.groups": "g", "topic.creation.g.include": "x"},
         {f"topic.creation.{g}.{key}" for g in ("g", "default") for key in ("partitions", "replication.factor")}),
        ({**RIGHT, "header.converter": "Json", "header.converter.schemas.enable": "maybe"},
         {"header.converter.schemas.enable"}),
        ({**RIGHT, "value.converter": "Json", "value.converter.converter.type": "x"}, {"value.converter.converter.type"}),
        ({**RIGHT, "producer.override.sasl.login.refresh.window.factor": "wide"},
         {"producer.override.sasl.login.refresh.window.factor"}),
        ({**RIGHT, "topic.creation.default.partitions": "1"}, {"topic.creation.default.replication.factor"}),
        ({**RIGHT, "exactly.once.support": "required"}, {"exactly.once.support"}),
        ({**SINK, "connector.class": "org.toys.RangesConnector", "job.schedule": "sometimes"}, {"job.schedule"}),
        ({**SINK, "connector.class": "org.toys.RangesConnector", "job.schedule": "0 5 * * *"}, set()),
    ],
)  # fmt: skip
def test_each_error_is_reported_at_its_key(config, keys):
    assert set(wrong(config)) == keys


def test_without_a_class_there_is_nothing_to_validate_and_secrets_are_not_told():
    with pytest.raises(BadRequest, match="contains no connector type") as caught:
        validate_connector(PLUGINS, {"password": "hunter2"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UnknownPlugin):
        validate_connector(PLUGINS, {"connector.class": "Nope"})


def test_the_worker_s_converters_are_shown_as_defaults():
    shown = validate_connector(PLUGINS, RIGHT, worker={"key.converter": "K", "value.converter": "V"}).to_json()
    values = {entry["value"]["name"]: entry for entry in shown["configs"]}
    assert values["key.converter"]["value"]["value"] == "K"
    assert values["value.converter"]["definition"]["default_value"] == "V"


def test_keys_of_a_plugin_have_an_order():
    (topic, *_) = key_infos(NumbersConfig)
    assert topic["name"] == "topic" and topic["required"] and topic["order_in_group"] == -1 and "order" not in topic
    assert {info["name"]: info["group"] for info in key_infos(NumbersConfig)}["total"] == "Numbers"


def test_overrides_are_shown_with_secrets_hidden():
    config = {**RIGHT, "producer.override.linger.ms": "5", "producer.override.sasl.jaas.config": "hunter2"}
    shown = validate_connector(PLUGINS, config).to_json()
    values = {entry["value"]["name"]: entry["value"]["value"] for entry in shown["configs"]}
    assert values["producer.override.linger.ms"] == "5"
    assert values["producer.override.sasl.jaas.config"] == "[hidden]"


def test_overrides_have_the_types_of_the_clients_settings():
    config = {**RIGHT, "producer.override.linger.ms": "soon", "consumer.override.no.such.setting": "1"}
    shown = {entry["value"]["name"]: entry for entry in validate_connector(PLUGINS, config).to_json()["configs"]}
    linger = shown["producer.override.linger.ms"]
    assert linger["definition"]["type"] == "LONG" and linger["definition"]["display_name"] == "linger.ms"
    assert linger["value"]["errors"] == ["Invalid value soon for configuration linger.ms: Not a number of type LONG"]
    assert shown["consumer.override.no.such.setting"]["definition"]["type"] == "STRING"
