"""The pages of events and triggers on a real platform."""

from __future__ import annotations

import html
import re

import pytest

from tests.support.console import Visitor
from tests.support.platform import running_platform, tidegate, until

pytestmark = pytest.mark.proof

TRIGGER = """
from events.triggers import trigger


@trigger("Parcel_Sent__e")
def parcels(events, context):
    if any(event["Weight__c"] > 100 for event in events):
        raise ValueError("too heavy for <b>anyone</b>")
"""
EVENT = """<?xml version="1.0" encoding="UTF-8"?>
<CustomObject xmlns="http://soap.sforce.com/2006/04/metadata">
  <deploymentStatus>Deployed</deploymentStatus><eventType>HighVolume</eventType>
  <label>Parcel Sent</label><pluralLabel>Parcels Sent</pluralLabel><publishBehavior>PublishImmediately</publishBehavior>
  <fields><fullName>Weight__c</fullName><label>Weight in &lt;kg&gt;</label><type>Number</type>
    <precision>18</precision><scale>1</scale><required>true</required></fields>
  <fields><fullName>Express__c</fullName><label>Express</label><type>Checkbox</type><defaultValue>false</defaultValue></fields>
  <fields><fullName>To__c</fullName><label>To</label><type>Text</type><length>20</length></fields>
</CustomObject>"""


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "triggers").mkdir()
    (folder / "triggers" / "parcels.py").write_text(TRIGGER)
    (folder / "Parcel_Sent__e.object-meta.xml").write_text(EVENT)
    options = ("--without", "connect", "--triggers", folder / "triggers")
    with running_platform(folder, *options, console=True) as platform:
        tidegate("events", "define", folder / "Parcel_Sent__e.object-meta.xml", "--data", platform.data)
        subscription = ("Sorter", "Parcel_Sent__e", "--from", "earliest")
        tidegate("events", "subscriptions", "create", *subscription, "--data", platform.data)
        yield Visitor(platform.addresses["console"])


def test_an_event_is_published_by_a_form_of_its_fields(visitor):
    assert "/events/Parcel_Sent__e" in visitor.get("/events?q=parcel") and "No event is called so" in visitor.get(
        "/events?q=x"
    )
    page = visitor.get("/events/Parcel_Sent__e")
    assert "Weight in &lt;kg&gt;" in page and re.search(r'name="field.Weight__c" value="" required', page)
    form = {"field.Weight__c": "2.5", "field.Express__c": "true", "field.To__c": "north"}
    refused = visitor.post("/events/Parcel_Sent__e/publish", 400, **form | {"field.Weight__c": "much"})
    assert "Weight__c: &#39;much&#39; is no number" in refused and 'value="north"' in refused, "what was typed stays"
    assert visitor.post("/events/Parcel_Sent__e/publish", **form).startswith("/events/Parcel_Sent__e?published=")
    _, rows, _ = visitor.search("Parcel_Sent__e", "from=beginning")
    assert "&#34;Weight__c&#34;: 2.5" in rows[0] and "&#34;To__c&#34;: &#34;north&#34;" in rows[0]
    assert "Nothing__e" in visitor.get("/events/Nothing__e", 404)
    page = visitor.get("/events")
    used = re.search(r"Events published in the last hour</th><td class=\"amount\">(\d+)</td>", page)
    assert used is not None and int(used[1]) >= 1
    assert re.search(r"Sorter</th><td>/event/Parcel_Sent__e</td>.*running.*earliest", page)


def test_a_trigger_that_has_failed_is_shown_with_its_error_and_goes_on(visitor):
    until(lambda: "parcels" in visitor.get("/events"), "the trigger")
    visitor.post("/events/Parcel_Sent__e/publish", **{"field.Weight__c": "101"})
    until(lambda: "too heavy" in visitor.get("/events"), "its error")
    page = visitor.get("/events")
    assert "too heavy for &lt;b&gt;anyone" in page
    name = html.unescape(re.search(r'action="/triggers/([^/"]+)/\w', page)[1])
    visitor.post(f"/triggers/{name}/suspend")
    until(lambda: ">suspended<" in visitor.get("/events"), "it is suspended")
    visitor.post(f"/triggers/{name}/resume-latest")
    until(lambda: ">running<" in visitor.get("/events"), "it goes on")
    assert "can&#39;t be done to a trigger" in visitor.post(f"/triggers/{name}/explode", 400)


def test_an_event_is_designed_by_a_form(visitor):
    assert 'href="/new-event"' in visitor.get("/events")
    form = {
        "label": "Tank <Level>",
        "name": "Tank_Level",
        "rows": "6",
        "field.0.label": "Tank",
        "field.0.type": "Text",
        "field.0.length": "12",
        "field.0.required": "yes",
        "field.3.label": "Liters",
        "field.3.type": "Number",
        "field.3.precision": "8",
        "field.3.scale": "2",
    }
    shown = html.unescape(visitor.post("/new-event", 200, **form, what="show"))
    assert "<label>Tank &lt;Level&gt;</label>" in shown and "<fullName>Tank__c</fullName>" in shown
    wrong = visitor.post("/new-event", 400, **form | {"field.3.scale": "9"}, what="define")
    assert "precision 8 and scale 9 are not possible together" in wrong and 'value="Liters"' in wrong
    assert visitor.post("/new-event", 200, **form, what="more").count("API name of field") == 12
    assert "give an API name" in visitor.post("/new-event", 400, **form | {"field.3.label": "Größe"}, what="define")
    assert visitor.post("/new-event", **form, what="define") == "/events/Tank_Level__e"
    again = visitor.post("/new-event", 400, **form | {"field.3.label": ""}, what="define")
    assert "There is an event Tank_Level__e already" in again
    page = visitor.get("/events/Tank_Level__e")
    assert "Tank__c" in page and "Liters" in page
    assert visitor.post("/events/Tank_Level__e/publish", **{"field.Tank__c": "A", "field.Liters__c": "1.5"})
