"""Valid triggers, the operations that their context permits, and how a folder of triggers is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from events.triggers import InvalidReplayIdException, Trigger, TriggerContext, TriggerEvent
from events.triggers.project import fingerprint, load
from tidegate.kit.errors import UsageError


def nothing(events: Any, context: Any) -> None: ...


EVENTS = [TriggerEvent("Order__e", replay_id, f"u-{replay_id}", {"N__c": replay_id}) for replay_id in (5, 6, 9)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a b"}, "trigger name 'a b' is not possible"),
        ({"event": "Order"}, "trigger t is for 'Order', which is no event's name"),
        ({"batch_size": 2001}, "batch_size is 2001; 1 to 2000 is possible"),
        ({"batch_size": True}, "batch_size is True"),
        ({"partitions": 11}, "partitions is 11; 1 to 10 is possible"),
        ({"replay": "yesterday"}, "replay is 'yesterday'"),
        ({"event": "Row__ChangeEvent", "partitions": 2}, "change events have no EventUuid .* give partition_key"),
    ],
)
def test_a_trigger_that_cannot_be_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Trigger(**{"name": "t", "event": "Order__e", "function": nothing, **wrong})


def test_a_checkpoint_is_an_event_of_the_batch_and_keeps_what_was_written_before_it() -> None:
    context = TriggerContext(Trigger("t", "Order__e", nothing), EVENTS, 0)
    context.publish("Done__e", {"N__c": 5})
    context.set_resume_checkpoint(5)
    context.send("topic", None, b"6")
    assert context.resume_checkpoint == 5
    assert [output.topic for output in context.outputs_of_checkpoint] == ["Done__e"]
    context.set_resume_checkpoint("9")
    assert len(context.outputs_of_checkpoint) == 2
    for wrong in (7, "x", -1, "²"):
        with pytest.raises(InvalidReplayIdException, match="is not the replay id of an event in this batch"):
            context.set_resume_checkpoint(wrong)


def test_a_record_that_is_no_bytes_is_refused_where_it_is_sent() -> None:
    context = TriggerContext(Trigger("t", "Order__e", nothing), EVENTS, 0)
    for key, value, said in ((None, {"n": 1}, "a value that is dict"), ("k", b"v", "a key that is str")):
        with pytest.raises(UsageError, match=f"trigger t sends to topic {said}: give bytes or None"):
            context.send("topic", key, value)  # type: ignore[arg-type]
    assert context.outputs == []


def test_an_event_gives_its_fields_by_name() -> None:
    event = EVENTS[0]
    assert (event["N__c"], event["ReplayId"], event["EventUuid"]) == (5, "5", "u-5")
    with pytest.raises(KeyError):
        event["Other__c"]


GOOD = """
from events.triggers import trigger
import shared_{n}

@trigger("Order__e", batch_size=10, partitions=2, partition_key="N__c")
def {name}(events, context):
    pass
"""


def test_a_file_that_cannot_be_loaded_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    (tmp_path / "shared_a.py").write_text("from events.triggers import trigger\n")
    (tmp_path / "a.py").write_text(GOOD.format(name="first", n="a"))
    (tmp_path / "b.py").write_text("def broken(:\n")
    (tmp_path / "c.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "d.py").write_text(GOOD.format(name="first", n="a"))
    (tmp_path / "e.py").write_text("from a import first\n")
    project = load(tmp_path, plugins=False)
    (made,) = project.triggers.values()
    assert (made.name, made.batch_size, made.partitions, made.partition_key) == ("first", 10, 2, "N__c")
    assert project.problems["b.py"].startswith("SyntaxError")
    assert project.problems["c.py"] == "it ends the process with status 3"
    assert "another trigger named first" in project.problems["d.py"]
    assert set(project.problems) == {"b.py", "c.py", "d.py"}


def test_a_change_of_a_file_changes_the_fingerprint(tmp_path: Path) -> None:
    seen = [fingerprint(tmp_path)]
    (tmp_path / "a.py").write_text("1")
    seen.append(fingerprint(tmp_path))
    (tmp_path / "a.py").write_text("12")
    seen.append(fingerprint(tmp_path))
    (tmp_path / "note.txt").write_text("no trigger")
    assert len(set(seen)) == 3
    assert fingerprint(tmp_path) == seen[-1]
    with pytest.raises(UsageError, match="there is no folder"):
        load(tmp_path / "missing")
