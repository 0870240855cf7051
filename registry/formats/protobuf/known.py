"""Files that every schema may use without a reference: Google's well-known and common types, and Confluent's."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Final

from registry.formats.protobuf.elements import ProtoFile

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

__all__ = ["GOOGLE_FILES", "KNOWN_FILES", "google_descriptor", "known_file"]

_PROTOBUF: Final = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
_COMMON: Final = (
    "calendar_period color date datetime dayofweek decimal expr fraction interval latlng money month phone_number "
    "postal_address quaternion timeofday"
)
GOOGLE_FILES: Final = {
    f"google/{package}/{name}.proto": f"google.{package}.{name}_pb2"
    for package, names in (("protobuf", _PROTOBUF), ("type", _COMMON))
    for name in names.split()
}
"""Google's files, with the modules that contain their descriptors."""

_CONFLUENT: Final = {
    "confluent/meta.proto": """
        syntax = "proto3"; package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
    "confluent/type/variant.proto": """
        syntax = "proto3"; package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }
    """,
}

KNOWN_FILES: Final = (*GOOGLE_FILES, *_CONFLUENT)


@cache
def known_file(path: str) -> ProtoFile:
    """The parts of a known file."""
    if path in _CONFLUENT:
        from registry.formats.protobuf.parse import parse_text

        return parse_text(_CONFLUENT[path])
    from registry.formats.protobuf.described import file_of

    return file_of(google_descriptor(path))


def google_descriptor(path: str) -> FileDescriptorProto:
    """The descriptor of a file of ``GOOGLE_FILES``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    descriptor = FileDescriptorProto()
    importlib.import_module(GOOGLE_FILES[path]).DESCRIPTOR.CopyToProto(descriptor)
    return descriptor
