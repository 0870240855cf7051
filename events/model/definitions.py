"""Event definitions: a Salesforce platform event is an Avro record in the schema registry.

The record has the form of Salesforce's Pub/Sub API: namespace ``com.sforce.eventbus``, ``CreatedDate`` and
``CreatedById`` first, a union with null for each optional field, the field's type in ``doc``. Facts that Avro can't
express (labels, lengths, publish behavior) are in a property ``salesforce`` on the record and on each field, which Avro
libraries preserve and ignore.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from events.errors import InvalidDefinition
from events.model import defaults
from events.model.definition_errors import DuplicateField

__all__ = [
    "AUDIT_FIELDS",
    "NAMESPACE",
    "EventDefinition",
    "EventField",
    "FieldType",
    "field_id",
    "from_avro",
    "to_avro",
    "to_avro_text",
]

NAMESPACE: Final = "com.sforce.eventbus"
AUDIT_FIELDS: Final = ("CreatedDate", "CreatedById")
"""Set by the service for REST, and by the client for the Pub/Sub API, as in Salesforce."""

PROPERTY: Final = "salesforce"
_NAME: Final = re.compile(r"[A-Za-z](_?[A-Za-z0-9]){0,39}")
_BASE62: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class FieldType(Enum):
    """The field types of a platform event, with their names in Salesforce metadata."""

    CHECKBOX = "Checkbox"
    DATE = "Date"
    DATE_TIME = "DateTime"
    NUMBER = "Number"
    TEXT = "Text"
    LONG_TEXT_AREA = "LongTextArea"

    @property
    def avro(self) -> str:
        """The Avro type of a value: instants and dates are milliseconds since 1970 UTC, dates at midnight."""
        return _AVRO[self][0]

    @property
    def doc(self) -> str:
        """The type's name in the ``doc`` of the Avro field."""
        return _AVRO[self][1]


_AVRO: Final = {
    FieldType.CHECKBOX: ("boolean", "Boolean"),
    FieldType.DATE: ("long", "DateOnly"),
    FieldType.DATE_TIME: ("long", "DateTime"),
    FieldType.NUMBER: ("double", "Double"),
    FieldType.TEXT: ("string", "Text"),
    FieldType.LONG_TEXT_AREA: ("string", "StringPlusClob"),
}
_BY_DOC: Final = {doc: kind for kind, (_, doc) in _AVRO.items()}
_DEFAULT_LENGTH: Final = {FieldType.TEXT: 255, FieldType.LONG_TEXT_AREA: 131_072}
_MAX_LENGTH: Final = {FieldType.TEXT: 255, FieldType.LONG_TEXT_AREA: 131_072}


@dataclass(frozen=True, slots=True)
class EventField:
    """One custom field.

    ``length`` counts characters; ``precision`` counts all digits of a number, ``scale`` those after the point.
    """

    name: str
    type: FieldType
    label: str = ""
    required: bool = False
    length: int = 0
    precision: int = 18
    scale: int = 0
    description: str = ""
    default: bool = False
    """The value of a Checkbox that the publisher omits."""
    default_formula: str = ""
    """The default of another field that the publisher omits; see ``events.model.defaults``."""
    help_text: str = ""

    def __post_init__(self) -> None:
        if not self.name.endswith("__c") or not _NAME.fullmatch(self.name[:-3]):
            raise InvalidDefinition(
                f"Field name {self.name!r} is not a custom field's: letters, digits and single underscores, then __c",
                fields=(self.name,),
            )
        if not self.label:
            object.__setattr__(self, "label", self.name[:-3].replace("_", " "))
        if self.type in _DEFAULT_LENGTH:
            self._check_length()
        elif self.type is FieldType.NUMBER and not (0 <= self.scale <= self.precision <= 18 and self.precision > 0):
            raise InvalidDefinition(
                f"Field {self.name}: precision {self.precision} and scale {self.scale} are not possible together; "
                "precision is 1 to 18 and scale at most precision",
                fields=(self.name,),
            )
        if self.default_formula:
            self._check_default()

    def _check_default(self) -> None:
        value = defaults.parse(self.type.value, self.default_formula, field=self.name)(0)
        if isinstance(value, str) and len(value) > self.length:
            raise InvalidDefinition(
                f"Field {self.name}: its default value has {len(value)} characters, and its length is {self.length}",
                fields=(self.name,),
            )

    def _check_length(self) -> None:
        if not self.length:
            object.__setattr__(self, "length", _DEFAULT_LENGTH[self.type])
        if not 1 <= self.length <= _MAX_LENGTH[self.type]:
            raise InvalidDefinition(
                f"Field {self.name}: length {self.length} is not possible for {self.type.value}; "
                f"1 to {_MAX_LENGTH[self.type]} is",
                fields=(self.name,),
            )

    @property
    def nullable(self) -> bool:
        """Whether an event may lack a value. A Checkbox always has one: it has a default."""
        return not self.required and self.type is not FieldType.CHECKBOX


@dataclass(frozen=True, slots=True)
class EventDefinition:
    """A platform event. ``name`` is its API name, its topic's name and its Avro record's name."""

    name: str
    fields: tuple[EventField, ...]
    label: str = ""
    plural_label: str = ""
    description: str = ""
    publish_behavior: str = "PublishImmediately"
    retention_ms: int | None = None
    """How long the topic keeps events, -1 forever.

    None keeps an existing topic's setting; a new topic gets the service's default.
    """

    def __post_init__(self) -> None:
        if not self.name.endswith("__e") or not _NAME.fullmatch(self.name[:-3]):
            raise InvalidDefinition(
                f"Event name {self.name!r} is not a platform event's: letters, digits and single underscores, then __e"
            )
        names = [field.name.lower() for field in self.fields]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise DuplicateField(f"There is already a field named {twice[0]} on {self.name}", fields=tuple(twice))
        if self.publish_behavior not in ("PublishImmediately", "PublishAfterCommit"):
            raise InvalidDefinition(
                f"Event {self.name}: publishBehavior {self.publish_behavior!r} is neither PublishImmediately nor "
                "PublishAfterCommit"
            )
        if self.retention_ms is not None and not -1 <= self.retention_ms < 1 << 63:
            raise InvalidDefinition(
                f"Event {self.name}: retention {self.retention_ms} is not possible; milliseconds are, or -1 for good"
            )
        if not self.label:
            object.__setattr__(self, "label", self.name[:-3].replace("_", " "))
        if not self.plural_label:
            object.__setattr__(self, "plural_label", self.label)

    @property
    def columns(self) -> dict[str, FieldType]:
        """The comparable fields for a filter."""
        types = {field.name: field.type for field in self.fields}
        return types | {"CreatedDate": FieldType.DATE_TIME, "CreatedById": FieldType.TEXT}

    @property
    def subject(self) -> str:
        """The registry subject of the definition: that of the topic's values."""
        return f"{self.name}-value"

    @property
    def channel(self) -> str:
        """The name of the event in CometD and the Pub/Sub API."""
        return f"/event/{self.name}"


def to_avro(definition: EventDefinition) -> dict[str, Any]:
    """The Avro record of a definition, as a JSON value."""
    fields: list[dict[str, Any]] = [
        {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"},
        {"name": "CreatedById", "type": "string", "doc": "CreatedBy:EntityId"},
    ]
    fields += [_field_to_avro(definition.name, field) for field in definition.fields]
    about: dict[str, Any] = {
        "label": definition.label,
        "pluralLabel": definition.plural_label,
        "publishBehavior": definition.publish_behavior,
        "eventType": "HighVolume",
    }
    if definition.description:
        about["description"] = definition.description
    if definition.retention_ms is not None:
        about["retentionMs"] = definition.retention_ms
    return {
        "type": "record",
        "name": definition.name,
        "namespace": NAMESPACE,
        "fields": fields,
        PROPERTY: about,
    }


def to_avro_text(definition: EventDefinition) -> str:
    return json.dumps(to_avro(definition), separators=(",", ":"), ensure_ascii=False)


def _field_to_avro(event: str, field: EventField) -> dict[str, Any]:
    about: dict[str, Any] = {"type": field.type.value, "label": field.label}
    if field.length:
        about["length"] = field.length
    if field.type is FieldType.NUMBER:
        about |= {"precision": field.precision, "scale": field.scale}
    if field.required:
        about["required"] = True
    if field.description:
        about["description"] = field.description
    if field.help_text:
        about["inlineHelpText"] = field.help_text
    if field.default_formula:
        about["default"] = field.default_formula
    made: dict[str, Any] = {"name": field.name}
    if field.nullable:
        made["type"] = ["null", field.type.avro]
    else:
        made["type"] = field.type.avro
    made["doc"] = f"Data:{field.type.doc}:{field_id(event, field.name)}"
    if field.nullable:
        made["default"] = None
    elif field.type is FieldType.CHECKBOX:
        made["default"] = field.default
    elif field.default_formula and field.type in (FieldType.TEXT, FieldType.LONG_TEXT_AREA, FieldType.NUMBER):
        # With an Avro default the registry accepts a required field that is added later as compatible.
        made["default"] = defaults.parse(field.type.value, field.default_formula, field=field.name)(0)
    made[PROPERTY] = about
    return made


def field_id(event: str, field: str) -> str:
    """A custom-field id (``00N``, 15 characters) that is the same wherever the same field is defined."""
    number = int.from_bytes(hashlib.sha256(f"{event}.{field}".encode()).digest()[:9])
    digits = ""
    for _ in range(12):
        number, digit = divmod(number, 62)
        digits += _BASE62[digit]
    return "00N" + digits


def from_avro(schema: str | Mapping[str, Any]) -> EventDefinition:
    """The definition in an Avro record: ours, Salesforce's or a plain one.

    A plain record (``string``, ``double``, ``long`` with ``timestamp-millis``, ``int`` with ``date``, ``boolean``) may
    omit CreatedDate and CreatedById. Raises InvalidDefinition that names a field impossible in a platform event.
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise InvalidDefinition(f"The Avro schema is not JSON: {error}") from error
    if not isinstance(schema, Mapping) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise InvalidDefinition(
            'The Avro schema of an event is a record: {"type": "record", "name": ..., "fields": [...]}'
        )
    name = str(schema.get("name", "")).rpartition(".")[2]
    about = _about(schema)
    return EventDefinition(
        name=name,
        fields=tuple(
            _field_from_avro(name, field)
            for field in schema["fields"]
            if not isinstance(field, Mapping) or field.get("name") not in AUDIT_FIELDS
        ),
        label=str(about.get("label", "")),
        plural_label=str(about.get("pluralLabel", "")),
        description=str(about.get("description", schema.get("doc", ""))),
        publish_behavior=str(about.get("publishBehavior", "PublishImmediately")),
        retention_ms=_integer(about, "retentionMs", 0) if "retentionMs" in about else None,
    )


def _about(value: Mapping[str, Any]) -> Mapping[str, Any]:
    about = value.get(PROPERTY)
    return about if isinstance(about, Mapping) else {}


def _field_from_avro(event: str, field: Any) -> EventField:
    if not isinstance(field, Mapping) or not isinstance(field.get("name"), str):
        raise InvalidDefinition(f"Event {event} has a field that is not an Avro field: {str(field)[:100]}")
    about = _about(field)
    avro, optional = field.get("type"), False
    if isinstance(avro, list):
        members = [member for member in avro if member != "null"]
        optional = len(members) < len(avro)
        if len(members) != 1:
            raise InvalidDefinition(
                f"Field {field['name']} of {event} is a union of {len(members)} types; an event field has one, or one and null",
                fields=(field["name"],),
            )
        avro = members[0]
    kind = _kind(event, field["name"], avro, str(field.get("doc", "")), about)
    default = field.get("default")
    return EventField(
        name=field["name"],
        type=kind,
        label=str(about.get("label", "")),
        required=not optional and kind is not FieldType.CHECKBOX,
        length=_integer(about, "length", 0),
        precision=_integer(about, "precision", 18),
        scale=_integer(about, "scale", 0 if avro in ("int", "long") or about else 2),
        description=str(about.get("description", "")),
        default=default is True,
        default_formula=str(about["default"]) if "default" in about else _formula(kind, default),
        help_text=str(about.get("inlineHelpText", "")),
    )


def _formula(kind: FieldType, default: Any) -> str:
    """The formula of a plain record's own default. Dates and instants, which are numbers there, have none."""
    if kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA) and isinstance(default, str):
        return defaults.text_formula(default)
    if kind is FieldType.NUMBER and isinstance(default, int | float) and not isinstance(default, bool):
        text = f"{Decimal(repr(default)):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return ""


def _integer(about: Mapping[str, Any], name: str, default: int) -> int:
    value = about.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidDefinition(f"Schema property {PROPERTY}.{name} is {str(value)[:50]!r}; a whole number is needed")
    return value


def _kind(event: str, name: str, avro: Any, doc: str, about: Mapping[str, Any]) -> FieldType:
    """The field type from, in this order: our property, Salesforce's doc, the Avro type itself."""
    logical = None
    if isinstance(avro, Mapping):
        avro, logical = avro.get("type"), avro.get("logicalType")
    said = next((kind for kind in FieldType if kind.value == about.get("type")), None)
    parts = doc.split(":")
    if said is None and len(parts) >= 2 and parts[0] == "Data":
        said = _BY_DOC.get(parts[1])
    plain = {
        ("string", None): FieldType.TEXT,
        ("boolean", None): FieldType.CHECKBOX,
        ("double", None): FieldType.NUMBER,
        ("float", None): FieldType.NUMBER,
        ("int", None): FieldType.NUMBER,
        ("long", None): FieldType.NUMBER,
        ("long", "timestamp-millis"): FieldType.DATE_TIME,
        ("int", "date"): FieldType.DATE,
    }.get((avro, logical) if isinstance(avro, str) and (logical is None or isinstance(logical, str)) else ("", None))
    kind = said if said is not None and (said.avro == avro or plain is said) else plain
    if kind is None or (said is not None and kind is not said):
        shown = f"{avro}" + (f" ({logical})" if logical else "")
        raise InvalidDefinition(
            f"Field {name} of {event} is Avro {shown}{f' said to be {said.value}' if said else ''}; an event field is string, "
            "boolean, double, int, long, long (timestamp-millis) or int (date), alone or with null",
            fields=(name,),
        )
    return kind
