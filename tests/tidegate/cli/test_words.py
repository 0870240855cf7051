"""Output of the command line: tables that can be searched, one-line errors that name their cause."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.support.platform import running_platform, tidegate
from tidegate.cli.options import print_table
from tidegate.state import State


def test_a_table_in_a_pipe_is_as_wide_as_its_rows(capsys):
    name = "io.example." + "x" * 200
    print_table(["class", "offsets"], [[name, 1234567]])
    assert capsys.readouterr().out.splitlines()[1].split() == [name, "1,234,567"]


def test_a_table_shows_brackets_as_they_are(capsys):
    print_table(["error [bold]"], [["[libpq] could not connect [/some]"]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["error [bold]", "[libpq] could not connect [/some]"]


def test_a_folder_without_a_platform_is_not_another_platform(tmp_path):
    """Otherwise a misspelt folder would have a topic deleted by whatever server listens on the default port."""
    for command in (("topics", "delete", "x"), ("connectors", "list"), ("schemas", "list")):
        failed = tidegate(*command, "--data", tmp_path / "tpyo", check=False)
        assert failed.returncode == 1
        assert failed.stderr.startswith(f"error: no tidegate is up on {tmp_path}/tpyo: start one with")


def test_a_misspelt_command_is_answered_with_the_nearest():
    for words, near in (
        (["conectors"], "'connectors'"),
        (["topics", "lst"], "'list'"),
        (["connectors", "offsets", "gte"], "'get'"),
    ):
        failed = tidegate(*words, check=False)
        assert failed.returncode == 2
        assert f"No such command '{words[-1]}'." in failed.stderr and near in failed.stderr


def test_an_address_without_a_scheme_is_told_how_one_looks():
    failed = tidegate("connectors", "list", "--connect", "127.0.0.1:1", check=False)
    assert (
        failed.stderr
        == "error: '127.0.0.1:1' is not the address of connect: give http://HOST:PORT or https://HOST:PORT\n"
    )


def test_a_broker_that_is_not_there_is_one_line():
    failed = tidegate("topics", "list", "--bootstrap-servers", "127.0.0.1:9", check=False)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1 and failed.stderr.startswith("error: no broker can be reached at 127.0.0.1:9")


def test_a_group_that_is_not_there_is_named(tidegate_broker):
    where = ("--bootstrap-servers", tidegate_broker.bootstrap_servers)
    failed = tidegate("groups", "describe", "nobody", *where, check=False)
    assert (failed.returncode, failed.stderr.splitlines()[0]) == (
        1,
        "error: there is no group nobody; `tidegate groups list` shows those there are",
    )


def test_a_connector_from_standard_input_needs_a_name():
    config = json.dumps({"connector.class": "FileStreamSource", "topic": "t"})
    command = [sys.executable, "-m", "tidegate.cli", "connectors", "apply", "-", "--connect", "http://127.0.0.1:9"]
    done = subprocess.run(command, input=config, capture_output=True, text=True, timeout=300)
    assert done.stderr == "error: standard input holds a connector without a name: add one\n"


def test_another_program_with_the_process_id_of_a_platform_that_crashed_is_not_it():
    assert State(os.getpid(), time.time(), "").running
    assert not State(os.getpid(), time.time() - 86_400 * 365, "").running


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with running_platform(tmp_path_factory.mktemp("words"), "--without", "events") as platform:
        yield platform


def test_a_line_that_does_not_fit_its_schema_is_named(platform, tmp_path):
    schema = {"type": "record", "name": "Reading", "fields": [{"name": "station", "type": "string"}]}
    (tmp_path / "reading.avsc").write_text(json.dumps(schema))
    (tmp_path / "lines").write_text('{"station": "JFK"}\n{"station": 1}\n')
    tidegate("schemas", "register", "readings-value", tmp_path / "reading.avsc", "--data", platform.data)
    command = ("produce", "readings", tmp_path / "lines", "--subject", "readings-value", "--data", platform.data)
    failed = tidegate(*command, check=False)
    assert failed.stderr.count("\n") == 1
    assert failed.stderr == "error: line 2 does not fit the schema: field station: 1 is not text in quotes\n"


def test_a_refused_schema_points_to_the_command_that_explains_it(platform, tmp_path):
    file = tmp_path / "measure.avsc"
    for type_ in ("string", "int"):
        file.write_text(json.dumps({"type": "record", "name": "M", "fields": [{"name": "at", "type": type_}]}))
        done = tidegate("schemas", "register", "measures-value", file, "--data", platform.data, check=type_ == "string")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.endswith(f"; `tidegate schemas check measures-value {file}` lists each problem and its fix\n")


def test_of_a_file_with_a_wrong_line_nothing_is_written_and_of_standard_input_the_lines_before_it(platform, tmp_path):
    (tmp_path / "lines").write_text("1\n2\nthree\n")
    tidegate("topics", "create", "whole", "--data", platform.data)
    failed = tidegate("produce", "whole", tmp_path / "lines", "--data", platform.data, check=False)
    assert failed.stderr.startswith("error: line 3 is not JSON: ")
    assert platform.consume("whole") == []
    command = [sys.executable, "-m", "tidegate.cli", "produce", "whole", "--data", str(platform.data)]
    piped = subprocess.run(command, input=(tmp_path / "lines").read_text(), capture_output=True, text=True, timeout=300)
    assert piped.returncode == 1 and piped.stderr.endswith("; 2 records before it are written\n")
    assert [record["value"] for record in platform.consume("whole")] == [1, 2]


def test_a_reader_that_takes_the_first_lines_only_is_no_error(platform, tmp_path):
    (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(20_000)))
    tidegate("produce", "plenty", tmp_path / "lines", "--data", platform.data)
    command = [sys.executable, "-m", "tidegate.cli", "consume", "plenty", "--to-end", "--data", str(platform.data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reading:
        assert json.loads(reading.stdout.readline())["value"] == 0
        reading.stdout.close()
        assert (reading.wait(60), reading.stderr.read()) == (0, "")


def test_an_unknown_connector_class_is_answered_with_the_nearest(platform, tmp_path):
    (tmp_path / "x.json").write_text('{"connector.class": "org.example.FileStreamSuorceConnector", "topic": "t"}')
    failed = tidegate("connectors", "apply", tmp_path / "x.json", "--data", platform.data, check=False)
    assert failed.returncode == 1
    assert failed.stderr.splitlines() == [
        "error: nothing was applied:",
        f"{tmp_path}/x.json: the worker has no connector class org.example.FileStreamSuorceConnector; did you mean "
        "org.apache.kafka.connect.file.FileStreamSourceConnector? (`tidegate connectors plugins` lists all)",
    ]


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for detach in ([], ["--detach"]):
        failed = tidegate("up", *detach, "--data", tmp_path / "file" / "data", check=False)
        assert failed.returncode == 1
        assert (
            failed.stderr.startswith(f"error: cannot make the folder {tmp_path}/file/data")
            and "Not a dir" in failed.stderr
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[broker]\n"num.partition" = 3\n', "[broker] has no key num.partition; did you mean num.partitions?"),
        (
            '[broker]\n"log.retention.hrs" = 3\n',
            "[broker] has no key log.retention.hrs; did you mean log.retention.hours?",
        ),
        ("[events]\nevents.retention = 1\n", "[events] has no key events.retention; did you mean events.retention.ms?"),
        (
            "[brokr]\nx = 1\n",
            "'brokr' is not a table of broker, connect, console, events, kafka, registry, security, supervisor, triggers",
        ),
    ],
)
def test_errors_in_tidegate_toml_are_named(text, words, tmp_path):
    (tmp_path / "tidegate.toml").write_text(text)
    failed = tidegate("up", "--data", tmp_path / "data", "--config", tmp_path / "tidegate.toml", check=False)
    assert (failed.returncode, failed.stderr) == (1, f"error: {tmp_path}/tidegate.toml: {words}\n")
