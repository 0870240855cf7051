"""The platform under kill -9: lines go from a file through the log to another file while its processes are killed at random."""

import random

import psutil
import pytest

from tests.proofs import drawn_seed, effort
from tests.support.platform import running_platform, until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]

STRING = "org.apache.kafka.connect.storage.StringConverter"
ROUNDS, LINES_A_ROUND = effort(4, 60), 2000


def victims(platform):
    """Every process of the platform but the supervisor, task hosts included, by name."""
    processes = []
    for name, component in platform.status()["components"].items():
        if component["pid"] is None or name == "events":
            continue
        process = psutil.Process(component["pid"])
        processes.append((name, process))
        processes += [("task host", child) for child in process.children()]
    return processes


def test_no_line_is_lost_when_any_process_is_killed_at_any_time(tmp_path, record_property):
    seed = drawn_seed()
    record_property("seed", seed)
    chance = random.Random(seed)
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.touch()
    common = {"tasks__max": 1, "key__converter": STRING, "value__converter": STRING}
    killed: dict[str, int] = {}
    with running_platform(tmp_path, "--without", "events") as platform:
        platform.create("in", connector__class="FileStreamSource", file=source, topic="lines", **common)
        platform.create("out", connector__class="FileStreamSink", file=target, topics="lines", **common)
        total = 0
        for _ in range(ROUNDS):
            with source.open("a") as file:
                file.writelines(f"line {number}\n" for number in range(total, total + LINES_A_ROUND))
            total += LINES_A_ROUND
            name, process = chance.choice(victims(platform))
            try:
                process.kill()
                killed[name] = killed.get(name, 0) + 1
            except psutil.NoSuchProcess:
                continue
            if chance.random() < 0.5:
                until(lambda: all(c["ready"] for c in platform.status()["components"].values()), timeout_s=300)
        expected = {f"line {number}" for number in range(total)}
        until(
            lambda: target.exists() and expected <= set(target.read_text().splitlines()),
            f"all lines (seed {seed})",
            timeout_s=300,
        )
        in_topic = [record["value"] for record in platform.consume("lines")]
    assert set(in_topic) == expected
    firsts = list(dict.fromkeys(in_topic))
    assert firsts == [f"line {number}" for number in range(total)], "first occurrences are in the file's order"
    record_property("killed", killed)
    record_property("lines", total)
    record_property("written again to the topic", len(in_topic) - total)
