"""Aliases: another name for a subject, where a request names a subject."""

from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

A, AB = record("a:int"), record("a:int", "b:int=0")


def test_an_alias_leads_to_its_subject_wherever_subjects_are_named(client: TestClient) -> None:
    run(
        client,
        [
            ("POST", "/subjects/real/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("PUT", "/config/other", {"alias": "real"}, {"alias": "real"}),
            ("GET", "/config/other", None, {"alias": "real", "compatibilityLevel": "BACKWARD"}),
            ("GET", "/subjects/other/versions/latest", None, lambda it: it["subject"] == "real"),
            ("POST", "/subjects/other/versions", {"schema": AB}, lambda it: it["version"] == 2),
            ("POST", "/subjects/other", {"schema": AB}, lambda it: it["subject"] == "real"),
            ("GET", "/schemas/ids/2?subject=other", None, lambda it: it["subject"] == "real"),
            ("POST", "/compatibility/subjects/other/versions/1", {"schema": '"int"'}, {"is_compatible": False}),
            ("GET", "/subjects", None, ["real"]),
            ("GET", "/schemas?subjectPrefix=oth", None, []),
            (
                "GET",
                "/schemas?subjectPrefix=oth&aliases=true&latestOnly=true",
                None,
                lambda it: (
                    [(each["subject"], each["version"], each["aliases"]) for each in it] == [("real", 2, ["other"])]
                ),
            ),
            ("DELETE", "/subjects/other/versions/2", None, 2),
            ("PUT", "/config/other", {"alias": None}, {}),
            ("GET", "/subjects/other/versions", None, Error(404, 40401)),
        ],
    )


def test_an_alias_stays_in_its_context_unless_it_names_one(client: TestClient) -> None:
    run(
        client,
        [
            ("POST", "/subjects/:.c:real/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("PUT", "/config/:.c:other", {"alias": "real"}, {"alias": "real"}),
            ("PUT", "/config/far", {"alias": ":.c:real"}, {"alias": ":.c:real"}),
            ("GET", "/subjects/:.c:other/versions", None, [1]),
            ("GET", "/contexts/c/subjects/other/versions", None, [1]),
            ("GET", "/subjects/far/versions", None, [1]),
            ("PUT", "/config", {"alias": "nowhere"}, {"alias": "nowhere"}),
            ("GET", "/subjects/:.c:real/versions", None, [1]),
        ],
    )


def test_a_subject_may_be_named_with_any_character(client: TestClient) -> None:
    for name in ("a%2Fb", "%3Fq", "a%20b", "versions", "%E4%BD%A0%E5%A5%BD", "a%25b", "*", ":.c:", "a+b"):
        run(
            client,
            [
                ("POST", f"/subjects/{name}/versions", {"schema": A}, lambda it: it["version"] == 1),
                ("GET", f"/subjects/{name}/versions/1", None, lambda it: it["version"] == 1),
                ("PUT", f"/config/{name}", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
                ("DELETE", f"/subjects/{name}", None, [1]),
            ],
        )
    run(client, [("POST", "/subjects/a%7Fb/versions", {"schema": A}, Error(422, 42208))])
