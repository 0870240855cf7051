"""``tidegate loggers``, on a worker and on brokers of both kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.platform import RunningPlatform, running_platform, tidegate


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(
        tmp_path_factory.mktemp("loggers"), "--without", "events", "--without", "registry"
    ) as started:
        yield started


def test_levels_of_a_worker(platform: RunningPlatform) -> None:
    where = ("--data", platform.data)
    before = json.loads(tidegate("loggers", "list", "--json", *where).stdout)
    assert before["root"] == "INFO" and before["uvicorn"] == "WARN"
    done = json.loads(tidegate("loggers", "set", "uvicorn", "debug", "--json", *where).stdout)
    below = [name for name in before if name == "uvicorn" or name.startswith("uvicorn.")]
    assert (done["logger"], done["level"]) == ("uvicorn", "DEBUG")
    assert "uvicorn" in done["changed"] and set(done["changed"]) <= set(below)
    after = json.loads(tidegate("loggers", "list", "uvicorn", "--json", *where).stdout)
    assert after == dict.fromkeys(below, "DEBUG")
    again = tidegate("loggers", "set", "uvicorn", "DEBUG", *where).stdout
    assert again == "uvicorn is DEBUG (0 loggers changed)\n"
    assert tidegate("loggers", "set", "root", "INFO", "--cluster", *where).stdout == "root is INFO\n"
    assert tidegate("loggers", "list", *where).stdout.splitlines()[0].split() == ["logger", "level"]
    assert {"connect.herder.herder", "connect.worker.worker"} <= before.keys(), "also those that have written nothing"
    strange = tidegate("loggers", "set", "uvicron", "INFO", *where)
    assert strange.stdout.startswith("uvicron is INFO")
    assert strange.stderr == "the worker has no logger uvicron so far; did you mean uvicorn?\n"
    missing = tidegate("loggers", "list", "uvicroon", *where, check=False)
    assert missing.returncode == 1 and missing.stderr.startswith("error: no logger's name begins with uvicroon; did")
    missing = tidegate("loggers", "list", "conect", *where, check=False)
    assert missing.stderr == "error: no logger's name begins with conect; did you mean connect?\n"
    wrong = tidegate("loggers", "set", "root", "LOUD", *where, check=False)
    assert wrong.returncode == 2 and "'LOUD' is not one of" in wrong.stderr


@pytest.mark.parametrize("broker", ["tidegate_broker", "apache_kafka"])
def test_levels_of_a_broker(broker: str, request: pytest.FixtureRequest) -> None:
    kafka: Any = request.getfixturevalue(broker)
    where = ("--broker", "1", "--bootstrap-servers", kafka.bootstrap_servers)
    levels = json.loads(tidegate("loggers", "list", "--json", *where).stdout)
    name = next(name for name in sorted(levels) if name != "root")
    level = "WARN" if levels[name] != "WARN" else "ERROR"
    assert tidegate("loggers", "set", name, level, *where).stdout == f"{name} is {level} (1 logger changed)\n"
    assert json.loads(tidegate("loggers", "list", name, "--json", *where).stdout)[name] == level
    tidegate("loggers", "set", name, levels[name], *where)
    wrong = tidegate("loggers", "set", f"{name}x", "INFO", *where, check=False)
    assert wrong.returncode == 1 and wrong.stderr.startswith(
        f"error: broker 1 has no logger {name}x; did you mean {name}"
    )
    assert tidegate("loggers", "set", name, "INFO", "--cluster", *where, check=False).returncode == 2
