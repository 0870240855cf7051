"""Triggers, log and events service are killed at random under load: every event is handled, and its output is there
exactly once.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from events.client import EventsClient
from tests.proofs import effort
from tests.support.platform import running_platform, until
from tidegate.kit.errors import TidegateError

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1200)]

TRIGGERS = """
from events.triggers import trigger


@trigger("Source__e", batch_size=7, replay="earliest")
def whole(events, context):
    for event in events:
        context.publish("Target__e", {"N__c": event["N__c"]})


@trigger("Source__e", batch_size=5, partitions=2, partition_key="N__c", replay="earliest")
def parts(events, context):
    for place, event in enumerate(events):
        context.send("parts", None, str(int(event["N__c"])).encode())
        if place == 2:
            context.set_resume_checkpoint(event.replay_id)
            return
"""


def publish(client: EventsClient, number: int) -> None:
    """Publish until it is acknowledged; an attempt that was not may be there all the same."""
    deadline = time.monotonic() + 60
    while True:
        try:
            client.publish("Source__e", {"N__c": number})
            return
        except TidegateError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.parametrize("seed", range(effort(1, 50)))
def test_every_event_has_its_reaction_once(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    project = tmp_path / "project"
    project.mkdir()
    (project / "copies.py").write_text(TRIGGERS)
    config = tmp_path / "tidegate.toml"
    config.write_text('[triggers]\n"triggers.retries" = 1000\n"triggers.retry.backoff.max.ms" = 100\n')
    options = ("--triggers", str(project), "--config", str(config), "--without", "connect")
    with running_platform(tmp_path, *options) as platform:
        client = EventsClient(platform.addresses["events"], user="developer@tidegate.local", password="tidegate-dev")
        for event in ("Source__e", "Target__e"):
            fields = [{"name": "N__c", "type": ["null", "long"]}]
            client.define_avro(json.dumps({"type": "record", "name": event, "fields": fields}))
        kills = {
            chance.randrange(10, 120): chance.choice(["triggers", "triggers", "broker", "events"]) for _ in range(4)
        }
        for number in range(120):
            if number in kills:
                platform.kill(kills[number])
            publish(client, number)

        def waiting() -> int:
            try:
                subscribers = client.triggers()["subscribers"]
            except TidegateError:
                return -1
            return sum(subscriber["waiting"] for subscriber in subscribers) if len(subscribers) == 3 else -1

        until(lambda: waiting() == 0, "all events done", 120)
        source = [record["value"]["N__c"] for record in platform.consume("Source__e")]
        target = [record["value"]["N__c"] for record in platform.consume("Target__e")]
        parts = [int(record["value"]) for record in platform.consume("parts")]
    assert set(source) == set(range(120)), f"seed {seed}: acknowledged events are missing"
    assert target == source, f"seed {seed}: {kills}"
    assert sorted(parts) == sorted(map(int, source)), f"seed {seed}: {kills}"
