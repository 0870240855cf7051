"""The requests that two consoles send to a registry according to their sources: kafka-ui (kafbat) and AKHQ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
WIDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":0}]}'
NARROWER = ORDER.replace("long", "int")


class Console:
    """Asks as a console does and gives the JSON of the answer."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._http = httpx.Client(base_url=url, headers=headers, timeout=60)

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.status_code == status, (method, path, answer.text)
        assert "json" in answer.headers["content-type"]
        return answer.json()

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def kafka_ui(registry_url: str) -> Iterator[Console]:
    """Spring's WebClient under a client generated from contract/.../kafka-sr-api.yaml."""
    console = Console(registry_url, {"Accept": "application/json", "Content-Type": "application/json"})
    yield console
    console.close()


@pytest.fixture
def akhq(registry_url: str) -> Iterator[Console]:
    """Confluent's RestService, configured to accept application/json (KafkaModule.getRegistryRestClient)."""
    console = Console(
        registry_url, {"Accept": "application/json", "Content-Type": "application/vnd.schemaregistry.v1+json"}
    )
    yield console
    console.close()


def test_kafka_uis_requests_are_answered(kafka_ui: Console) -> None:
    assert kafka_ui("GET", "/subjects?deleted=false") == []
    new = {"schema": ORDER, "schemaType": "AVRO", "references": []}
    assert kafka_ui("POST", "/subjects/orders-value/versions", new)["id"] == 1
    latest = kafka_ui("GET", "/subjects/orders-value/versions/latest?deleted=false")
    # Its SchemaSubject needs these; `version` it reads as text.
    assert (latest["subject"], latest["version"], latest["id"]) == ("orders-value", 1, 1)
    assert latest["schema"] == ORDER
    assert latest.get("schemaType", "AVRO") == "AVRO"
    assert kafka_ui("GET", "/subjects/orders-value/versions") == [1]
    assert kafka_ui("GET", "/config")["compatibilityLevel"] == "BACKWARD"
    assert kafka_ui("GET", "/config/orders-value?defaultToGlobal=true")["compatibilityLevel"] == "BACKWARD"
    change = {"compatibility": "FULL"}
    assert kafka_ui("PUT", "/config", change) == change
    assert kafka_ui("PUT", "/config/orders-value", change) == change
    check = "/compatibility/subjects/orders-value/versions/latest?verbose=true"
    assert kafka_ui("POST", check, {**new, "schema": WIDER})["is_compatible"] is True
    assert kafka_ui("POST", check, {**new, "schema": NARROWER})["is_compatible"] is False
    # 409 becomes its SchemaCompatibilityException, 422 shows the text of the answer.
    kafka_ui("POST", "/subjects/orders-value/versions", {**new, "schema": NARROWER}, status=409)
    kafka_ui("POST", "/subjects/orders-value/versions", {**new, "schema": "{"}, status=422)
    kafka_ui("POST", "/subjects/orders-value/versions", {**new, "schema": WIDER})
    assert kafka_ui("DELETE", "/subjects/orders-value/versions/latest?permanent=false") == 2
    assert kafka_ui("DELETE", "/subjects/orders-value?permanent=false") == [1]
    kafka_ui("GET", "/subjects/orders-value/versions/latest?deleted=false", status=404)
    kafka_ui("DELETE", "/config/orders-value")


def test_akhqs_requests_are_answered(akhq: Console) -> None:
    register = "/subjects/orders-value/versions?normalize=false"
    body = {"schema": ORDER, "schemaType": "AVRO", "references": []}
    assert akhq("POST", register, body)["id"] == 1
    assert akhq("GET", "/subjects/orders-value/versions/latest")["id"] == 1  # it refuses another id than it was told
    assert akhq("GET", "/subjects?subjectPrefix=:*:&deleted=false&deletedOnly=false") == ["orders-value"]
    assert akhq("GET", "/config/orders-value?defaultToGlobal=true")["compatibilityLevel"] == "BACKWARD"
    missing = akhq("GET", "/config/orders-value", status=404)
    assert missing["error_code"] == 40408
    assert akhq("GET", "/config")["compatibilityLevel"] == "BACKWARD"
    assert (
        akhq("GET", "/subjects/nothing/versions/latest", status=404)["error_code"] == 40401
    )  # how it sees what exists
    assert akhq("GET", "/subjects/orders-value/versions?deleted=false&deletedOnly=false") == [1]
    assert akhq("GET", "/subjects/orders-value/versions/1?deleted=false")["schema"] == ORDER
    assert akhq("GET", "/schemas/ids/1/versions") == [{"subject": "orders-value", "version": 1}]
    answer = akhq("POST", "/subjects/orders-value?normalize=false&deleted=true", {"schema": ORDER})
    assert (answer["id"], answer["version"]) == (1, 1)
    check = "/compatibility/subjects/orders-value/versions/latest?normalize=false&verbose=false"
    assert akhq("POST", check, {"schema": NARROWER})["is_compatible"] is False
    assert akhq("PUT", "/config/orders-value", {"compatibility": "NONE"})["compatibility"] == "NONE"
    assert akhq("DELETE", "/subjects/orders-value/versions/1?permanent=false") == 1
    akhq("POST", register, body)
    assert akhq("DELETE", "/subjects/orders-value?permanent=false")
    # The deserializers that it shows records with.
    assert akhq("GET", "/schemas/ids/1?fetchMaxId=false&subject=orders-value")["schema"] == ORDER
