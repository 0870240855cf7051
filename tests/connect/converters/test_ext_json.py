"""ExtJsonConverter with a registry that gives the responses that Apicurio's gave when the original's requests and bytes
were recorded.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
import responses

from connect.api import ConnectError, ConverterContext, DataError, RetriableConnectError, Schema, SchemaType
from connect.converters.ext_json import ExtJsonConfig, ExtJsonConverter
from tidegate.kit.config import parse, validate

URL = "http://apicurio:8080"
BASE = f"{URL}/apis/registry/v2"
META = {"id": "orders-value", "groupId": "default", "version": "1", "type": "KCONNECT", "globalId": 42, "contentId": 41}
ORDER = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "name": Schema(SchemaType.STRING, optional=True, default="d"),
        "p": Schema.decimal(2, optional=True),
    },
    name="shop.Order",
    version=1,
)
FORM = {
    "type": "struct",
    "fields": [
        {"type": "int64", "optional": False, "field": "id"},
        {"type": "string", "optional": True, "default": "d", "field": "name"},
        {"type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
         "parameters": {"scale": "2"}, "field": "p"},
    ],
    "optional": False, "name": "shop.Order", "version": 1,
}  # fmt: skip
ROW = pa.array([{"id": 7, "name": None, "p": decimal.Decimal("1.25")}], ORDER.arrow_type)


@pytest.fixture
def registry() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as made:
        yield made


def converter(**config: str) -> ExtJsonConverter:
    properties = {"apicurio.registry.url": URL} | {
        name.replace("__", "-").replace("_", "."): v for name, v in config.items()
    }
    return ExtJsonConverter(parse(ExtJsonConfig, properties), ConverterContext(is_key=False))


def test_a_schema_is_looked_up_by_its_content(registry: responses.RequestsMock) -> None:
    registry.post(f"{BASE}/groups/default/artifacts/orders-value/meta?canonical=true", json=META)
    made = converter()
    for _ in range(2):  # asked once
        assert made.from_connect("orders", ORDER, ROW).to_pylist() == [
            b'{"schemaId":42,"payload":{"id":7,"name":"d","p":"fQ=="}}'
        ]
    (call,) = registry.calls
    assert json.loads(call.request.body) == FORM
    made.close()


def test_a_schema_is_registered(registry: responses.RequestsMock) -> None:
    registry.post(f"{BASE}/groups/g/artifacts?ifExists=RETURN_OR_UPDATE&canonical=false", json=META)
    more = {"apicurio_registry_auto__register": "true", "decimal_format": "NUMERIC", "apicurio_auth_username": "u"}
    made = converter(**more, apicurio_auth_password="p", apicurio_registry_artifact_group__id="g")
    assert b'"p":1.25' in made.from_connect("orders", ORDER, ROW)[0].as_py()
    headers = registry.calls[0].request.headers
    assert (headers["X-Registry-ArtifactId"], headers["X-Registry-ArtifactType"]) == ("orders-value", "KCONNECT")
    assert headers["Authorization"] == "Basic dTpw"
    made.close()


def test_the_latest_version_is_taken(registry: responses.RequestsMock) -> None:
    registry.get(f"{BASE}/groups/default/artifacts/orders-value/meta", json=META)
    made = converter(apicurio_registry_find__latest="true")
    assert made.from_connect("orders", ORDER, ROW)[0].as_py().startswith(b'{"schemaId":42,')
    made.close()


def test_records_are_read_with_their_schemas(registry: responses.RequestsMock) -> None:
    registry.get(f"{BASE}/ids/globalIds/42?dereference=false", json=FORM)
    registry.get(f"{BASE}/ids/globalIds/7?dereference=false", json={"type": "int32", "optional": False})
    made = converter()
    rows = [
        None,
        b'{"schemaId":42,"payload":{"id":8}}',
        None,
        b'{"schemaId":7,"payload":5}',
        b'{"schemaId":"42","payload":{"id":9,"p":1.5}}',
    ]
    first, second, third = made.to_connect("orders", pa.array(rows, pa.binary()))
    assert first.schema == ORDER and third.schema == ORDER
    assert first.values.to_pylist() == [None, {"id": 8, "name": "d", "p": None}, None]
    assert second.values.to_pylist() == [5]
    assert third.values.to_pylist() == [{"id": 9, "name": "d", "p": decimal.Decimal("1.50")}]
    made.close()


@pytest.mark.parametrize(
    "text", [b'{"payload":{"id":8}}', b"{}", b"5", b"null", b'{"schemaId":42}', b"{", b'{"schemaId":"x","payload":1}']
)
def test_invalid_records_are_errors_of_their_rows(text: bytes) -> None:
    with pytest.raises(DataError) as caught:
        converter().to_connect("orders", pa.array([None, text], pa.binary()))
    assert caught.value.rows == (1,)


@pytest.mark.parametrize(("status", "passes"), [(404, False), (503, True), (429, True)])
def test_a_registry_that_refuses(registry: responses.RequestsMock, status: int, passes: bool) -> None:
    registry.post(f"{BASE}/groups/default/artifacts/orders-value/meta?canonical=true", status=status, body="no")
    made = converter()
    with pytest.raises(
        (ConnectError, RetriableConnectError), match=f"artifacts/orders-value/meta.* of the registry {URL}: {status} no"
    ) as caught:
        made.from_connect("orders", ORDER, ROW)
    assert isinstance(caught.value, RetriableConnectError) is passes
    made.close()


def test_nulls_are_tombstones_and_data_without_a_schema_is_refused() -> None:
    assert converter().from_connect("orders", ORDER, pa.nulls(2, ORDER.arrow_type)).to_pylist() == [None, None]
    with pytest.raises(DataError, match="has no schema"):
        converter().from_connect("orders", None, pa.array(["5"]))


def test_keys_are_judged() -> None:
    config = {"apicurio.registry.url": "apicurio", "apicurio.registry.headers.enabled": "true"}
    wrong = {value.key.name for value in validate(ExtJsonConfig, config) if value.errors}
    assert wrong == {"apicurio.registry.url", "apicurio.registry.headers.enabled"}
