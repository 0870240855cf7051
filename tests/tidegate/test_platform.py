"""The platform as a user runs it: the command, real processes, real servers."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import requests

from tests.servers.process import free_ports
from tests.support.platform import tidegate, until
from tidegate.cli.up import _last_line
from tidegate.kit.errors import UsageError
from tidegate.platform import Supervision, make_plan
from tidegate.state import State


def status(data):
    return json.loads(tidegate("status", "--data", data, "--json").stdout)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("platform") / "data"
    tidegate("up", "--detach", "--data", folder, "--broker-listen", "127.0.0.1:0")
    yield folder
    tidegate("down", "--data", folder)


def test_a_process_that_nobody_waits_for_does_not_run():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        state = State(process.pid, time.time(), "127.0.0.1:1")
        assert state.running
        process.stdin.close()
        until(
            lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE,
            "a process that has ended, and is listed",
        )
        assert not state.running


def test_a_login_without_a_kafka_is_refused(tmp_path):
    config = tmp_path / "tidegate.toml"
    config.write_text('[kafka]\nsecurity.protocol = "SASL_SSL"\n')
    with pytest.raises(UsageError, match="has security.protocol SASL_SSL.*--bootstrap-servers names"):
        make_plan(tmp_path, listen={}, config_file=config)
    make_plan(tmp_path, listen={}, config_file=config, bootstrap_servers="127.0.0.1:9")


@pytest.mark.long
def test_a_start_that_waits_says_for_what(tmp_path):
    (port,) = free_ports(1)
    options = ("--data", tmp_path, "--broker-listen", "127.0.0.1:0", "--bootstrap-servers", f"127.0.0.1:{port}")
    command = [sys.executable, "-m", "tidegate.cli", "up", "--detach", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        line = next(line for line in process.stderr if line.startswith("registry is starting"))
        assert f"no broker can be reached at 127.0.0.1:{port}" in line
        told = tidegate("status", "--data", tmp_path).stdout
        assert "registry is starting; its log ends with: " in told and str(port) in told
        process.kill()
    tidegate("down", "--data", tmp_path)


def test_every_face_answers_and_says_its_address(data):
    addresses = status(data)["addresses"]
    assert requests.get(f"{addresses['registry']}/subjects", timeout=60).json() == []
    assert requests.get(addresses["connect"], timeout=60).json()["version"]
    assert requests.get(f"{addresses['events']}/services/data", timeout=60).ok
    tls = requests.Session()
    tls.trust_env = False
    assert tls.get(f"{addresses['events-tls']}/services/data", timeout=60, verify=addresses["ca"]).ok
    for face in ("registry", "connect", "events"):
        assert "http_requests_total" in requests.get(f"{addresses[face]}/metrics", timeout=60).text
    assert "tidegate_broker" in requests.get(addresses["broker-metrics"], timeout=60).text


def test_the_platform_is_small_and_loads_no_heavy_library(data):
    components = status(data)["components"]
    assert sum(component["memory_mb"] for component in components.values()) < 400
    for name, component in components.items():
        mapped = {Path(region.path).name for region in psutil.Process(component["pid"]).memory_maps() if region.path}
        heavy = [file for file in mapped if any(word in file for word in ("arrow", "pandas", "numba", "llvm", "py4j"))]
        assert heavy == [], f"{name} has loaded {heavy}"


@pytest.mark.parametrize("name", ["broker", "registry", "connect", "events"])
def test_a_component_that_is_killed_comes_back_at_its_address(data, name):
    before = status(data)["components"][name]
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: (now := status(data)["components"][name])["ready"] and now["pid"] != before["pid"])
    after = status(data)["components"][name]
    assert after["addresses"] == before["addresses"] and after["restarts"] == before["restarts"] + 1


def test_a_second_up_on_the_same_data_is_refused(data):
    refused = tidegate("up", "--data", data, "--broker-listen", "127.0.0.1:0", check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: another tidegate is up on")


def test_down_leaves_no_process_and_what_was_written_is_there_again(tmp_path):
    data = tmp_path / "data"
    up = (
        "up",
        "--detach",
        "--data",
        data,
        "--broker-listen",
        "127.0.0.1:0",
        "--without",
        "events",
        "--without",
        "connect",
        "--without",
        "console",
    )
    tidegate(*up)
    pids = [component["pid"] for component in status(data)["components"].values()]
    schema = tmp_path / "a.avsc"
    schema.write_text('{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}')
    schema_id = tidegate("schemas", "register", "a-value", schema, "--data", data).stdout
    tidegate("down", "--data", data)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    tidegate(*up)
    try:
        assert tidegate("schemas", "register", "a-value", schema, "--data", data).stdout == schema_id
    finally:
        tidegate("down", "--data", data)


def test_a_taken_port_is_told_in_one_line(data, tmp_path):
    taken = status(data)["addresses"]["broker"]
    refused = tidegate(
        "up", "--data", tmp_path / "other", "--broker-listen", taken, "--registry-listen", "127.0.0.1:0", check=False
    )
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr and taken.rpartition(":")[2] in refused.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"without": ["brokr"]},
            "--without 'brokr': there is no such component; there are: broker, registry, connect, events, triggers, console",
        ),
        ({"without": ["broker"]}, "without the broker --bootstrap-servers must name a Kafka"),
        ({"listen": {"broker": "9092"}}, "'9092' is not an address: give HOST:PORT, for example 127.0.0.1:0"),
    ],
)
def test_wrong_usage_is_told_with_what_would_be_right(tmp_path, options, words):
    with pytest.raises(UsageError) as raised:
        make_plan(tmp_path, **({"listen": {}} | options))
    assert raised.value.message == words


def test_a_config_file_sets_component_keys_and_kafka_settings(tmp_path):
    file = tmp_path / "tidegate.toml"
    file.write_text(
        '[broker]\nnum.partitions = 3\n[kafka]\nsecurity.protocol = "PLAINTEXT"\n[connect]\nplugin.path = ["a", "b"]\n'
    )
    plan = make_plan(tmp_path, listen={}, config_file=file)
    assert plan.properties["broker"]["num.partitions"] == "3"
    assert plan.properties["registry"]["kafkastore.security.protocol"] == "PLAINTEXT"
    assert plan.properties["connect"]["plugin.path"] == "a,b"
    file.write_text('[supervisor]\n"watchdog.sec" = 0\n"log.max.bytes" = 2000000\n')
    assert make_plan(tmp_path, listen={}, config_file=file).supervision == Supervision(0, 2_000_000, 3)
    for wrong, words in (
        ('"log.max.bytes" = 5', "log.max.bytes is '5'; give bytes from 1,048,576 on, or 0 for logs that grow"),
        ('"log.bytes" = 5', "[supervisor] has no key log.bytes; it has watchdog.sec, log.max.bytes, log.backups"),
    ):
        file.write_text(f"[supervisor]\n{wrong}\n")
        with pytest.raises(UsageError, match=re.escape(words)):
            make_plan(tmp_path, listen={}, config_file=file)
    file.write_text("[brokr]\nx = 1\n")
    with pytest.raises(UsageError, match="'brokr' is not a table of broker, connect, console, events, kafka, registry"):
        make_plan(tmp_path, listen={}, config_file=file)


def test_triggers_belong_to_the_data_folder_once_they_were_given(tmp_path):
    data, folder = tmp_path / "data", tmp_path / "triggers"
    folder.mkdir()

    def folder_of(**more):
        plan = make_plan(data, listen={"broker": "127.0.0.1:0"}, **more)
        return plan.properties.get("triggers", {}).get("triggers.dir")

    assert folder_of() is None
    assert folder_of(triggers=folder) == folder_of() == str(folder)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert folder_of(without=["triggers"]) is None and folder_of() is None
    folder_of(triggers=folder)
    folder.rmdir()
    with pytest.raises(UsageError, match=rf"are in {folder}, which is not there: name their folder with --triggers"):
        folder_of()


def planned(tmp_path, text):
    (tmp_path / "tidegate.toml").write_text(text)
    return make_plan(tmp_path / "data", listen={}, config_file=tmp_path / "tidegate.toml").properties


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("PLAINTEXT://127.0.0.1:19292", "127.0.0.1:19292"),
        ("B://127.0.0.1:19293,A://127.0.0.1:19292", "127.0.0.1:19292"),
    ],
)
def test_the_others_reach_the_broker_where_the_file_has_it_listen(tmp_path, listeners, address):
    protocols = "A:PLAINTEXT,B:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"
    properties = planned(
        tmp_path,
        f'[broker]\nlisteners = "{listeners}"\n'
        f'"listener.security.protocol.map" = "{protocols}"\n"sasl.enabled.mechanisms" = "SCRAM-SHA-512"\n',
    )
    assert properties["broker"]["listeners"] == listeners
    assert properties["connect"]["bootstrap.servers"] == address
    assert properties["registry"]["kafkastore.bootstrap.servers"] == address


def test_the_others_reach_the_registry_where_the_file_has_it_listen(tmp_path):
    properties = planned(tmp_path, '[registry]\nlisteners = "http://127.0.0.1:18081"\n')
    assert properties["events"]["schema.registry.url"] == "http://127.0.0.1:18081"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[registry]\nlisteners = "https://127.0.0.1:1"\n', "[registry] listeners has no http listener"),
        ('[broker]\nlisteners = "SASL_SSL://127.0.0.1:1"\n', "[broker] listeners has no PLAINTEXT listener"),
        ('[broker]\nlisteners = "PLAINTEXT://0.0.0.0:9092"\n', "broker would listen on 0.0.0.0:9092"),
        ('[registry]\nlisteners = "http://0.0.0.0:8081"\n', "registry would listen on 0.0.0.0:8081"),
        ('[connect]\nlisteners = "http://0.0.0.0:8083"\n', "connect would listen on 0.0.0.0:8083"),
        ('[events]\n"http.listen" = "0.0.0.0:8090"\n', "events would listen on 0.0.0.0:8090"),
    ],
)
def test_listeners_of_the_file_that_cannot_be_are_refused(tmp_path, text, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        planned(tmp_path, text)


def test_the_end_of_a_log_is_of_this_start_and_reads_well(tmp_path: Path) -> None:
    log = tmp_path / "registry.log"
    log.write_text("error: cannot listen on 127.0.0.1:8081\n")
    before = log.stat().st_size
    assert _last_line(log) == "cannot listen on 127.0.0.1:8081"
    assert _last_line(log, before) == "it said nothing"
    with log.open("a") as more:
        more.write('{"event": "schema log cannot be opened yet", "error": "no broker", "level": "warning"}\n')
    assert _last_line(log, before) == "schema log cannot be opened yet: no broker"
    for odd in ("5", "[1]", "{}", "null"):
        log.write_text(f"{odd}\n")
        assert _last_line(log) == odd
    log.write_text('{"event": 5, "error": null}\n')
    assert _last_line(log) == "5: None"
    log.write_text("error: anew\n")
    assert _last_line(log, before) == "anew", "a log that was rotated"
