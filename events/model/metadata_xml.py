"""Reads one event definition from Salesforce metadata: an SFDX folder, a ``X__e.object-meta.xml`` or an old
``X__e.object``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from events.errors import InvalidDefinition, MalformedXml
from events.model import definitions, metadata_elements, xml
from events.model.definitions import EventDefinition, EventField, FieldType

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["read", "read_object"]

_TYPES = {kind.value: kind for kind in FieldType}
_SPECIFIED = {
    "length": (FieldType.TEXT, FieldType.LONG_TEXT_AREA),
    "precision": (FieldType.NUMBER,),
    "scale": (FieldType.NUMBER,),
}
"""Elements allowed only for some field types."""


def read(path: Path) -> EventDefinition:
    """The definition in a file (``.avsc``, ``.object-meta.xml``, ``.object``, ``.xml``) or in an SFDX object folder.

    Fields in ``fields/*.field-meta.xml`` next to an object file belong to it. Raises InvalidDefinition that names the
    file.
    """
    try:
        if path.is_dir():
            inside = sorted(path.glob("*.object-meta.xml"))
            if len(inside) != 1:
                raise InvalidDefinition(
                    f"{path} has {len(inside)} files *.object-meta.xml; the folder of one event has exactly one"
                )
            return read(inside[0])
        if path.suffix in (".avsc", ".json"):
            return definitions.from_avro(path.read_text(encoding="utf-8"))
        name = path.name.partition(".")[0]
        parts = [part.read_bytes() for part in sorted((path.parent / "fields").glob("*.field-meta.xml"))]
        return read_object(name, path.read_bytes(), parts)
    except OSError as error:
        raise InvalidDefinition(f"Cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidDefinition(f"{path} is not UTF-8 text") from error
    except MalformedXml as error:
        raise InvalidDefinition(f"{path}: {error}") from error


def read_object(name: str, data: bytes | str, field_files: list[bytes] | None = None) -> EventDefinition:
    """The definition in a CustomObject document. The API name is ``name``, or ``fullName`` in the document."""
    root = xml.parse(data)
    if xml.local_name(root) != "CustomObject":
        raise InvalidDefinition(
            f"The metadata of an event is a CustomObject document, and this is {xml.local_name(root) or 'something else'!r}"
        )
    metadata_elements.check(root)
    name = xml.text_of(root, "fullName") or name
    if not xml.text_of(root, "eventType") and not name.endswith("__e"):
        raise InvalidDefinition(
            f"{name!r} is not a platform event: it has no eventType, and its name does not end in __e"
        )
    fields = [_field(name, element) for element in xml.children(root, "fields")]
    for document in field_files or []:
        element = xml.parse(document)
        if xml.local_name(element) != "CustomField":
            raise InvalidDefinition(f"Event {name}: a field file holds {xml.local_name(element)!r}, not a CustomField")
        metadata_elements.check(element)
        fields.append(_field(name, element))
    label = xml.text_of(root, "label")
    if not label:
        raise InvalidDefinition(f"{name}: Must specify a non-empty label for the CustomObject")
    return EventDefinition(
        name=name,
        fields=tuple(fields),
        label=label,
        plural_label=xml.text_of(root, "pluralLabel"),
        description=xml.text_of(root, "description"),
        publish_behavior=xml.text_of(root, "publishBehavior") or "PublishImmediately",
    )


def _field(event: str, element: Element) -> EventField:
    name = xml.text_of(element, "fullName")
    said = xml.text_of(element, "type")
    kind = _TYPES.get(said)
    if kind is None:
        raise InvalidDefinition(
            f"Field {name or '(without fullName)'} of {event}: '{said}' is not a valid value for the enum 'FieldType'; "
            f"a platform event has {', '.join(_TYPES)}",
            fields=(name,),
        )
    for attribute, kinds in _SPECIFIED.items():
        if kind not in kinds and xml.text_of(element, attribute):
            raise InvalidDefinition(
                f"Field {name} of {event}: Can not specify '{attribute}' for a CustomField of type {said}",
                fields=(name,),
            )
    return EventField(
        name=name,
        type=kind,
        label=xml.text_of(element, "label"),
        required=_flag(event, name, element, "required"),
        length=_number(event, name, element, "length", 0),
        precision=_number(event, name, element, "precision", 18),
        scale=_number(event, name, element, "scale", 0),
        description=xml.text_of(element, "description"),
        default=_flag(event, name, element, "defaultValue") if kind is FieldType.CHECKBOX else False,
        default_formula=xml.text_of(element, "defaultValue") if kind is not FieldType.CHECKBOX else "",
        help_text=xml.text_of(element, "inlineHelpText"),
    )


def _number(event: str, field: str, element: Element, name: str, default: int) -> int:
    text = xml.text_of(element, name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidDefinition(
            f"Field {field} of {event}: {name} is {text!r}; a whole number is needed", fields=(field,)
        )
    return int(text)


def _flag(event: str, field: str, element: Element, name: str) -> bool:
    text = xml.text_of(element, name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidDefinition(
            f"Field {field} of {event}: {name} is {text!r}; true or false is needed", fields=(field,)
        )
    return text == "true"
