"""Contexts: qualified subjects, paths inside a context, settings of contexts, references across them."""

from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

A, AB, ABC = record("a:int"), record("a:int", "b:int=0"), record("a:int", "b:int=0", "c:int=0")


def test_paths_inside_a_context_mean_its_subjects(client: TestClient) -> None:
    def subject(name: str) -> object:
        return lambda it: it["subject"] == name

    for context in (".one", "one", ":.one:"):
        run(client, [("GET", f"/contexts/{context}/subjects", None, [])])
    run(
        client,
        [
            (
                "POST",
                "/contexts/one/subjects/s/versions",
                {"schema": A},
                lambda it: (it["id"], it["version"]) == (1, 1),
            ),
            ("POST", "/contexts/.two/subjects/s/versions", {"schema": AB}, lambda it: it["id"] == 1),
            ("POST", "/contexts/:.:/subjects/t/versions", {"schema": ABC}, lambda it: it["id"] == 1),
            ("GET", "/subjects", None, [":.one:s", ":.two:s", "t"]),
            ("GET", "/contexts/one/subjects", None, [":.one:s"]),
            ("GET", "/contexts/:.:/subjects", None, ["t"]),
            ("GET", "/contexts/one/subjects?subjectPrefix=:.two:", None, [":.two:s"]),
            ("GET", "/contexts/one/schemas", None, lambda it: [each["subject"] for each in it] == [":.one:s"]),
            ("GET", "/contexts/one/schemas/ids/1", None, lambda it: it["schema"] == A),
            ("GET", "/contexts/two/schemas/ids/1", None, lambda it: it["schema"] == AB),
            ("GET", "/contexts/two/schemas/ids/1?subject=s", None, subject(":.two:s")),
            ("GET", "/contexts/two/schemas/ids/1/versions", None, [{"subject": ":.two:s", "version": 1}]),
            ("GET", "/contexts/two/schemas/types", None, lambda it: "AVRO" in it),
            ("GET", "/contexts/one/subjects/s/versions/latest", None, subject(":.one:s")),
            ("POST", "/contexts/two/subjects/s", {"schema": AB}, subject(":.two:s")),
            ("POST", "/contexts/two/compatibility/subjects/s/versions/latest", {"schema": A}, {"is_compatible": True}),
            ("PUT", "/contexts/one/config/s", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
            ("GET", "/config/:.one:s", None, {"compatibilityLevel": "NONE"}),
            ("PUT", "/contexts/one/config", {"compatibility": "FULL"}, {"compatibility": "FULL"}),
            ("GET", "/config/:.one:", None, {"compatibilityLevel": "FULL"}),
            ("GET", "/config", None, {"compatibilityLevel": "BACKWARD"}),
            ("PUT", "/contexts/one/mode", {"mode": "READONLY"}, {"mode": "READONLY"}),
            ("GET", "/mode/:.one:", None, {"mode": "READONLY"}),
            ("DELETE", "/contexts/one/mode", None, {"mode": "READONLY"}),
            ("DELETE", "/contexts/one/subjects/s/versions/1", None, 1),
            ("GET", "/contexts/a:b/subjects", None, Error(400, 400, "Context name 'a:b' cannot contain a colon")),
            ("GET", "/contexts/one/nowhere", None, Error(404, 404)),
        ],
    )


def test_contexts_are_listed_and_forgotten_once_empty(client: TestClient) -> None:
    run(
        client,
        [
            ("GET", "/contexts", None, ["."]),
            ("POST", "/subjects/:.b:s/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("POST", "/subjects/:.a:s/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("GET", "/contexts", None, [".", ".a", ".b"]),
            ("GET", "/contexts?offset=1&limit=1", None, [".a"]),
            ("GET", "/contexts?contextPrefix=.b", None, [".b"]),
            ("DELETE", "/contexts/.a", None, Error(422, 42211, "The specified context ':.a:' is not empty.")),
            ("DELETE", "/subjects/:.a:s", None, [1]),
            ("DELETE", "/contexts/:.a:", None, Error(422, 42211)),
            ("DELETE", "/subjects/:.a:s?permanent=true", None, [1]),
            ("GET", "/contexts", None, [".", ".a", ".b"]),
            ("DELETE", "/contexts/.a", None, None),
            ("DELETE", "/contexts/.never", None, None),
            ("GET", "/contexts", None, [".", ".b"]),
        ],
    )


def test_an_unqualified_subject_is_sought_in_other_contexts(client: TestClient) -> None:
    run(
        client,
        [
            ("POST", "/subjects/d/versions", {"schema": AB}, lambda it: it["id"] == 1),
            ("POST", "/subjects/:.c:s/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("GET", "/subjects/s/versions/1", None, lambda it: it["subject"] == ":.c:s"),
            ("POST", "/subjects/s", {"schema": A}, lambda it: it["subject"] == ":.c:s"),
            ("GET", "/schemas/ids/1?subject=s", None, lambda it: it["schema"] == A),
            ("GET", "/schemas/ids/1?subject=other", None, lambda it: it["schema"] == AB),
            ("GET", "/schemas/ids/1?subject=:.c:", None, lambda it: it["schema"] == A),
            ("GET", "/schemas/ids/1?subject=:.c:other", None, Error(404, 40403)),
            ("GET", "/schemas/ids/1?subject=:.d:", None, Error(404, 40403)),
            ("GET", "/subjects/s/versions", None, Error(404, 40401)),
            ("GET", "/subjects/:.d:s/versions/1", None, Error(404, 40401)),
        ],
    )


def test_prefixes_choose_subjects_in_one_or_all_contexts(client: TestClient) -> None:
    for subject in ("s1", "t1", ":.c:s1", ":.c:t2", ":.cd:s3"):
        client.post(f"/subjects/{subject}/versions", json={"schema": A})
    for prefix, subjects in (
        (":*:", [":.c:s1", ":.c:t2", ":.cd:s3", "s1", "t1"]),
        (":*:s", [":.c:s1", ":.cd:s3", "s1"]),
        ("", ["s1", "t1"]),
        ("s", ["s1"]),
        (":.c:", [":.c:s1", ":.c:t2"]),
        (":.c:s", [":.c:s1"]),
        (":.c", [":.c:s1", ":.c:t2", ":.cd:s3"]),
        (":.x:", []),
    ):
        run(client, [("GET", f"/subjects?subjectPrefix={prefix}", None, subjects)])
    run(client, [("GET", "/schemas", None, lambda it: [each["subject"] for each in it] == ["s1", "t1"])])


def test_settings_of_a_context_count_for_its_subjects_and_global_ones_for_all(client: TestClient) -> None:
    in_force = "?defaultToGlobal=true"
    run(
        client,
        [
            ("PUT", "/config", {"compatibility": "FORWARD"}, {"compatibility": "FORWARD"}),
            ("GET", f"/config/:.c:s{in_force}", None, {"compatibilityLevel": "BACKWARD"}),
            ("PUT", "/config/:.__GLOBAL:", {"compatibility": "FULL"}, {"compatibility": "FULL"}),
            ("GET", f"/config/:.c:s{in_force}", None, {"compatibilityLevel": "FULL"}),
            ("GET", f"/config/s{in_force}", None, {"compatibilityLevel": "FORWARD"}),
            ("PUT", "/config/:.c:", {"compatibility": "NONE", "normalize": True}, lambda it: it["normalize"] is True),
            ("GET", f"/config/:.c:s{in_force}", None, {"normalize": True, "compatibilityLevel": "NONE"}),
            ("GET", "/config/:.:", None, {"compatibilityLevel": "FORWARD"}),
            ("DELETE", "/config/:.c:", None, {"normalize": True, "compatibilityLevel": "NONE"}),
            ("DELETE", "/config/:.c:", None, Error(404, 40401)),
            ("GET", "/config/:.c:", None, Error(404, 40408)),
            ("PUT", "/mode/:.__GLOBAL:", {"mode": "READONLY"}, {"mode": "READONLY"}),
            ("GET", f"/mode{in_force}", None, {"mode": "READONLY"}),
            ("POST", "/subjects/s/versions", {"schema": A}, Error(422, 42205, "Subject s in context  is in read-only")),
            ("POST", "/subjects/:.c:s/versions", {"schema": A}, Error(422, 42205, "in context :.c: is in read-only")),
            ("POST", "/subjects/:.__GLOBAL:s/versions", {"schema": A}, Error(422, 42208)),
        ],
    )


def test_references_stay_in_their_context_unless_they_name_one(client: TestClient) -> None:
    inner = record("x:int", name="Inner")
    outer = record("i:Inner", name="Outer")

    def refers(subject: str) -> dict[str, object]:
        return {"schema": outer, "references": [{"name": "Inner", "subject": subject, "version": 1}]}

    def shown(subject: str) -> object:
        return lambda it: it["references"][0]["subject"] == subject

    run(
        client,
        [
            ("POST", "/subjects/:.c:inner/versions", {"schema": inner}, lambda it: it["id"] == 1),
            ("POST", "/subjects/outer/versions", refers("inner"), Error(422, 42201)),
            ("POST", "/subjects/outer/versions", refers(":.c:inner"), lambda it: it["id"] == 1),
            ("POST", "/subjects/:.c:outer/versions", refers("inner"), lambda it: it["id"] == 2),
            ("GET", "/subjects/:.c:inner/versions/1/referencedby", None, [1, 2]),
            ("GET", "/subjects/:.c:outer/versions/1", None, shown("inner")),
            ("GET", "/subjects/:.c:outer/versions/1?referenceFormat=qualified", None, shown(":.c:inner")),
            ("GET", "/schemas/ids/2?subject=:.c:&referenceFormat=qualified", None, shown(":.c:inner")),
            ("GET", "/subjects/outer/versions/1?format=resolved", None, lambda it: '"x"' in it["schema"]),
            ("GET", "/subjects/outer/versions/1?format=nonsense", None, lambda it: it["schema"] == outer),
            ("DELETE", "/subjects/:.c:inner/versions/1", None, Error(422, 42206, "{magic=1,keytype=SCHEMA,subject=")),
        ],
    )
