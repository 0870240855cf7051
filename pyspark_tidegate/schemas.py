"""The schemas that keys and values are read as: those of the options, else the newest of the topics' subjects."""

from __future__ import annotations

from typing import Final

from broker.client.blocking import Admin
from pyspark_tidegate.columns import Side
from pyspark_tidegate.offsets import config_of, selected
from pyspark_tidegate.options import Options
from registry.client import NotFound, RegistryClient
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError

__all__ = ["sides"]

_TYPES: Final = {"avro": "AVRO", "protobuf": "PROTOBUF", "json-schema": "JSON"}
"""The registry's names of formats."""


def sides(options: Options) -> tuple[Side, Side]:
    """Keys and values with the schemas that they are read as. Asks the registry, and for a pattern of topics the cluster."""
    topics: list[str] = []
    if {options.key_format, options.value_format} & set(_TYPES):
        topics = list(options.topics or options.assigned)
        if not topics:
            with Admin(config_of(options)) as admin:
                topics = sorted({partition.topic for partition in selected(admin, options)})
    return _side(options, topics, "key"), _side(options, topics, "value")


def _side(options: Options, topics: list[str], side: str) -> Side:
    if side == "value":
        format_, schema, message = options.value_format, options.value_schema, options.value_message
    else:
        format_, schema, message = options.key_format, options.key_schema, options.key_message
    if schema or format_ not in _TYPES:
        return Side(format_, schema, message=message)
    text, references = _newest(options, topics, side, _TYPES[format_])
    return Side(format_, text, references, message)


def _newest(options: Options, topics: list[str], side: str, type_: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text of the schema and those that it refers to. Raises UsageError where topics have different schemas."""
    with RegistryClient.from_properties(options.registry) as client:
        try:
            schemas = {topic: client.version(f"{topic}-{side}") for topic in topics}
        except NotFound as error:
            known = client.subjects()
            missing = next(topic for topic in topics if f"{topic}-{side}" not in known)
            near = nearest_name(f"{missing}-{side}", known)
            hint = f"; is the topic {near.removesuffix(f'-{side}')} meant?" if near else ""
            raise UsageError(
                f"the registry has no subject {missing}-{side}: give the schema of {missing} as the option {side}.schema, or "
                f"{side}.format=binary{hint}"
            ) from error
        for topic, schema in schemas.items():
            if schema.schema_type != type_:
                right = next(name for name, kind in _TYPES.items() if kind == schema.schema_type)
                raise UsageError(
                    f"the subject {topic}-{side} has a schema of type {schema.schema_type}: {side}.format must be {right}"
                )
        parsed = [client.any_parsed(schema) for schema in schemas.values()]
        texts = {(schema.resolved, tuple(sorted(getattr(schema, "references", {}).items()))) for schema in parsed}
    if len(texts) != 1:
        named = ", ".join(f"{topic}-{side}" for topic in schemas) or "no topic"
        raise UsageError(f"{named} have different schemas: the option {side}.schema says as which one they are read")
    text, references = texts.pop()
    # References of Avro schemas are written out in it.
    return text, () if type_ == "AVRO" else references
