"""The transformations and predicates of this package; the chain that applies them is ``connect.transforms.chain``."""

from __future__ import annotations

from typing import Final

from connect.api import Plugin, PluginType, hookimpl

__all__ = ["register_plugins"]

_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose transformations these do the work of."""
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
        "new_record_state:ExtractNewRecordState",
        ("io.debezium.transforms.ExtractNewRecordState", "io.debezium.transforms.UnwrapFromEnvelope"),
    ),
    ("outbox:EventRouter", ("io.debezium.transforms.outbox.EventRouter",)),
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
    predicates = [
        Plugin(
            PluginType.PREDICATE, f"connect.transforms.predicates:{name}", (f"{_APACHE}.predicates.{name}",), _VERSION
        )
        for name in _PREDICATES
    ]
    return transforms + predicates
