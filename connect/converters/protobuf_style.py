"""Options for mapping Connect schemas to Protobuf messages: those of Confluent's ProtobufData, with its names."""

from __future__ import annotations

from typing import Final, NamedTuple

from connect.data.schema import SchemaType

__all__ = ["ProtobufStyle"]

NAMESPACE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{NAMESPACE}.Tag"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
TYPE: Final = f"{NAMESPACE}.Type"
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"
DEFAULT_NAME: Final = "ConnectDefault"
DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
DATE_MESSAGE: Final = "google.type.Date"
TIME_MESSAGE: Final = "google.type.TimeOfDay"
TIMESTAMP_MESSAGE: Final = "google.protobuf.Timestamp"
WRAPPERS: Final = {
    "google.protobuf.DoubleValue": SchemaType.FLOAT64,
    "google.protobuf.FloatValue": SchemaType.FLOAT32,
    "google.protobuf.Int64Value": SchemaType.INT64,
    "google.protobuf.UInt64Value": SchemaType.INT64,
    "google.protobuf.Int32Value": SchemaType.INT32,
    "google.protobuf.UInt32Value": SchemaType.INT64,
    "google.protobuf.BoolValue": SchemaType.BOOLEAN,
    "google.protobuf.StringValue": SchemaType.STRING,
    "google.protobuf.BytesValue": SchemaType.BYTES,
}


class ProtobufStyle(NamedTuple):
    """The keys of ProtobufConverter that shape schemas."""

    enhanced: bool = False
    """``enhanced.protobuf.schema.support``: structs have full names."""
    scrub: bool = False
    """``scrub.invalid.names``."""
    int_enums: bool = False
    """``int.for.enums``: enums are numbers."""
    optional_nullables: bool = False
    """``optional.for.nullables``: exactly the optional fields are ``optional``."""
    wrapper_nullables: bool = False
    """``wrapper.for.nullables``: an optional field is a wrapper message."""
    index_unions: bool = True
    """``generate.index.for.unions``: the field of a oneof has a number in its name."""
    flatten_unions: bool = False
    """``flatten.unions``: members of a oneof are fields of the message."""
    generalized: bool = False
    """``generalized.sum.type.support``."""

    @property
    def enum(self) -> str:
        return GENERALIZED_ENUM if self.generalized else ENUM
