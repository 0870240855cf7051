"""Exports event definitions as Salesforce metadata: one ``X__e.object``, or the folder of an SFDX project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.sax.saxutils import escape

from events.model.definitions import EventDefinition, EventField, FieldType

__all__ = ["object_xml", "sfdx_files"]

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SPACE: Final = 'xmlns="http://soap.sforce.com/2006/04/metadata"'
_MASTER: Final = {
    FieldType.TEXT: {"unique": "false"},
    FieldType.LONG_TEXT_AREA: {"visibleLines": "3"},
    FieldType.NUMBER: {"unique": "false"},
}
"""Elements that Salesforce requires for a type, and that have no effect here."""


def object_xml(definition: EventDefinition) -> bytes:
    """The CustomObject document with its fields.

    It has no retention, because Salesforce's metadata has no element for it.
    """
    fields = [_element("fields", _about_field(field)) for field in definition.fields]
    return _document("CustomObject", [*fields, *_about_event(definition)])


def sfdx_files(definition: EventDefinition) -> Mapping[str, bytes]:
    """The files by path below ``objects/``: the object's own, and one for each field."""
    folder = definition.name
    files = {f"{folder}/{definition.name}.object-meta.xml": _document("CustomObject", _about_event(definition))}
    for field in definition.fields:
        lines = [_tag(name, value) for name, value in _about_field(field).items()]
        files[f"{folder}/fields/{field.name}.field-meta.xml"] = _document("CustomField", lines)
    return files


def _about_event(definition: EventDefinition) -> list[str]:
    told = {
        "deploymentStatus": "Deployed",
        "description": definition.description,
        "eventType": "HighVolume",
        "label": definition.label,
        "pluralLabel": definition.plural_label,
        "publishBehavior": definition.publish_behavior,
    }
    return [_tag(name, value) for name, value in told.items() if value]


def _about_field(field: EventField) -> dict[str, str]:
    """The elements after ``fullName`` in alphabetical order, as Salesforce's own tools write them."""
    told = {"label": field.label, "type": field.type.value, **_MASTER.get(field.type, {})}
    told |= {
        "isFilteringDisabled": "false",
        "isNameField": "false",
        "isSortingDisabled": "false",
        "externalId": "false",
    }
    if field.type is FieldType.CHECKBOX:
        told["defaultValue"] = str(field.default).lower()
    else:
        told |= {"defaultValue": field.default_formula, "required": str(field.required).lower()}
    if field.length:
        told["length"] = str(field.length)
    if field.type is FieldType.NUMBER:
        told |= {"precision": str(field.precision), "scale": str(field.scale)}
    told |= {"description": field.description, "inlineHelpText": field.help_text}
    return {"fullName": field.name, **{name: told[name] for name in sorted(told) if told[name]}}


def _tag(name: str, value: str) -> str:
    return f"<{name}>{escape(value)}</{name}>"


def _element(name: str, inside: Mapping[str, str]) -> str:
    lines = "".join(f"\n        {_tag(key, value)}" for key, value in inside.items())
    return f"<{name}>{lines}\n    </{name}>"


def _document(root: str, inside: list[str]) -> bytes:
    lines = "".join(f"    {line}\n" for line in inside)
    return f"{_HEAD}<{root} {_SPACE}>\n{lines}</{root}>\n".encode(errors="xmlcharrefreplace")
