"""The transformations and predicates of this package; the chain that applies them is ``connect.transforms.chain``."""

from __future__ import annotations

from typing import Final

from connect.api import Plugin, PluginType, hookimpl

__all__ = ["register_plugins"]

_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose transformations these match."""
_CONFLUENT_VERSION: Final = "1.6.0"
_DEBEZIUM_VERSION: Final = "3.5.0.Final"
_APACHE: Final = "org.apache.kafka.connect.transforms"

_TRANSFORMS: Final = (
    ("cast:CastKey", "Cast$Key"),
    ("cast:CastValue", "Cast$Value"),
    ("extract_field:ExtractKeyField", "ExtractField$Key"),
    ("extract_field:ExtractValueField", "ExtractField$Value"),
    ("filter:Filter", "Filter"),
    ("flatten:FlattenKey", "Flatten$Key"),
    ("flatten:FlattenValue", "Flatten$Value"),
    ("headers:DropHeaders", "DropHeaders"),
    ("headers:HeaderFromKey", "HeaderFrom$Key"),
    ("headers:HeaderFromValue", "HeaderFrom$Value"),
    ("headers:InsertHeader", "InsertHeader"),
    ("hoist_field:HoistKeyField", "HoistField$Key"),
    ("hoist_field:HoistValueField", "HoistField$Value"),
    ("insert_field:InsertKeyField", "InsertField$Key"),
    ("insert_field:InsertValueField", "InsertField$Value"),
    ("mask_field:MaskKeyField", "MaskField$Key"),
    ("mask_field:MaskValueField", "MaskField$Value"),
    ("regex_router:RegexRouter", "RegexRouter"),
    ("replace_field:ReplaceKeyField", "ReplaceField$Key"),
    ("replace_field:ReplaceValueField", "ReplaceField$Value"),
    ("set_schema_metadata:SetKeySchemaMetadata", "SetSchemaMetadata$Key"),
    ("set_schema_metadata:SetValueSchemaMetadata", "SetSchemaMetadata$Value"),
    ("timestamp_converter:TimestampConverterKey", "TimestampConverter$Key"),
    ("timestamp_converter:TimestampConverterValue", "TimestampConverter$Value"),
    ("timestamp_router:TimestampRouter", "TimestampRouter"),
    ("value_to_key:ValueToKey", "ValueToKey"),
)
_CONFLUENT_NAMES: Final = "io.confluent.connect.transforms"
_CONFLUENT: Final = (
    ("confluent:DropKey", "Drop$Key"),
    ("confluent:DropValue", "Drop$Value"),
    ("confluent:ExtractTopicHeader", "ExtractTopic$Header"),
    ("confluent:ExtractTopicKey", "ExtractTopic$Key"),
    ("confluent:ExtractTopicValue", "ExtractTopic$Value"),
    ("confluent:MessageTimestampRouter", "MessageTimestampRouter"),
    ("confluent:TombstoneHandler", "TombstoneHandler"),
    ("json_path_filter:FilterByKey", "Filter$Key"),
    ("json_path_filter:FilterByValue", "Filter$Value"),
    ("regex_router:RegexRouter", "TopicRegexRouter"),
)
_DEBEZIUM: Final = (
    ("logical_table:ByLogicalTableRouter", ("io.debezium.transforms.ByLogicalTableRouter",)),
    (
        "changed_record_state:ExtractChangedRecordState",
        ("io.debezium.transforms.ExtractChangedRecordState",),
    ),
    (
        "new_record_state:ExtractNewRecordState",
        ("io.debezium.transforms.ExtractNewRecordState", "io.debezium.transforms.UnwrapFromEnvelope"),
    ),
    ("open_lineage:OpenLineage", ("io.debezium.transforms.openlineage.OpenLineage",)),
    ("outbox:EventRouter", ("io.debezium.transforms.outbox.EventRouter",)),
    ("timezone_converter:TimezoneConverter", ("io.debezium.transforms.TimezoneConverter",)),
)
_COMMON_VERSION: Final = "0.1.0.58"
_COMMON_NAMES: Final = "com.github.jcustenborder.kafka.connect.transform.common"
_JSON_NAMES: Final = "com.github.jcustenborder.kafka.connect.json"
_UUID_NAMES: Final = "com.github.cjmatta.kafka.connect.smt"
_COMMUNITY: Final = (
    ("common:ChangeTopicCase", (f"{_COMMON_NAMES}.ChangeTopicCase",), _COMMON_VERSION),
    ("common:ExtractNestedKeyField", (f"{_COMMON_NAMES}.ExtractNestedField$Key",), _COMMON_VERSION),
    ("common:ExtractNestedValueField", (f"{_COMMON_NAMES}.ExtractNestedField$Value",), _COMMON_VERSION),
    (
        "common:ExtractTimestamp",
        (f"{_COMMON_NAMES}.ExtractTimestamp$Value", f"{_COMMON_NAMES}.ExtractTimestamp$Key"),
        _COMMON_VERSION,
    ),
    ("common:TimestampNow", (f"{_COMMON_NAMES}.TimestampNow",), _COMMON_VERSION),
    ("common:TimestampNowKeyField", (f"{_COMMON_NAMES}.TimestampNowField$Key",), _COMMON_VERSION),
    ("common:TimestampNowValueField", (f"{_COMMON_NAMES}.TimestampNowField$Value",), _COMMON_VERSION),
    ("common:InsertKeyUuid", (f"{_UUID_NAMES}.InsertUuid$Key",), "0.2.0"),
    ("common:InsertValueUuid", (f"{_UUID_NAMES}.InsertUuid$Value",), "0.2.0"),
    ("header_router:HeaderRouter", ("com.telefonica.HeaderRouter",), "1.0.0"),
    ("from_json:FromJsonKey", (f"{_JSON_NAMES}.FromJson$Key",), "0.2.5"),
    ("from_json:FromJsonValue", (f"{_JSON_NAMES}.FromJson$Value",), "0.2.5"),
)
_PREDICATES: Final = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")


@hookimpl
def register_plugins() -> list[Plugin]:
    transforms = [
        Plugin(PluginType.TRANSFORMATION, f"connect.transforms.{path}", (f"{_APACHE}.{name}",), _VERSION)
        for path, name in _TRANSFORMS
    ]
    transforms += [
        Plugin(
            PluginType.TRANSFORMATION, f"connect.transforms.{path}", (f"{_CONFLUENT_NAMES}.{name}",), _CONFLUENT_VERSION
        )
        for path, name in _CONFLUENT
    ]
    transforms += [
        Plugin(PluginType.TRANSFORMATION, f"connect.transforms.debezium.{path}", names, _DEBEZIUM_VERSION)
        for path, names in _DEBEZIUM
    ]
    transforms += [
        Plugin(PluginType.TRANSFORMATION, f"connect.transforms.{path}", names, version)
        for path, names, version in _COMMUNITY
    ]
    predicates = [
        Plugin(
            PluginType.PREDICATE, f"connect.transforms.predicates:{name}", (f"{_APACHE}.predicates.{name}",), _VERSION
        )
        for name in _PREDICATES
    ]
    return transforms + predicates
