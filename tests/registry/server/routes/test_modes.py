"""Modes: the writes that each allows, imports with given ids and versions, and the scope of deleting a mode."""

import pytest
from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

A, AB, ABC = record("a:int"), record("a:int", "b:int=0"), record("a:int", "b:int=0", "c:int=0")
VERSIONS = "/subjects/s/versions"


def place(schema_id: int, version: int) -> object:
    return lambda it: (it["id"], it["version"]) == (schema_id, version)


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_read_only_forbids_every_write_but_knows_what_is_there(client: TestClient, mode: str) -> None:
    refused = Error(422, 42205, "Subject s in context  is in read-only mode")
    run(
        client,
        [
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("PUT", "/mode/s", {"mode": mode.lower()}, {"mode": mode.lower()}),
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("POST", VERSIONS, {"schema": AB}, refused),
            ("POST", VERSIONS, {"schema": AB, "id": 7}, refused),
            ("DELETE", f"{VERSIONS}/1", None, refused),
            ("DELETE", "/subjects/s", None, refused),
            ("PUT", "/config/s", {"compatibility": "NONE"}, refused),
            ("DELETE", "/config/s", None, Error(404, 40401)),
            ("POST", "/subjects/t/versions", {"schema": AB}, place(2, 1)),
            ("DELETE", "/mode/s", None, {"mode": mode}),
            ("POST", VERSIONS, {"schema": AB}, place(2, 2)),
        ],
    )


def test_an_override_wins_over_what_is_set_below(client: TestClient) -> None:
    run(
        client,
        [
            ("PUT", "/mode/s", {"mode": "READWRITE"}, {"mode": "READWRITE"}),
            ("PUT", "/mode", {"mode": "READONLY"}, {"mode": "READONLY"}),
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("PUT", "/mode", {"mode": "READONLY_OVERRIDE"}, {"mode": "READONLY_OVERRIDE"}),
            ("POST", VERSIONS, {"schema": AB}, Error(422, 42205)),
            ("PUT", "/mode", {"mode": None}, {}),
            ("POST", VERSIONS, {"schema": AB}, place(2, 2)),
        ],
    )


def test_an_import_chooses_ids_and_versions(client: TestClient) -> None:
    run(
        client,
        [
            (
                "POST",
                VERSIONS,
                {"schema": A, "id": 7},
                Error(422, 42205, "Subject s in context  is not in import mode"),
            ),
            ("PUT", "/mode", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("POST", VERSIONS, {"schema": A}, Error(422, 42205, "Subject s in context  is not in read-write mode")),
            ("POST", VERSIONS, {"schema": A, "id": 100, "version": 5}, place(100, 5)),
            ("POST", VERSIONS, {"schema": A, "id": 100, "version": 5}, place(100, 5)),
            ("POST", VERSIONS, {"schema": A, "id": 100, "version": 6}, place(100, 6)),
            ("POST", VERSIONS, {"schema": A, "id": 100, "version": 5}, place(100, 5)),
            ("POST", VERSIONS, {"schema": '"string"', "id": 50, "version": 2}, place(50, 2)),
            ("POST", VERSIONS, {"schema": AB, "id": 200}, place(200, 7)),
            ("GET", VERSIONS, None, [2, 5, 6, 7]),
            (
                "POST",
                "/subjects/t/versions",
                {"schema": ABC, "id": 100, "version": 1},
                Error(422, 42205, "Overwrite new schema with id 100 in context  is not permitted."),
            ),
            ("POST", "/subjects/t/versions", {"schema": A, "id": 300, "version": 1}, place(300, 1)),
            ("POST", "/subjects/t", {"schema": A}, place(300, 1)),
            ("POST", "/subjects/:.c:t/versions", {"schema": ABC, "id": 100}, Error(422, 42205)),
            ("PUT", "/mode", {"mode": "READWRITE"}, {"mode": "READWRITE"}),
            ("POST", "/subjects/u/versions", {"schema": ABC}, place(301, 1)),
        ],
    )


def test_an_import_does_not_change_what_it_is_given(client: TestClient) -> None:
    odd = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'
    run(
        client,
        [
            ("PUT", "/config", {"normalize": True}, {"normalize": True}),
            ("PUT", "/mode", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("POST", f"{VERSIONS}?normalize=true", {"schema": odd, "id": 1, "version": 1}, place(1, 1)),
            ("GET", f"{VERSIONS}/1/schema", None, lambda it: it["fields"][0]["default"] == "x"),
            ("POST", VERSIONS, {"schema": "", "id": 2, "version": 2}, Error(422, 42201, "Empty schema")),
        ],
    )


def test_import_needs_an_empty_place_and_clears_what_was_deleted_there(client: TestClient) -> None:
    refused = Error(422, 42205, "Cannot import since found existing subjects")
    run(
        client,
        [
            ("POST", VERSIONS, {"schema": A}, place(1, 1)),
            ("POST", "/subjects/:.c:s/versions", {"schema": A}, place(1, 1)),
            ("PUT", "/mode", {"mode": "IMPORT"}, refused),
            ("PUT", "/mode/s", {"mode": "IMPORT"}, refused),
            ("PUT", "/mode/:.c:", {"mode": "IMPORT"}, refused),
            ("PUT", "/mode/:.d:", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("PUT", "/mode/t", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("PUT", "/mode/s?force=true", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("GET", VERSIONS, None, [1]),
            ("DELETE", "/mode/s", None, {"mode": "IMPORT"}),
            ("DELETE", "/subjects/s", None, [1]),
            ("PUT", "/mode/s", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
            ("GET", "/subjects?deleted=true", None, [":.c:s"]),
        ],
    )


def test_forward_is_for_everything_or_nothing(client: TestClient) -> None:
    refused = Error(422, 42204, "Forward mode only supported on global level")
    run(
        client,
        [
            ("PUT", "/mode", {"mode": "FORWARD"}, refused),
            ("PUT", "/mode/:.c:", {"mode": "FORWARD"}, refused),
            ("PUT", "/mode/:.__GLOBAL:", {"mode": "FORWARD"}, {"mode": "FORWARD"}),
            ("GET", "/mode/s?defaultToGlobal=true", None, {"mode": "FORWARD"}),
            ("POST", VERSIONS, {"schema": A}, Error(422, 42205)),
            ("POST", VERSIONS, {"schema": A, "id": 3, "version": 2}, place(3, 2)),
            (
                "PUT",
                "/mode/s",
                {"mode": "SLEEP"},
                Error(422, 42204, "Valid values are READWRITE, READONLY, IMPORT and"),
            ),
        ],
    )


def test_deleting_a_mode_may_include_the_subjects_of_its_context(client: TestClient) -> None:
    for subject in ("s", "t", ":.c:s", ":.c:"):
        run(client, [("PUT", f"/mode/{subject}", {"mode": "READONLY"}, {"mode": "READONLY"})])
    run(
        client,
        [
            ("DELETE", "/mode/:.c:", None, {"mode": "READONLY"}),
            ("GET", "/mode/:.c:s", None, {"mode": "READONLY"}),
            ("DELETE", "/mode/:.c:", None, Error(404, 40401)),
            ("DELETE", "/mode/:.c:?recursive=true", None, {}),
            ("GET", "/mode/:.c:s", None, Error(404, 40409)),
            ("GET", "/mode/s", None, {"mode": "READONLY"}),
            ("DELETE", "/mode?recursive=true", None, {"mode": "READWRITE"}),
            ("GET", "/mode/s", None, Error(404, 40409)),
        ],
    )
