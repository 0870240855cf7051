"""The examples in docs/how-to/triggers.md, docs/how-to/flows.md and docs/explanation/words.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from events.flows.files import read_flow
from events.fronts.rest.soql import parse_select
from events.triggers import RetryableException, TriggerContext, TriggerEvent
from events.triggers.project import load
from tests.support.pages import ROOT, blocks


@pytest.mark.parametrize("page", ["how-to/triggers.md", "explanation/words.md"])
def test_the_trigger_of_the_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    shown, *queries = blocks(ROOT / "docs" / page, "python")
    (tmp_path / "page_triggers.py").write_text(shown.text)
    project = load(tmp_path, plugins=False)
    assert project.problems == {}
    restock = project.triggers["restock"]
    numbers = ("A-1", "A-2", "later")
    events = [TriggerEvent(restock.event, at, f"u{at}", {"Order_Number__c": n}) for at, n in enumerate(numbers, 1)]
    context = TriggerContext(restock, events, 0)
    try:
        restock.function(events, context)
    except RetryableException as error:
        assert str(error) == "the warehouse is closed"
    assert context.resume_checkpoint == 2
    assert [output.fields for output in context.outputs] == [{"Order_Number__c": n} for n in numbers[:2]]
    for query in queries:
        assert parse_select(query.text.partition('"')[2].rpartition('"')[0]).type == "EventBusSubscriber"


def test_the_flow_of_the_page_can_be_read(tmp_path: Path) -> None:
    (shown,) = blocks(ROOT / "docs" / "how-to" / "flows.md", "toml")
    (tmp_path / "large.toml").write_text(shown.text)
    project = load(tmp_path, read_flow, plugins=False)
    assert project.problems == {}
    assert project.triggers["large"].filter == "Amount__c > 1000 AND Express__c = true"
