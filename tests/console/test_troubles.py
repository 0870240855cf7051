"""The order of troubles and their remedies, and the lines over the last hour."""

import math
from array import array

import pytest

from tidegate.clients.counts import counts_of, totals_of
from tidegate.clients.json_members import members
from tidegate.console.charts import sparkline
from tidegate.console.config import ConsoleConfig
from tidegate.console.faces import Faces
from tidegate.console.group_samples import GroupHistory
from tidegate.console.listing import listed_of
from tidegate.console.platform import Disk
from tidegate.console.remedies import first_sentence, remedy, rest_of
from tidegate.console.samples import History, Sampler
from tidegate.console.summaries import summaries
from tidegate.console.troubles import troubles_of
from tidegate.kit.config import parse


def task(number, rows, lag, skipped=0, letters=0):
    return {
        "id": number,
        "sink-task-metrics": {"sink-record-send-total": rows, "sink-record-send-rate": 1.0},
        "task-error-metrics": {"total-records-skipped": skipped, "deadletterqueue-produce-requests": letters},
        "lags": [{"topic": "t", "partition": 0, "lag": lag}],
    }


def entry(name, states=("RUNNING",), trace=""):
    tasks = [
        {"id": n, "state": s, "worker_id": "w", **({"trace": trace} if trace else {})} for n, s in enumerate(states)
    ]
    status = {"name": name, "type": "sink", "connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": tasks}
    return {"info": {"type": "sink", "config": {"connector.class": "a.b.Sink"}}, "status": status}


def sums(counted):
    return {name: totals_of(counts_of(task) for task in tasks.values()) for name, tasks in counted.items()}


def test_failed_connectors_stand_first_and_every_trouble_says_what_to_do():
    trace = 'Traceback\nconnect.errors.X: password authentication failed for user "flink". More.\n'
    listed = {"a": entry("a"), "b": entry("b"), "z": entry("z", ("RUNNING", "FAILED"), trace), "s": entry("s")}
    counted = {"b": {0: task(0, 5, 0, skipped=3, letters=3)}, "s": {0: task(0, 5, 0, skipped=2)}}
    made = summaries({n: listed_of(e) for n, e in listed.items()}, sums(counted), None)
    assert [summary.name for summary in made] == ["z", "b", "s", "a"]
    disk = Disk("/data", 1_000_000_000, 100_000_000_000)
    troubles = troubles_of(made, silent_faces=[("Connect", "refused")], disk=disk, certificate_days=3)
    assert [trouble.severity for trouble in troubles] == ["error"] * 3 + ["warning"] * 3
    texts = [f"{trouble.title}: {trouble.remedy}" for trouble in troubles]
    assert texts[2].startswith("Connector z has failed: 1 of 2 tasks: Correct the user or the password")
    assert "expires in 3 days" in troubles[3].title
    assert troubles[4].link == "/dead-letters/b" and "errors.deadletterqueue" in troubles[5].remedy
    assert all(trouble.remedy for trouble in troubles)
    behind = troubles_of(made, groups={"connect-a": 5000, "readers": 2000})[-1]
    assert (behind.title, behind.link) == ("The lag of group readers grows", "/groups/readers")


def test_a_sink_that_waits_for_a_topic_is_a_trouble():
    counted = {"a": {0: task(0, 0, 0) | {"missing_topics": ["ordres"]}, 1: task(1, 0, 0)}}
    (trouble,) = troubles_of(summaries({"a": listed_of(entry("a"))}, sums(counted), None))
    assert (trouble.title, trouble.cause) == ("Connector a waits for 1 topic", "There is no topic ordres.")


def test_rates_follow_from_counts_and_lag_grows_only_if_it_rises_for_minutes():
    sampler = Sampler(Faces(parse(ConsoleConfig, {}), None))
    for number in range(300):
        sampler.add(sums({"a": {0: task(0, number * 150, 1000 + number)}, "b": {0: task(0, 0, 5000)}}), number * 15.0)
    history = sampler.history("a")
    assert len(history.rates) == 240 and history.rates[-1] == 10 and history.lag_grows
    assert not sampler.history("b").lag_grows
    sampler.add(sums({"a": {0: task(0, 3, 0)}}), 300 * 15.0)
    assert math.isnan(sampler.history("a").rates[-1]) and sampler.history("b") is None
    assert not History(array("f"), array("f", [1.0] * 5)).lag_grows
    group = GroupHistory()
    for number in range(300):
        group.add(
            [{"topic": "t", "partition": p, "lag": 1000 * p + number} for p in ((0, 1) if number < 299 else (1, 2))]
        )
    assert len(group.total) == 240 and group.lag_grows and group.total[-1] == 3000 + 2 * 299
    assert {partition: len(points) for partition, points in group.partitions.items()} == {("t", 1): 240, ("t", 2): 1}
    group.add([{"topic": "t", "partition": p, "lag": 1} for p in range(201)])
    assert group.partitions == {} and group.total[-1] == 201
    drawn = sparkline([1.0, float("nan"), 2.0, 4.0], "rows <b>")
    assert drawn.count("M") == 2 and "rows &lt;b&gt;" in drawn and sparkline([1.0], "x") == ""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('FATAL: password authentication failed for user "x"', "Correct the user or the password"),
        ('relation "public.orders" does not exist', "Create what the message names"),
        ("connection to server at 127.0.0.1 failed: Connection refused", "See that the server runs"),
        ("write failed: No space left on device", "Free disk space"),
        ("something else", "Read the whole message"),
    ],
)
def test_a_remedy_fits_the_message(message, words):
    assert remedy(message).startswith(words)


def test_the_first_sentence_of_a_bad_record_is_its_cause():
    text = (
        "Tolerance exceeded in error handler: connector a, task 0, topic orders, partition 0, offset 2, timestamp_ms 1, "
        "stage VALUE_CONVERTER (JsonConverter): a value of orders is not JSON"
    )
    assert first_sentence(text) == "A value of orders is not JSON (orders, partition 0, offset 2)"
    assert first_sentence("One thing. Another thing.") == "One thing"
    assert rest_of(text) == "" == rest_of("one thing") and rest_of("One thing. Another thing.").endswith(
        "Another thing."
    )
    assert len(first_sentence("x" * 1000)) == 300 and rest_of("x" * 1000) and first_sentence("") == "It gave no reason"


def test_members_of_a_large_object_come_one_by_one():
    text = '{ "a" : [1, {"b": 2}] , "inner": {"x": 1, "y": {}} ,"c":null}'
    assert list(members(text)) == [("a", [1, {"b": 2}]), ("inner", {"x": 1, "y": {}}), ("c", None)]
    assert list(members(text, "inner")) == [("x", 1), ("y", {})] and list(members("{}")) == []
    for wrong in ("", "[]", '{"a" 1}', "{"):
        with pytest.raises(ValueError):
            list(members(wrong))
