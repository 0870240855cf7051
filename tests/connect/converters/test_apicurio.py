"""Keys of Apicurio's converter are applied or refused, never ignored."""

from __future__ import annotations

from connect.converters.apicurio import ApicurioAvroConverterConfig
from tidegate.kit.config import parse, validate


def test_apicurios_own_keys_are_refused_with_what_to_give_instead() -> None:
    config = {
        "apicurio.registry.url": "http://apicurio:8080/apis/registry/v2",
        "apicurio.registry.auto-register": "true",
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.headers.enabled": "true",
    }
    errors = {value.key.name: value.errors for value in validate(ApicurioAvroConverterConfig, config) if value.errors}
    assert set(errors) == {
        "apicurio.registry.url",
        "apicurio.registry.auto-register",
        "apicurio.registry.headers.enabled",
    }
    assert "give schema.registry.url, with the path /apis/ccompat/v7" in errors["apicurio.registry.url"][0]
    assert errors["apicurio.registry.auto-register"][0].endswith("give auto.register.schemas")


def test_confluents_keys_are_its_own_too() -> None:
    config = {"schema.registry.url": "http://apicurio:8080/apis/ccompat/v7", "apicurio.registry.as-confluent": "true"}
    assert parse(ApicurioAvroConverterConfig, config).url == "http://apicurio:8080/apis/ccompat/v7"
