"""Flow files: their permitted contents, and how an event's fields are inserted into values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.flows.files import read_flow
from events.flows.templates import FlowFailed, check, filled, filled_address
from events.triggers import TriggerContext, TriggerEvent
from tidegate.kit.errors import UsageError

HEADER = {"kind": "CREATE", "ids": ["1"], "gone": None}
EVENT = TriggerEvent("Order__e", 7, "u-7", {"A__c": "a", "N__c": 12.0, "X__c": None, "B__c": True, "Header": HEADER})
HEAD = 'event = "Order__e"\n'


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{N__c}", 12.0),
        ("{X__c}", None),
        ("{B__c}", True),
        ("n={N__c} x={X__c} b={B__c}", "n=12 x= b=true"),
        ("{{{A__c}}}", "{a}"),
        ("{EventUuid}/{ReplayId}", "u-7/7"),
        ({"k": ["{A__c}", 1]}, {"k": ["a", 1]}),
        ("{Header.kind} {Header.gone.x}", "CREATE "),
        ("{Header.ids}", ["1"]),
        (5, 5),
    ],
)
def test_fields_take_their_places(template: Any, value: Any) -> None:
    assert filled(template, EVENT) == value


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(FlowFailed, match="Order__e has no field Z__c; it has A__c, N__c, X__c, B__c, Header"):
        filled("{Z__c}", EVENT)
    with pytest.raises(FlowFailed, match="the environment has no variable NO_SUCH_NAME"):
        filled("{env:NO_SUCH_NAME}", EVENT)


def test_no_event_leads_an_address_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", "http://h/api")
    event = TriggerEvent("Order__e", 7, "u-7", {"A__c": "../b?c=d&e #ü", "N__c": 12.0})
    address = filled_address("{env:BASE}/{A__c}?n={N__c}", event)
    assert address == "http://h/api/..%2Fb%3Fc%3Dd%26e%20%23%C3%BC?n=12"
    for value in ("..", "", None):
        with pytest.raises(FlowFailed, match="would be a segment of the path"):
            filled_address("{env:BASE}/{A__c}", TriggerEvent("Order__e", 7, "u-7", {"A__c": value}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("event = ", "it is not TOML"),
        (HEAD, r"at least one \[\[action\]\]"),
        ('[[action]]\nsend = "t"', "event is missing"),
        (HEAD + 'fitler = "A__c = 1"\n[[action]]\nsend = "t"', "no key 'fitler'; did you mean filter"),
        (HEAD + "filter = 1\n[[action]]\nsend = 't'", "filter is 1; a text is needed"),
        (HEAD + "[[action]]\nsend = 't'\ncall = 'http://h'", "action 1: one of publish, send, call, create"),
        (HEAD + "[[action]]\ncall = 'h'", "an address begins with http"),
        (HEAD + "[[action]]\ncall = 'http://h'\nmethod = 'LOOK'", "method is 'LOOK'"),
        (HEAD + "[[action]]\ncall = 'http://h'\ntimeout_s = true", "timeout_s is True"),
        (HEAD + "[[action]]\nsend = 't'\nvalue = '{A__c.}'", "cannot be read"),
        (HEAD + "[[action]]\npublish = 'Done'\nfields = {}", "which is no event's name"),
        (HEAD + "[[action]]\ncreate = 'Case'\nfields = {}", r"create needs a table \[org\]"),
        (HEAD + "batch_size = 'x'\n[[action]]\nsend = 't'", "batch_size is 'x'"),
        (HEAD + "[[action]]\nsend = 't'\nvalue = { day = 2026-01-31 }", "2026-01-31 is no JSON value"),
        (HEAD + "[[action]]\nsend = 't'\nvalue = { much = inf }", "inf is no JSON value"),
        (HEAD + "org = 1\n[[action]]\nsend = 't'", "org is a table"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "flow.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_flow(path)


def test_actions_are_done_in_order_up_to_the_one_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(HEAD + "[[action]]\npublish = 'Done__e'\nfields = { A__c = '{A__c}' }\n[[action]]\nsend = 't'")
    flow = read_flow(path)
    bad = TriggerEvent("Order__e", 8, "u-8", {})
    context = TriggerContext(flow, [EVENT, bad], 0)
    with pytest.raises(FlowFailed):
        flow.function([EVENT, bad], context)
    assert (flow.name, flow.kind, context.resume_checkpoint) == ("copy", "flow", 7)
    assert [output.topic for output in context.outputs_of_checkpoint] == ["Done__e", "t"]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="{}Aa_c:env! .[]0", max_size=15) | st.text(max_size=15))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        check(text, "value")
    except UsageError:
        return
    try:
        filled(text, EVENT)
    except FlowFailed:
        pass
