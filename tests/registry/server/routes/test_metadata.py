"""Metadata, rules and tags: stored, filled in from configs and earlier versions, searched."""

import json
from typing import Any

from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

A, AB, ABC = record("a:string"), record("a:string", 'b:string="x"'), record("a:string", 'b:string="x"', 'c:string="y"')
VERSIONS = "/subjects/s/versions"


def properties(**expected: str) -> object:
    return lambda it: it.get("metadata", {}).get("properties", {}) == expected


def place(schema_id: int, version: int) -> object:
    return lambda it: (it["id"], it["version"]) == (schema_id, version)


def sent(schema: str, **more: str) -> dict[str, Any]:
    return {"schema": schema, "metadata": {"properties": more}}


def test_the_version_that_a_schema_claims_is_kept_true(client: TestClient) -> None:
    claims = "confluent:version"
    run(
        client,
        [
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("POST", VERSIONS, {"schema": A, "version": -1}, place(1, 1)),
            ("POST", VERSIONS, {"schema": A, "version": 2}, place(2, 2)),
            ("POST", VERSIONS, {"schema": A, "version": -1}, place(2, 2)),
            ("GET", f"{VERSIONS}/latest", None, properties(**{claims: "2"})),
            ("POST", "/subjects/s", {"schema": A}, place(1, 1)),
            ("POST", "/subjects/s", sent(A, **{claims: "1"}), place(1, 1)),
            ("POST", "/subjects/s", sent(A, **{claims: "2"}), place(2, 2)),
            ("POST", "/subjects/s", sent(A, **{claims: "9"}), Error(404, 40403)),
            ("DELETE", f"{VERSIONS}/1", None, 1),
            ("POST", "/subjects/s", {"schema": A}, place(2, 2)),
            ("POST", VERSIONS, {"schema": A}, place(2, 2)),
            ("POST", VERSIONS, {"schema": A, "version": 3}, place(3, 3)),
            ("POST", VERSIONS, {"schema": A, "version": 3}, Error(422, 42201, "Version is not one more than previous")),
            ("POST", VERSIONS, {"schema": AB, "version": 9}, Error(422, 42201)),
            ("POST", VERSIONS, sent(AB, **{claims: "4"}), place(4, 4)),
            ("POST", VERSIONS, {"schema": ABC}, lambda it: it["metadata"]["properties"] == {claims: "5"}),
        ],
    )


def test_defaults_fill_in_and_overrides_win(client: TestClient) -> None:
    run(
        client,
        [
            (
                "PUT",
                "/config",
                {"defaultMetadata": {"properties": {"from": "config"}}, "validateFields": False},
                {"validateFields": False, "defaultMetadata": {"properties": {"from": "config"}}},
            ),
            ("POST", VERSIONS, sent(A, owner="me"), properties(**{"from": "config", "owner": "me"})),
            ("POST", VERSIONS, {"schema": AB}, properties(**{"from": "config", "owner": "me"})),
            ("POST", VERSIONS, {"schema": AB}, place(2, 2)),
            ("POST", "/subjects/s", {"schema": AB}, place(2, 2)),
            ("PUT", "/config", {"overrideMetadata": {"properties": {"owner": "all"}}}, lambda it: len(it) == 3),
            (
                "POST",
                VERSIONS,
                sent(ABC, **{"from": "me", "owner": "me"}),
                properties(**{"from": "me", "owner": "all"}),
            ),
            ("PUT", "/config", {"defaultMetadata": None, "overrideMetadata": None}, {"validateFields": False}),
            ("GET", "/config", None, {"validateFields": False, "compatibilityLevel": "BACKWARD"}),
        ],
    )


def rule(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", **more, "disabled": False}


def test_rules_are_merged_by_name(client: TestClient) -> None:
    def names(*expected: str) -> object:
        return lambda it: [f"{each['name']}:{each.get('expr')}" for each in it["ruleSet"]["domainRules"]] == [*expected]

    def rules(*listed: dict[str, Any]) -> dict[str, Any]:
        return {"domainRules": [*listed]}

    config = {"defaultRuleSet": rules(rule("a", expr="1"), rule("b", expr="1")), "overrideRuleSet": rules(rule("z"))}
    run(
        client,
        [
            ("PUT", "/config/s", config, config),
            (
                "POST",
                VERSIONS,
                {"schema": A, "ruleSet": rules(rule("b", expr="2"))},
                names("a:1", "b:2", "z:None"),
            ),
            ("GET", "/schemas?ruleType=CEL", None, lambda it: len(it) == 1),
            ("GET", "/schemas?ruleType=JSONATA", None, []),
            ("POST", f"{VERSIONS}/1/tags", {"rulesToMerge": rules(rule("c"))}, lambda it: it["version"] == 2),
            ("GET", f"{VERSIONS}/2", None, names("a:1", "b:2", "c:None", "z:None")),
            ("GET", f"{VERSIONS}/2", None, properties(**{"confluent:version": "2"})),
        ],
    )


def test_rules_that_make_no_sense_are_42210(client: TestClient) -> None:
    for listed, says in (
        ([{"type": "CEL"}], "Missing rule name"),
        ([{"name": "a"}], "Missing rule type"),
        ([{"name": "1a", "type": "CEL"}], "Illegal initial character in rule name: 1a"),
        ([{"name": "a b", "type": "CEL"}], "Illegal character in rule name: a b"),
        ([{"name": "a" * 257, "type": "CEL"}], "Rule name too long"),
        ([rule("a"), rule("a")], "Found rule with duplicate name 'a'"),
        ([rule("a", mode="UPGRADE")], "Domain rules can only be WRITE, READ, WRITEREAD"),
        ([rule("a", mode="READ", onSuccess="x,y")], "Multiple actions only valid with WRITEREAD and UPDOWN"),
    ):
        rule_set = {"domainRules": listed}
        run(
            client,
            [
                ("POST", VERSIONS, {"schema": A, "ruleSet": rule_set}, Error(422, 42210, says)),
                ("PUT", "/config", {"defaultRuleSet": rule_set}, Error(422, 42210, says)),
            ],
        )
    encoding = {"schema": A, "ruleSet": {"encodingRules": [rule("a", mode="UPDOWN")]}}
    migration = {"schema": A, "ruleSet": {"migrationRules": [rule("a")]}}
    run(
        client,
        [
            ("POST", VERSIONS, encoding, Error(422, 42210, "Encoding rules can only be WRITE, READ, WRITEREAD")),
            ("POST", VERSIONS, migration, Error(422, 42210, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")),
            ("GET", "/subjects", None, []),
        ],
    )


def test_versions_are_found_by_their_metadata(client: TestClient) -> None:
    by = "/subjects/s/metadata"
    run(
        client,
        [
            ("POST", VERSIONS, sent(A, env="dev", team="x"), place(1, 1)),
            ("POST", VERSIONS, sent(AB, env="prod", team="x"), place(2, 2)),
            ("POST", VERSIONS, sent(ABC, env="dev"), place(3, 3)),
            ("GET", f"{by}?key=env&value=prod", None, place(2, 2)),
            ("GET", f"{by}?key=env&key=team&value=dev&value=x", None, place(1, 1)),
            ("GET", by, None, place(3, 3)),
            ("GET", f"{by}?key=env&value=test", None, Error(404, 40403)),
            ("GET", "/subjects/none/metadata?key=env&value=test", None, Error(404, 40401)),
            ("DELETE", f"{VERSIONS}/3", None, 3),
            ("GET", f"{by}?key=env&value=dev", None, place(1, 1)),
            ("GET", f"{by}?key=env&value=dev&deleted=true", None, place(3, 3)),
        ],
    )


def test_reserved_fields_are_not_used_and_stay_reserved(client: TestClient) -> None:
    reserved = sent(A, **{"confluent:reserved": "b, c"})
    conflict = "The new schema has field that conflicts with the reserved field b."
    removed = (
        "The new schema has reserved field c removed from its metadata which is present in the old schema's metadata."
    )
    run(
        client,
        [
            ("PUT", "/config/s", {"validateFields": True}, {"validateFields": True}),
            ("POST", VERSIONS, sent(AB, **{"confluent:reserved": "b"}), Error(409, 40901, conflict)),
            ("POST", VERSIONS, reserved, place(1, 1)),
            ("POST", VERSIONS, {"schema": AB}, Error(409, 40901, conflict)),
            ("POST", VERSIONS, sent(A, **{"confluent:reserved": "b"}), Error(409, 40901, removed)),
            (
                "POST",
                f"/compatibility{VERSIONS}?verbose=true",
                {**reserved, "schema": AB},
                {"is_compatible": False, "messages": [conflict, "{validateFields: 'true', compatibility: 'BACKWARD'}"]},
            ),
            ("PUT", "/config/s", {"validateFields": False}, {"validateFields": False}),
            ("POST", VERSIONS, {"schema": AB}, place(2, 2)),
        ],
    )


def tags(path: str, kind: str, *names: str) -> dict[str, Any]:
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": [*names]}


def test_tags_make_a_version_and_are_found_again(client: TestClient) -> None:
    def tagged(*tag_lists: dict[str, Any]) -> object:
        return lambda it: it["schemaTags"] == [*tag_lists]

    def schema(text: str) -> object:
        return lambda it: it["schema"] == text

    on_record, on_field = tags("R", "sr_record", "T1", "T2"), tags("R.a", "sr_field", "T3")
    with_tags = A[:-2].replace('"string"', '"string","confluent:tags":["T3"]') + '],"confluent:tags":["T1","T2"]}'
    run(
        client,
        [
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("POST", VERSIONS, {"schema": A, "schemaTagsToAdd": [on_record, on_field]}, place(2, 2)),
            ("GET", f"{VERSIONS}/2", None, schema(with_tags)),
            ("GET", f"{VERSIONS}/2", None, properties(**{"confluent:version": "2"})),
            ("GET", f"{VERSIONS}/2?findTags=*", None, tagged(on_record, on_field)),
            ("GET", f"{VERSIONS}/2?findTags=T3&findTags=T9", None, tagged(on_field)),
            ("GET", f"{VERSIONS}/2?findTags=T9", None, lambda it: "schemaTags" not in it),
            ("GET", "/schemas/ids/2?findTags=T1", None, tagged(on_record)),
            ("POST", VERSIONS, {"schema": AB, "propagateSchemaTags": True}, lambda it: '"T2"' in it["schema"]),
            ("POST", f"{VERSIONS}/latest/tags", {"tagsToRemove": [tags("R", "sr_record", "T1")]}, place(4, 4)),
            ("GET", f"{VERSIONS}/4?findTags=*", None, tagged(tags("R", "sr_record", "T2"), on_field)),
            ("POST", f"{VERSIONS}/4/tags", {"newVersion": 4, "tagsToAdd": [on_record]}, Error(422, 42201)),
            (
                "POST",
                f"{VERSIONS}/4/tags",
                {"tagsToAdd": [tags("does.not.exist", "sr_field", "T")]},
                Error(422, 42201, "No matching path 'does.not.exist' found in the schema"),
            ),
            ("POST", f"{VERSIONS}/9/tags", {"tagsToAdd": [on_record]}, Error(404, 40402)),
            ("POST", "/subjects/t/versions/1/tags", {"tagsToAdd": [on_record]}, Error(404, 40401)),
            ("POST", f"{VERSIONS}/4/tags", {"tagsToAdd": [{"tags": ["x"]}]}, Error(400, 400)),
            (
                "POST",
                f"{VERSIONS}/4/tags",
                {"ruleSet": {}, "rulesToRemove": []},
                Error(422, 42210, "should be omitted"),
            ),
        ],
    )


def test_tags_are_found_in_nested_types_by_full_name(client: TestClient) -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int", "confluent:tags": ["PII"]}]}
    union = {"type": "map", "values": {"type": "array", "items": ["null", inner]}}
    outer = {"type": "record", "name": "Out", "namespace": "n", "fields": [{"name": "i", "type": union}]}
    expected = [tags("n.In.x", "sr_field", "PII")]
    run(
        client,
        [
            ("POST", VERSIONS, {"schema": json.dumps(outer)}, place(1, 1)),
            ("GET", f"{VERSIONS}/1?findTags=PII", None, lambda it: it["schemaTags"] == expected),
            (
                "POST",
                f"{VERSIONS}/1/tags",
                {"tagsToRemove": expected, "tagsToAdd": [tags(".In", "sr_record", "R")]},
                lambda it: "PII" not in it["schema"] and '"confluent:tags":["R"]' in it["schema"],
            ),
        ],
    )
