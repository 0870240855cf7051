"""A configuration goes through form and JSON and comes back, and no secret is shown."""

import json

import pytest

from tidegate.console.connector_config import changes, config_of_fields, config_of_json, form_groups, shown_config
from tidegate.kit.errors import UsageError

RUNS = {
    "connector.class": "io.example.SinkConnector",
    "connection.password": "s3cret",
    "connection.url": "jdbc:postgresql://db/x?user=u&password=inner",
    "file.secret": "${file:/etc/x:password}",
    "producer.override.linger.ms": "5",
    "empty.key": "",
}
SECRET = {"connection.password", "file.secret"}


def key(name, kind="STRING", default=None, group="Common", errors=(), **more):
    definition = {"name": name, "type": kind, "default_value": default, "group": group, "required": False}
    definition |= {"importance": "HIGH", "order_in_group": 1, "display_name": None, "documentation": "What it is."}
    value = {"recommended_values": [], "errors": list(errors), "visible": True}
    return {"definition": definition | more, "value": value}


VERDICT = {
    "groups": ["Common"],
    "configs": [
        key("name"),
        key("connector.class", required=True),
        key("connection.password", "PASSWORD", group=None),
        key("file.secret", "PASSWORD", group=None),
        key("connection.url", group=None),
        key("flag", "BOOLEAN", "true", errors=["Invalid value x"]),
    ],
}


def test_a_form_that_is_sent_back_unchanged_changes_nothing():
    groups, others = form_groups(VERDICT, RUNS, SECRET)
    assert [group.name for group in groups] == ["SinkConnector", "Common"]
    fields = {field.name: field for group in groups for field in group.fields}
    assert "s3cret" not in str(groups) and "inner" not in str(groups)
    assert fields["file.secret"].value == "${file:/etc/x:password}" and fields["flag"].errors == ("Invalid value x",)
    form = {f"key:{name}": field.value for name, field in fields.items()} | {"others": others, "csrf": "x"}
    sent = config_of_fields(form, RUNS, SECRET)
    assert sent == {name: value for name, value in RUNS.items() if name != "empty.key"} | {"empty.key": ""}
    form["key:connection.password"] = "another"
    form["key:connection.url"] = ""
    sent = config_of_fields(form, RUNS, SECRET)
    differences = changes(RUNS, sent, SECRET)
    assert [change.key for change in differences] == ["connection.password", "connection.url"]
    assert "another" not in str(differences) and "s3cret" not in str(differences) and "inner" not in str(differences)


def test_json_that_is_sent_back_unchanged_changes_nothing():
    shown = shown_config(RUNS, SECRET)
    assert "s3cret" not in str(shown) and "inner" not in str(shown)
    assert config_of_json(json.dumps(shown), RUNS, SECRET) == RUNS
    sent = config_of_json('{"config": {"tasks.max": 2, "flag": true, "none": null}}', RUNS, SECRET)
    assert sent == {"tasks.max": "2", "flag": "true"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "This is not JSON"),
        ("[]", "A configuration is a JSON object"),
        ('{"a": {}}', "a is {}: values are texts"),
        ("[" * 100_000, "is not"),
    ],
)
def test_what_is_no_configuration_is_told(text, words):
    with pytest.raises(UsageError, match=words):
        config_of_json(text, {}, set())
    with pytest.raises(UsageError, match="'novalue' is no KEY=VALUE"):
        config_of_fields({"others": "novalue"}, {}, set())
