"""Keys of Apicurio's converter are obeyed or refused, never passed over."""

from __future__ import annotations

from connect.converters.apicurio import ApicurioAvroConverterConfig
from tidegate.kit.config import parse, validate


def test_apicurios_own_keys_are_refused_with_what_to_give_instead() -> None:
    given = {
        "apicurio.registry.url": "http://apicurio:8080/apis/registry/v2",
        "apicurio.registry.auto-register": "true",
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.headers.enabled": "true",
    }
    found = {one.key.name: one.errors for one in validate(ApicurioAvroConverterConfig, given) if one.errors}
    assert set(found) == {
        "apicurio.registry.url",
        "apicurio.registry.auto-register",
        "apicurio.registry.headers.enabled",
    }
    assert "give schema.registry.url, with the path /apis/ccompat/v7" in found["apicurio.registry.url"][0]
    assert found["apicurio.registry.auto-register"][0].endswith("give auto.register.schemas")


def test_confluents_keys_are_its_own_too() -> None:
    given = {"schema.registry.url": "http://apicurio:8080/apis/ccompat/v7", "apicurio.registry.as-confluent": "true"}
    assert parse(ApicurioAvroConverterConfig, given).url == "http://apicurio:8080/apis/ccompat/v7"
