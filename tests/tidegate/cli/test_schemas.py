"""``tidegate schemas`` against a registry: all three types of schema, and incompatibilities explained in plain words."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from registry.client import RegistryClient
from registry.domain.registry import Registry
from registry.formats.compatibility import Level
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.server.app import application
from tests.registry.conftest import MemoryLog
from tidegate.cli.schemas import schemas
from tidegate.kit.http import HttpServer


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    started, ending = threading.Event(), asyncio.Event()
    address: dict[str, Any] = {}

    async def serve() -> None:
        metrics = RegistryMetrics()
        store = Store(MemoryLog(), metrics, timeout_ms=5000)
        await store.start()
        registry = Registry(store, metrics, default_level=Level.BACKWARD)
        server = HttpServer(application(registry, metrics, cluster_id="c", group_id="g"), "127.0.0.1", 0)
        await server.start()
        address.update(url=server.url, loop=asyncio.get_running_loop())
        started.set()
        await ending.wait()
        await server.stop()
        await store.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(60)
    with RegistryClient(address["url"]) as client:
        client.register("first", '"string"')  # what the server logs of its first write is not the command's output
    yield address["url"]
    address["loop"].call_soon_threadsafe(ending.set)
    thread.join(60)


class Run:
    """The command with a folder for files."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder

    def file(self, name: str, content: Any) -> str:
        path = self._folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def __call__(self, *arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(schemas, [*arguments, "--registry", self._url])
        assert result.exit_code == status, result.output + repr(result.exception)
        return result.output or str(result.exception)

    def level(self, subject: str, level: str) -> None:
        with RegistryClient(self._url) as client:
            client.set_compatibility(level, subject)


@pytest.fixture
def run(url: str, tmp_path: Path) -> Run:
    return Run(url, tmp_path)


def order(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


ID = {"name": "id", "type": "long"}


def test_schemas_come_and_go(run: Run) -> None:
    avro = run.file("a.avsc", order(ID))
    proto = run.file("p.proto", 'syntax = "proto3"; message Order { int64 id = 1; }')
    json_schema = run.file("j.json", {"type": "object", "properties": {"id": {"type": "integer"}}})
    for subject, file in (("go-a", avro), ("go-p", proto), ("go-j", json_schema)):
        schema_id = run("register", subject, file).strip()
        assert run("register", subject, file).strip() == schema_id
    rows = {row["subject"]: row["type"] for row in json.loads(run("list", "--prefix", "go-", "--json"))}
    assert rows == {"go-a": "AVRO", "go-p": "PROTOBUF", "go-j": "JSON"}
    assert run("get", "go-p") == 'syntax = "proto3";\n\nmessage Order {\n  int64 id = 1;\n}\n'
    assert json.loads(run("get", "go-a", "--json"))["type"] == "AVRO"
    assert json.loads(run("get", "go-j"))["type"] == "object"
    assert "may become the next version of go-a (BACKWARD)" in run("check", "go-a", avro)
    assert "may become the first version of go-new" in run("check", "go-new", avro)
    assert json.loads(run("check", "go-a", avro, "--json"))["compatible"] is True


@pytest.mark.parametrize(
    ("level", "fields", "words"),
    [
        (
            "BACKWARD",
            [ID, {"name": "total", "type": "double"}],
            [
                "Order.total  (READER_FIELD_MISSING_DEFAULT_VALUE, against version 1)",
                "the field total is new and has no default; data written with version 1 does not have it",
                'give it a default, for example "default": 0.0, or make it optional: "type": ["null", "double"], "default": null',
            ],
        ),
        (
            "BACKWARD",
            [{"name": "id", "type": "int"}],
            [
                "Order.id  (TYPE_MISMATCH",
                "the new schema has int here, version 1 wrote long",
                "int to long to float to double",
            ],
        ),
        ("FORWARD", [], ["Order.id", "version 1 needs the field id, which has no default there", "keep the field id"]),
        ("FULL", [{"name": "id", "type": "string"}], ["version 1 has long here, the new schema wrote string"]),
    ],
)
def test_an_incompatible_avro_schema_is_explained(run: Run, level: str, fields: list[Any], words: list[str]) -> None:
    subject = f"told-{level}-{len(words)}"
    run("register", subject, run.file("old.avsc", order(ID)))
    run.level(subject, level)
    output = run("check", subject, run.file("new.avsc", order(*fields)), status=1)
    assert f"may not become the next version of {subject} ({level}):" in output
    for part in words:
        assert part in output


NESTED = {
    "type": "record",
    "name": "O",
    "fields": [
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 4}},
            {"name": "of", "type": ["null", "string", "int"]},
            {"name": "tags", "type": {"type": "map", "values": {"type": "record", "name": "Tag", "fields": []}}},
        ]}}}
    ],
}  # fmt: skip


def test_an_error_deep_inside_names_its_path(run: Run) -> None:
    run("register", "deep", run.file("old.avsc", NESTED))
    changed = json.loads(
        json.dumps(NESTED)
        .replace('["A", "B"]', '["A"]')
        .replace('"size": 4', '"size": 8')
        .replace('["null", "string", "int"]', '["null", "string"]')
        .replace('"Tag"', '"Label"')
    )
    answer = json.loads(run("check", "deep", run.file("new.avsc", changed), "--json", status=1))
    told = {entry["rule"]: (entry["where"], entry["fix"]) for entry in answer["explanations"]}
    assert (
        told["MISSING_ENUM_SYMBOLS"][0] == "O.lines[].kind" and "keep the symbols B" in told["MISSING_ENUM_SYMBOLS"][1]
    )
    assert told["FIXED_SIZE_MISMATCH"][0] == "O.lines[].code"
    assert told["MISSING_UNION_BRANCH"] == ("O.lines[].of", "put int back into the union")
    assert told["NAME_MISMATCH"] == ("O.lines[].tags{}", 'keep the name Tag, or add "aliases": ["Tag"] to Label')
    assert answer["compatible"] is False and len(answer["messages"]) >= 4


def test_json_schema_and_protobuf_are_explained(run: Run) -> None:
    run("register", "ex-j", run.file("old.json", {"type": "object", "properties": {"a": {"type": "string"}}}))
    new = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer"}}}
    output = run("check", "ex-j", run.file("new.json", new), status=1)
    assert "b  (OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL, against version 1)" in output
    assert 'close the objects ("additionalProperties": false)' in output
    assert "a  (MAX_LENGTH_ADDED" in output and "leave maxLength as it was, or loosen it" in output

    head = 'syntax = "proto3"; message Order { message Line {} '
    run(
        "register",
        "ex-p",
        run.file("old.proto", head + "int64 id = 1; oneof pay { string card = 2; bool cash = 3; } }"),
    )
    output = run(
        "check", "ex-p", run.file("new.proto", head + "string id = 1; oneof pay { string card = 2; } }"), status=1
    )
    assert "Order.id (1)  (FIELD_SCALAR_KIND_CHANGED, against version 1)" in output
    assert "Order.cash (3)  (ONEOF_FIELD_REMOVED" in output


def test_another_type_of_schema_is_explained(run: Run) -> None:
    run("register", "other", run.file("old.avsc", order(ID)))
    output = run("check", "other", run.file("new.json", {"type": "object"}), status=1)
    assert "version 1 is AVRO, the new schema is JSON: neither reads the other" in output


def test_references_are_followed(run: Run) -> None:
    run(
        "register", "ref-line", run.file("line.proto", 'syntax = "proto3"; package s; message Line { string sku = 1; }')
    )
    text = 'syntax = "proto3"; import "line.proto"; message Order { s.Line line = 1; }'
    file = run.file("order.proto", text)
    run("register", "ref-order", file, "--reference", "line.proto=ref-line")
    assert json.loads(run("get", "ref-order", "--json"))["references"] == [
        {"name": "line.proto", "subject": "ref-line", "version": 1}
    ]
    assert "may become the next" in run("check", "ref-order", file, "--reference", "line.proto=ref-line@1")
    unknown = run.file("parking.avsc", order({"name": "where", "type": "Place"}))
    assert "--reference NAME=SUBJECT says" in run("register", "ref-avro", unknown, status=1)
    refused = run("delete", "ref-line", status=1)
    assert "Delete first what refers to it: ref-order version 1" in refused
    longer = 'syntax = "proto3"; package s; message Line { string sku = 1; int32 count = 2; }'
    run("register", "ref-line", run.file("longer.proto", longer))
    run("register", "ref-order", file, "--reference", "line.proto=ref-line")
    changed = run("diff", "ref-order").splitlines()
    assert "-line.proto = ref-line version 1" in changed and "+line.proto = ref-line version 2" in changed
    assert "Could not resolve type: s.Line" in run("register", "ref-none", file, status=1)
    assert "give NAME=SUBJECT" in run("check", "ref-order", file, "--reference", "nonsense", status=2)


def test_versions_are_compared(run: Run) -> None:
    for name, fields in (("1", [ID]), ("2", [ID, {"name": "note", "type": "string", "default": ""}])):
        run("register", "cmp", run.file(f"{name}.avsc", order(*fields)))
    output = run("diff", "cmp")
    assert '+      "name": "note",' in output
    assert "version 2 reads data of version 1" in output and "version 1 reads data of version 2" in output
    backwards = json.loads(run("diff", "cmp", "2", "1", "--json"))
    assert backwards["older"] == 2 and backwards["newer"] == 1 and backwards["backward"] == []
    assert "are the same" in run("diff", "cmp", "1", "1")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["get", "nowhere"], 1, "Subject 'nowhere' not found."),
        (["register", "x", "/nowhere.avsc"], 1, "cannot read /nowhere.avsc: No such file or directory"),
        (["check", "x", "{folder}/bad.avsc"], 1, "bad.avsc: Invalid schema of type AVRO"),
        (["check", "x", "{folder}/bad.proto"], 1, "bad.proto: Invalid schema of type PROTOBUF"),
        (["register", "x", "{folder}/latin.avsc"], 1, "it is not UTF-8 text"),
    ],
)
def test_mistakes_are_told_in_a_line(run: Run, tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    run.file("bad.avsc", "{")
    run.file("bad.proto", "message")
    (tmp_path / "latin.avsc").write_bytes(b"\xff\xfe\xe4")
    assert words in run(*(argument.replace("{folder}", str(tmp_path)) for argument in arguments), status=status)


def test_versions_are_listed_and_found_by_id(run: Run) -> None:
    run("register", "many", run.file("one.avsc", order(ID)))
    optional = {"name": "note", "type": ["null", "string"], "default": None}
    second = int(run("register", "many", run.file("two.avsc", order(ID, optional))))
    listed = [line.split() for line in run("versions", "many").splitlines()[1:]]
    assert [(row[0], row[2]) for row in listed] == [("1", "AVRO"), ("2", "AVRO")]
    assert json.loads(run("get", "--id", str(second)))["fields"][1]["name"] == "note"
    by_id = json.loads(run("get", "--id", str(second), "--json"))
    assert (by_id["subject"], by_id["version"], by_id["id"]) == ("many", 2, second)
    assert [v["version"] for v in json.loads(run("versions", "many", "--json"))] == [1, 2]
    assert "give a SUBJECT or --id" in run("get", status=2)
    assert "give a SUBJECT or --id" in run("get", "many", "--id", "1", status=2)
    assert "Schema 4711 not found" in run("get", "--id", "4711", status=1)


def test_references_of_a_version_are_listed(run: Run) -> None:
    run("register", "referred", run.file("item.avsc", {"type": "record", "name": "Item", "fields": []}))
    holder = {"type": "record", "name": "Holder", "fields": [{"name": "item", "type": "Item"}]}
    run("register", "referring", run.file("holder.avsc", holder), "--reference", "Item=referred")
    assert "Item = referred@1" in run("versions", "referring")


def test_versions_and_subjects_are_deleted(run: Run) -> None:
    run("register", "gone", run.file("one.avsc", order(ID)))
    run("register", "gone", run.file("two.avsc", order(ID, {"name": "n", "type": "int", "default": 0})))
    assert run("delete", "gone", "--version", "2").startswith("deleted of gone: version 2 (--permanent")
    assert [v["version"] for v in json.loads(run("versions", "gone", "--json"))] == [1]
    assert "Subject 'goen' not found. Did you mean gone?" in run("delete", "goen", status=1)
    assert run("delete", "gone").startswith("deleted of gone: version 1")
    assert run("delete", "gone", "--permanent") == "deleted of gone: version 1, 2 for good\n"
    assert "not found" in run("versions", "gone", status=1)


def test_a_level_is_shown_set_and_reset(run: Run) -> None:
    run("register", "leveled", run.file("one.avsc", order(ID)))
    assert run("compat", "leveled") == "leveled: BACKWARD\n"
    assert run("compat", "leveled", "full") == "leveled: FULL\n"
    assert json.loads(run("compat", "leveled", "--json")) == {"subject": "leveled", "level": "FULL"}
    assert run("compat", "leveled", "--reset") == "leveled: BACKWARD\n"
    assert run("compat", "--global") == "all subjects without a level of their own: BACKWARD\n"
    assert "Invalid compatibility level" in run("compat", "leveled", "most", status=1)
    assert "give a SUBJECT or --global" in run("compat", status=2)
    assert "--reset is for a subject" in run("compat", "--global", "--reset", status=2)


def test_the_global_level_is_set(run: Run) -> None:
    try:
        assert run("compat", "--global", "NONE").endswith(": NONE\n")
        assert run("compat", "unknown-subject") == "unknown-subject: NONE\n"
    finally:
        run("compat", "--global", "BACKWARD")
