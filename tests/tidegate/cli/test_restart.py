"""``tidegate restart COMPONENT`` of a running platform."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.platform import RunningPlatform, running_platform, tidegate
from tidegate.cli.up import tasks_text


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(tmp_path_factory.mktemp("restart"), "--without", "events") as started:
        yield started


def pids(platform: RunningPlatform) -> dict[str, int]:
    return {name: component["pid"] for name, component in platform.status()["components"].items()}


@pytest.mark.proof
def test_a_component_is_restarted_and_the_others_go_on(platform: RunningPlatform) -> None:
    lines = platform.data.parent / "lines.txt"
    lines.write_text("a\n")
    platform.create("lines", connector__class="FileStreamSource", file=lines, topic="lines")
    platform.create("out", connector__class="FileStreamSink", file=lines.with_name("out.txt"), topics="lines")
    before, addresses = pids(platform), platform.addresses
    done = tidegate("restart", "connect", "--data", platform.data).stdout
    assert done == "connect is ready again, 2 tasks run again\n"
    assert platform.runs("lines") and platform.runs("out")
    after = pids(platform)
    assert after["connect"] != before["connect"]
    assert (after["broker"], after["registry"]) == (before["broker"], before["registry"])
    assert platform.addresses == addresses and platform.status()["components"]["connect"]["restarts"] == 0
    tidegate("connectors", "list", "--data", platform.data)
    done = json.loads(tidegate("restart", "broker", "registry", "--json", "--data", platform.data).stdout)
    assert [entry["component"] for entry in done] == ["broker", "registry"]
    assert {entry["component"]: entry["pid"] for entry in done} == {
        name: pid for name, pid in pids(platform).items() if name != "connect"
    }


def test_tasks_that_do_not_run_again_are_named() -> None:
    assert tasks_text({"running": ["a-0"], "failed": [], "starting": []}) == ", 1 task runs again"
    assert tasks_text({"running": ["a-0"], "failed": ["b-0"], "starting": ["b-1"]}) == (
        ", 1 of 3 tasks runs again; failed: b-0 (`tidegate connectors status NAME` says why); still starting: b-1"
    )


def test_a_component_that_cannot_start_again_is_told(platform: RunningPlatform) -> None:
    properties = platform.data / "run" / "registry.properties"
    text = properties.read_text()
    properties.write_text(text + "\nhost.name.of.nothing=1\nkafkastore.timeout.ms=never\n")
    try:
        failed = tidegate("restart", "registry", "--data", platform.data, check=False)
        assert failed.returncode == 1 and failed.stderr.startswith("error: registry has ended at its start: ")
        assert "kafkastore.timeout.ms" in failed.stderr and "the supervisor goes on starting it" in failed.stderr
    finally:
        properties.write_text(text)


def test_wrong_names_are_told(platform: RunningPlatform, tmp_path: object) -> None:
    failed = tidegate("restart", "events", "--data", platform.data, check=False)
    assert failed.stderr == (
        f"error: the platform on {platform.data} runs without events; it has broker, registry, connect\n"
    )
    assert tidegate("restart", "brokr", "--data", platform.data, check=False).returncode == 2
    failed = tidegate("restart", "broker", "--data", tmp_path, check=False)
    assert failed.stderr.startswith(f"error: no tidegate is up on {tmp_path}")
