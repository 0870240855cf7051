"""Schemas that are large, deep, cyclic or slow to compare, from a user who may write a few subjects."""

from __future__ import annotations

import json
import socket
from typing import Any, Final

from tests.hostile.http_attacks import OUTSIDERS, ask
from tests.hostile.siege import Attack, Target

__all__ = ["ATTACKS"]

_SUBJECT: Final = "/subjects/mallory-value"


def _try(target: Target, schema: Any, kind: str = "AVRO", subject: str = _SUBJECT, **more: Any) -> None:
    """Compare, look up, and register it. The same schemas come each time, so that what is registered does not grow."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body = {"schema": text, "schemaType": kind, **more}
    ask(target, "POST", f"/compatibility{subject}/versions?verbose=true", body)
    ask(target, "POST", f"{subject}?normalize=true", body)
    ask(target, "POST", f"{subject}/versions?normalize=true", body)


def deep_json(target: Target) -> None:
    for data in (
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"[" * 500_000 + b"]" * 500_000,
        b"1" * 2_000_000,
        b'"\\u' * 9_999,
    ):
        ask(target, "POST", f"{_SUBJECT}/versions", data)
        ask(target, "PUT", "/config/mallory-value", data)


def odd_content(target: Target) -> None:
    body = json.dumps({"schema": '"string"'}).encode()
    for kind in (
        "",
        "text/plain",
        "application/xml",
        "application/json; charset=utf-7",
        "x" * 10_000,
        "multipart/form-data",
    ):
        ask(target, "POST", "/subjects/mallory-kinds/versions", body, kind=kind)
    ask(target, "POST", f"{_SUBJECT}/versions", b"x" * 33_000_000)
    ask(target, "POST", f"{_SUBJECT}/versions", {"schema": '"string"', "references": [{}] * 100_000})


def odd_addresses(target: Target) -> None:
    for path in ("/schemas/ids/-1", "/schemas/ids/99999999999999999999", f"/subjects/{'a' * 30_000}/versions", "/subjects/%00/versions", "/subjects/mallory%2F..%2F/versions/latest", "/subjects?subjectPrefix=" + "%" * 5_000, "/mode/:.:", "/config/:.mallory:", "/contexts", "/exporters", "/subjects/mallory-value/versions/1e9", "/schemas?limit=-1&offset=99999999999999"):  # fmt: skip
        ask(target, "GET", path)
        ask(target, "DELETE", path)


def large_avro(target: Target) -> None:
    fields = [{"name": f"f{number}", "type": ["null", "string"], "default": None} for number in range(20_000)]
    _try(target, {"type": "record", "name": "R", "fields": fields})
    _try(target, {"type": "enum", "name": "E", "symbols": [f"s{number}" for number in range(50_000)]})
    unions = [{"type": "record", "name": f"R{number}", "fields": []} for number in range(20_000)]
    _try(target, unions)
    _try(target, {"type": "record", "name": "R", "aliases": [f"a{n}" for n in range(50_000)], "fields": []})


def deep_avro(target: Target) -> None:
    for depth in (100, 500, 5_000):
        _try(target, '{"type":"array","items":' * depth + '"int"' + "}" * depth)
        text = "".join(f'{{"type":"record","name":"R{n}","fields":[{{"name":"f","type":' for n in range(depth))
        _try(target, text + '"int"' + "}]}" * depth)


def cyclic_avro(target: Target) -> None:
    _try(target, {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "R"} for n in range(1_000)]})
    # Every record has every other in a field: paths through them are more than can be walked.
    records = [{"type": "record", "name": f"R{n}", "fields": [{"name": f"f{m}", "type": f"R{m}"} for m in range(n)]} for n in range(120)]  # fmt: skip
    _try(target, records, subject="/subjects/mallory-cycle")
    _try(target, {"type": "record", "name": "A", "fields": [{"name": "b", "type": {"type": "record", "name": "B", "fields": [{"name": "a", "type": "A"}, {"name": "b", "type": ["B", "A"]}]}}]})  # fmt: skip


def large_protobuf(target: Target) -> None:
    head = 'syntax = "proto3";\n'
    _try(target, head + "".join(f"message M{n} {{ string a = 1; }}\n" for n in range(20_000)), "PROTOBUF")
    _try(target, head + "message M { " + "".join(f"string f{n} = {n + 1};" for n in range(20_000)) + "}", "PROTOBUF")
    _try(
        target,
        head + "message M { oneof o { " + "".join(f"M f{n} = {n + 1};" for n in range(5_000)) + "} }",
        "PROTOBUF",
    )
    _try(target, head + "enum E { " + "".join(f"V{n} = {n};" for n in range(20_000)) + "}", "PROTOBUF")


def odd_protobuf(target: Target) -> None:
    head = 'syntax = "proto3";\n'
    for text in (
        head + "".join(f"message M{n} {{ " for n in range(3_000)) + "}" * 3_000,
        head + "/*" * 100_000,
        head + '"' * 100_000,
        head + "option a." + "b." * 50_000 + 'c = "";',
        head + "message M { " + "reserved 1 to max;" * 5_000 + "}",
        head + "message M { string a = 536870912; string b = 19000; string c = -1; string d = 99999999999999999999; }",
        head + "message A { B b = 1; } message B { A a = 1; B b = 2; }",
        head + 'import "google/protobuf/any.proto";' * 2_000,
        head + 'import "self.proto"; message M {}',
        "{" * 200_000,
        "\0" * 100_000,
        head + "message M { map<string, " + "map<string, " * 2_000 + "M" + ">" * 2_001 + " m = 1; }",
    ):
        _try(target, text, "PROTOBUF", "/subjects/mallory-proto")


def large_json_schema(target: Target) -> None:
    objects = [{"type": "object", "properties": {f"p{number}": {"type": "string"}}} for number in range(2_000)]
    _try(target, {"anyOf": objects}, "JSON", "/subjects/mallory-json")
    _try(target, {"anyOf": list(reversed(objects))}, "JSON", "/subjects/mallory-json")
    _try(target, {"enum": list(range(100_000))}, "JSON", "/subjects/mallory-json")
    _try(target, {"properties": {f"p{n}": {"type": "string"} for n in range(30_000)}}, "JSON", "/subjects/mallory-json")
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        nested = {"oneOf": [nested, nested, {"not": nested}]} if len(json.dumps(nested)) < 200_000 else nested
    _try(target, nested, "JSON", "/subjects/mallory-json")


def odd_json_schema(target: Target) -> None:
    cycle = {
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        "$ref": "#/definitions/a",
    }
    tree = {"definitions": {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 3} for n in range(60)} | {"d60": {}}, "$ref": "#/definitions/d0"}  # fmt: skip
    for schema in (
        {"$ref": "#"},
        cycle,
        tree,
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
        {"pattern": "(a+)+$", "patternProperties": {"(.*)*x": {"pattern": "(a|a)*" * 100}}},
        {"pattern": "a{1000}{1000}"},
        {"pattern": "(" * 5_000 + ")" * 5_000},
        {"$ref": "https://evil.example/x.json"},
        {"multipleOf": 1e-300, "minimum": 10**400},
        {"$id": "http://evil.example/" + "a" * 50_000, "$anchor": "#", "$dynamicRef": "#x"},
    ):
        for _ in range(2):  # the second time is compared with the first
            _try(target, schema, "JSON", "/subjects/mallory-odd")
    for depth in (200, 3_000):
        for opening, closing in (('{"not":', "}"), ('{"allOf":[', "]}"), ('{"properties":{"a":', "}}")):
            _try(target, opening * depth + "{}" + closing * depth, "JSON", "/subjects/mallory-odd")


def nothing_is_fetched(target: Target) -> None:
    """A schema that names an address does not make the registry call there."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.2)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/x"
        _try(target, {"$schema": url, "$id": url, "$ref": url}, "JSON", "/subjects/mallory-trap")
        _try(target, f'syntax = "proto3"; import "{url}"; message M {{}}', "PROTOBUF", "/subjects/mallory-trap")
        try:
            trap.accept()[0].close()
        except TimeoutError:
            return
    raise AssertionError(f"the registry called {url}")


def cyclic_references(target: Target) -> None:
    subject, schema = "mallory-refs", {"type": "record", "name": "Refs", "fields": []}
    ask(target, "POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})
    itself = [{"name": "Refs", "subject": subject, "version": 1}]
    _try(target, {"type": "record", "name": "Refs", "fields": [{"name": "r", "type": "Refs"}]}, subject=f"/subjects/{subject}", references=itself)  # fmt: skip
    _try(target, '"string"', references=[{"name": f"n{n}", "subject": subject, "version": 1} for n in range(20_000)])
    _try(target, '"string"', references=[{"name": "x" * 100_000, "subject": "../" * 1_000, "version": -1}])


def of_others(target: Target) -> None:
    """The user is refused where it has no right."""
    for method, path in (("POST", "/subjects/other-value/versions"), ("PUT", "/config"), ("PUT", "/config/:.:"), ("PUT", "/mode"), ("DELETE", "/subjects/witness-value"), ("GET", "/subjects/witness-value/versions/1"), ("POST", "/compatibility/subjects/witness-value/versions/1")):  # fmt: skip
        answer = ask(target, method, path, {"schema": '"string"', "compatibility": "NONE", "mode": "IMPORT"})
        assert answer is None or answer.status_code in (403, 404), f"{method} {path}: {answer.text[:200]}"


ATTACKS: Final[list[Attack]] = [
    *OUTSIDERS,
    deep_json,
    odd_content,
    odd_addresses,
    large_avro,
    deep_avro,
    cyclic_avro,
    large_protobuf,
    odd_protobuf,
    large_json_schema,
    odd_json_schema,
    nothing_is_fetched,
    cyclic_references,
    of_others,
]
