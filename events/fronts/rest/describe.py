"""Salesforce's describe results for an event, from its definition."""

from __future__ import annotations

from typing import Any, Final

from events.access import User
from events.model.definitions import EventDefinition, EventField, FieldType

__all__ = ["full", "season", "summary"]

_SOAP: Final = {
    FieldType.CHECKBOX: ("boolean", "xsd:boolean"),
    FieldType.DATE: ("date", "xsd:date"),
    FieldType.DATE_TIME: ("datetime", "xsd:dateTime"),
    FieldType.NUMBER: ("double", "xsd:double"),
    FieldType.TEXT: ("string", "xsd:string"),
    FieldType.LONG_TEXT_AREA: ("textarea", "xsd:string"),
}


def season(version: int) -> str:
    """The release that introduced an API version: three per year, 59 is Winter '24."""
    years, turn = divmod(version - 59, 3)
    return f"{('Winter', 'Spring', 'Summer')[turn]} '{(24 + years) % 100:02d}"


def summary(definition: EventDefinition, version: str, user: User) -> dict[str, Any]:
    """An event in the list of all objects, from a user's view."""
    base = f"/services/data/v{version}/sobjects/{definition.name}"
    return {
        "activateable": False,
        "associateEntityType": None,
        "associateParentEntity": None,
        "createable": user.may_create(definition.name),
        "custom": True,
        "customSetting": False,
        "deepCloneable": False,
        "deletable": False,
        "deprecatedAndHidden": False,
        "feedEnabled": False,
        "hasSubtypes": False,
        "isInterface": False,
        "isSubtype": False,
        "keyPrefix": "e01",
        "label": definition.label,
        "labelPlural": definition.plural_label,
        "layoutable": False,
        "mergeable": False,
        "mruEnabled": False,
        "name": definition.name,
        "queryable": False,
        "replicateable": False,
        "retrieveable": False,
        "searchable": False,
        "triggerable": True,
        "undeletable": False,
        "updateable": False,
        "urls": {
            "sobject": base,
            "describe": f"{base}/describe",
            "rowTemplate": f"{base}/{{ID}}",
            "eventSchema": f"{base}/eventSchema",
        },
    }


def full(definition: EventDefinition, version: str, user: User) -> dict[str, Any]:
    """An event with its fields."""
    fields = [
        _field("ReplayId", "Replay ID", "string", "xsd:string", length=1000, nillable=True),
        _field("CreatedDate", "Created Date", "datetime", "xsd:dateTime"),
        _field("CreatedById", "Created By ID", "reference", "tns:ID", length=18, reference="User"),
        _field("EventUuid", "Event UUID", "string", "xsd:string", length=36, nillable=True),
    ]
    fields += [_custom(field) for field in definition.fields]
    extra = {
        "actionOverrides": [],
        "childRelationships": [],
        "compactLayoutable": False,
        "fields": fields,
        "listviewable": None,
        "lookupLayoutable": None,
        "namedLayoutInfos": [],
        "networkScopeFieldName": None,
        "recordTypeInfos": [],
        "searchLayoutable": False,
        "supportedScopes": [],
    }
    return summary(definition, version, user) | extra


def _custom(field: EventField) -> dict[str, Any]:
    kind, soap = _SOAP[field.type]
    return _field(
        field.name,
        field.label,
        kind,
        soap,
        length=field.length,
        precision=field.precision if field.type is FieldType.NUMBER else 0,
        scale=field.scale if field.type is FieldType.NUMBER else 0,
        nillable=field.nullable,
        createable=True,
        default=field.default if field.type is FieldType.CHECKBOX else None,
        formula=field.default_formula or None,
        help_text=field.help_text or None,
    )


def _field(
    name: str,
    label: str,
    kind: str,
    soap: str,
    *,
    length: int = 0,
    precision: int = 0,
    scale: int = 0,
    nillable: bool = False,
    createable: bool = False,
    default: bool | None = None,
    formula: str | None = None,
    help_text: str | None = None,
    reference: str = "",
) -> dict[str, Any]:
    return {
        "aggregatable": False,
        "autoNumber": False,
        "byteLength": length * 3,
        "calculated": False,
        "caseSensitive": False,
        "createable": createable,
        "custom": name.endswith("__c"),
        "defaultValue": default,
        "defaultValueFormula": formula,
        "defaultedOnCreate": not createable or default is not None or formula is not None,
        "dependentPicklist": False,
        "deprecatedAndHidden": False,
        "digits": 0,
        "externalId": False,
        "filterable": False,
        "groupable": False,
        "idLookup": False,
        "inlineHelpText": help_text,
        "label": label,
        "length": length,
        "name": name,
        "nameField": False,
        "nillable": nillable,
        "permissionable": False,
        "picklistValues": [],
        "precision": precision,
        "referenceTo": [reference] if reference else [],
        "relationshipName": "CreatedBy" if reference else None,
        "restrictedPicklist": False,
        "scale": scale,
        "soapType": soap,
        "sortable": False,
        "type": kind,
        "unique": False,
        "updateable": False,
    }
