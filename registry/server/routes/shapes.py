"""The JSON objects of the REST API as JSON Schema, with Confluent's names, for requests and answers.

Schemas of requests are as lenient as the parser: unknown members are ignored, null means absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.formats.compatibility import Level

__all__ = ["SHAPES", "shape"]

Shape = Mapping[str, Any]

_INT32: Final = {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1}
_TEXT: Final = {"type": "string"}
_TAKEN_AS_TEXT: Final = {"type": ["string", "number", "boolean", "null"]}
_SCALAR: Final = {"type": ["string", "number", "boolean"]}
_NUMBER: Final = {
    "anyOf": [
        {"type": ["number", "null"], "minimum": -(1 << 31), "maximum": (1 << 31) - 1},
        {"type": "string", "pattern": "^(-?[0-9]{1,9})?$"},
    ]
}
"""A number in a request; fractions are truncated."""
_NUMBER_GIVEN: Final = {
    "anyOf": [
        {"type": "number", "minimum": -(1 << 31), "maximum": (1 << 31) - 1},
        {"type": "string", "pattern": "^-?[0-9]{1,9}$"},
    ]
}
_NAMED: Final = {"anyOf": [{"type": "string", "minLength": 1}, {"type": ["number", "boolean"]}]}
_FLAG: Final = {"anyOf": [{"type": ["boolean", "null"]}, {"enum": ["true", "false"]}]}
_MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_DESCRIBED: Final = {"type": "object", "additionalProperties": True}


def _ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(item: Shape, *, or_null: bool = False) -> Shape:
    return {"type": ["array", "null"] if or_null else "array", "items": item}


def _object(
    properties: Mapping[str, Shape], doc: str, *, required: Sequence[str] = (), example: Any = None
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "description": doc, "properties": dict(properties)}
    if required:
        made["required"] = list(required)
    if example is not None:
        made["examples"] = [example]
    return made


_ANSWERED_REFERENCES: Final = _list(
    {"type": "object", "properties": {"name": _TEXT, "subject": _TEXT, "version": _INT32}}
)
_STORED: Final[Mapping[str, Shape]] = {
    "id": _INT32,
    "version": _INT32,
    "guid": _TEXT,
    "schemaType": _TEXT,
    "references": _ANSWERED_REFERENCES,
    "metadata": _DESCRIBED,
    "ruleSet": _DESCRIBED,
    "schema": _TEXT,
}
_PLACED: Final[Mapping[str, Shape]] = {
    "subject": _TEXT,
    **_STORED,
    "schemaTags": {"type": "array"},
    "ts": {"type": "integer", "description": "When it was registered, in milliseconds since 1970."},
    "deleted": {"type": "boolean"},
}
_CONFIG: Final[Mapping[str, Shape]] = {
    "alias": _TEXT,
    "aliasForDeks": _TEXT,
    "normalize": {"type": "boolean"},
    "validateFields": {"type": "boolean"},
    "validateNewSchemas": {"type": "boolean"},
    "validateRules": {"type": "boolean"},
    "compatibilityPolicy": _TEXT,
    "compatibilityGroup": _TEXT,
    "defaultMetadata": _DESCRIBED,
    "overrideMetadata": _DESCRIBED,
    "defaultRuleSet": _DESCRIBED,
    "overrideRuleSet": _DESCRIBED,
}
_LEVEL: Final = {"type": "string", "enum": [level.value for level in Level]}
_ORDER: Final = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'

_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_RULE: Final[Mapping[str, Shape]] = {
    "name": _TEXT,
    "doc": _TAKEN_AS_TEXT,
    "kind": {"enum": ["TRANSFORM", "CONDITION", None]},
    "mode": {"enum": ["UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD", None]},
    "type": _SCALAR,
    "expr": _TAKEN_AS_TEXT,
    "disabled": {"description": "true keeps the rule without its being executed."},
}
_ANY_RULE: Final[Mapping[str, Shape]] = {**_RULE, "name": _TAKEN_AS_TEXT, "type": _TAKEN_AS_TEXT}

_ASKED: Final[Mapping[str, Shape]] = {
    "schema": {**_TAKEN_AS_TEXT, "description": "The schema's text; empty means the latest one."},
    "schemaType": {**_TAKEN_AS_TEXT, "description": "AVRO (the default), JSON or PROTOBUF."},
    "references": _list(_ref("SchemaReference"), or_null=True),
    "metadata": _ref("Metadata"),
    "ruleSet": _ref("AnyRuleSet"),
}

_LIFECYCLE: Final = {"enum": ["STRONG", "WEAK", None]}
_NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,256}$"}
_RESOURCE: Final[Mapping[str, Shape]] = {
    "resourceName": _NAME,
    "resourceNamespace": _NAME,
    "resourceId": {"type": "string", "minLength": 1},
    "resourceType": {"enum": ["topic", None]},
}
_WANTED: Final[Mapping[str, Shape]] = {
    "subject": {"type": ["string", "null"], "minLength": 1},
    "associationType": {"enum": ["key", "value", None]},
    "lifecycle": _LIFECYCLE,
    "frozen": {"type": ["boolean", "null"]},
    "schema": {"anyOf": [_ref("RegisterSchemaRequest"), {"type": "null"}]},
    "normalize": {"type": ["boolean", "null"]},
}
_ONE_QUESTION: Final = "resourceId, or resourceName and resourceNamespace; resourceType, associationTypes, lifecycle."
_ONE_CHANGE: Final = (
    "An AssociationCreateOrUpdateRequest, each of its associations with an opType: CREATE, UPSERT or DELETE."
)
_ASSOCIATION: Final[Mapping[str, Shape]] = {
    "subject": _TEXT,
    "guid": _TEXT,
    **dict.fromkeys(_RESOURCE, _TEXT),
    "associationType": {"enum": ["key", "value"]},
    "lifecycle": {"enum": ["STRONG", "WEAK"]},
    "frozen": {"type": "boolean"},
    "createTs": {"type": "integer"},
    "updateTs": {"type": "integer"},
}
_ASSOCIATED: Final[Mapping[str, Shape]] = {
    **{name: _ASSOCIATION[name] for name in ("subject", "associationType", "lifecycle", "frozen")},
    "schema": _ref("Schema"),
}

SHAPES: Final[Mapping[str, Shape]] = {
    "ErrorMessage": _object(
        {"error_code": {"type": "integer"}, "message": _TEXT},
        "Why a request was refused. The first three digits of error_code are the HTTP status.",
        required=("error_code", "message"),
    ),
    "SchemaReference": _object(
        {"name": _NAMED, "subject": _NAMED, "version": _NUMBER_GIVEN},
        "A schema that another builds on.",
        required=("name", "subject", "version"),
    ),
    "Metadata": {
        "type": ["object", "null"],
        "description": "Tags by path, properties, and the names of properties that are sensitive.",
        "properties": {
            "tags": {
                "type": ["object", "null"],
                "additionalProperties": _list(_SCALAR, or_null=True),
            },
            "properties": {
                "type": ["object", "null"],
                "additionalProperties": _SCALAR,
            },
            "sensitive": _list(_SCALAR, or_null=True),
        },
    },
    "RuleSet": {
        "type": ["object", "null"],
        "description": "Rules of a data contract. The registry keeps them; whoever serializes executes them.",
        "properties": {name: _list(_ref("Rule"), or_null=True) for name in _RULE_LISTS},
    },
    "Rule": _object(
        _RULE,
        "One rule; its name begins with a letter or _ and goes on with letters, digits, - and _.",
        required=("name", "type"),
    ),
    "AnyRuleSet": {
        "type": ["object", "null"],
        "description": "Rules that are compared, and not judged.",
        "properties": {name: _list(_object(_ANY_RULE, "A rule."), or_null=True) for name in _RULE_LISTS},
    },
    "SchemaRequest": _object(
        _ASKED, "A schema with what it builds on and what is said about it.", example={"schema": _ORDER}
    ),
    "RegisterSchemaRequest": _object(
        {
            **_ASKED,
            "ruleSet": _ref("RuleSet"),
            "id": {**_NUMBER, "description": "In IMPORT mode, the id to register under."},
            "version": {**_NUMBER, "description": "The number of the version."},
            "schemaTagsToAdd": _list(_ref("SchemaTags"), or_null=True),
            "schemaTagsToRemove": _list(_ref("SchemaTags"), or_null=True),
            "propagateSchemaTags": {"description": "true copies the tags of the version before."},
        },
        "A schema to register.",
        example={"schema": _ORDER},
    ),
    "SchemaTags": _object(
        {
            "schemaEntity": _object(
                {"entityPath": _TEXT, "entityType": {"enum": ["sr_record", "sr_field"]}},
                "A record or field by its full name.",
                required=("entityPath", "entityType"),
            ),
            "tags": _list(_TEXT),
        },
        "Tags of one record or field.",
        required=("schemaEntity", "tags"),
    ),
    "TagSchemaRequest": _object(
        {
            "newVersion": _NUMBER,
            "tagsToAdd": _list(_ref("SchemaTags"), or_null=True),
            "tagsToRemove": _list(_ref("SchemaTags"), or_null=True),
            "metadata": _ref("Metadata"),
            "ruleSet": _ref("RuleSet"),
            "rulesToMerge": _ref("RuleSet"),
            "rulesToRemove": _list({}, or_null=True),
        },
        "What a new version shall have otherwise than this one.",
    ),
    "RegisterSchemaResponse": _object(_STORED, "What a registration came to.", required=("id", "version", "schema")),
    "Schema": _object(_PLACED, "A version of a subject.", required=("subject", "version", "id", "schema")),
    "ExtendedSchema": _object(
        {**_PLACED, "aliases": _list(_TEXT), "associations": _list(_ref("Association"))},
        "A version of a subject, in a list.",
        required=("subject", "version", "id", "schema"),
    ),
    "SchemaString": _object(
        {**{name: reply_shape for name, reply_shape in _PLACED.items() if name != "id"}, "maxId": _INT32},
        "A schema that was asked for by id or guid.",
        required=("schema",),
    ),
    "SubjectVersion": _object({"subject": _TEXT, "version": _INT32}, "A place.", required=("subject", "version")),
    "Association": _object(_ASSOCIATION, "A subject and the resource it belongs to.", required=tuple(_ASSOCIATION)[:8]),
    "AssociationCreateOrUpdateRequest": _object(
        {**_RESOURCE, "associations": _list(_ref("AssociationWanted"))},
        "Associations of one resource.",
        required=("resourceName", "resourceNamespace", "resourceId", "associations"),
    ),
    "AssociationWanted": _object(
        _WANTED,
        "A subject for a resource: STRONG ones belong to it alone and come with a schema, WEAK ones are shared.",
    ),
    "AssociationResponse": _object(
        {
            **dict.fromkeys(_RESOURCE, _TEXT),
            "associations": _list(_object(_ASSOCIATED, "A subject of the resource.")),
        },
        "The associations of one resource that were asked for or written.",
    ),
    # An error in one request of a batch is reported in its part of the answer, so no shape is enforced here.
    "AssociationBatchGetRequest": _object(
        {"requests": {**_list(_object({}, _ONE_QUESTION)), "minItems": 1}}, "Several questions.", required=("requests",)
    ),
    "AssociationBatchRequest": _object(
        {"requests": {**_list(_object({}, _ONE_CHANGE)), "minItems": 1}}, "Several changes.", required=("requests",)
    ),
    "AssociationBatchResponse": _object(
        {
            "results": _list(
                _object({"error": _ref("ErrorMessage"), "result": _ref("AssociationResponse")}, "One of them.")
            )
        },
        "What came of each request, in their order.",
        required=("results",),
    ),
    "ContextId": _object({"context": _TEXT, "id": _INT32}, "An id in a context.", required=("context", "id")),
    "CompatibilityCheckResponse": _object(
        {"is_compatible": {"type": "boolean"}, "messages": _list(_TEXT)},
        "Whether a registration would succeed; messages only when verbose was asked for.",
        required=("is_compatible",),
    ),
    "Config": _object({**_CONFIG, "compatibilityLevel": _LEVEL}, "What is set."),
    "ConfigUpdateRequest": _object(
        {
            "alias": {"type": ["string", "null"]},
            "aliasForDeks": {"type": ["string", "null"]},
            "normalize": _FLAG,
            "validateFields": _FLAG,
            "validateNewSchemas": _FLAG,
            "validateRules": _FLAG,
            "compatibility": {"enum": [level.value for level in Level] + [None]},
            "compatibilityPolicy": {"type": ["string", "null"]},
            "compatibilityGroup": {"type": ["string", "null"]},
            "defaultMetadata": _ref("Metadata"),
            "overrideMetadata": _ref("Metadata"),
            "defaultRuleSet": _ref("RuleSet"),
            "overrideRuleSet": _ref("RuleSet"),
        },
        "Settings to change: what is not named stays, null takes away.",
        example={"compatibility": "FULL"},
    ),
    "Mode": _object({"mode": {"enum": list(_MODES)}}, "The mode."),
    "ModeUpdateRequest": _object(
        {"mode": {"enum": [*_MODES, None]}}, "The mode to set; null takes it away.", example={"mode": "READONLY"}
    ),
    "ServerClusterId": _object({"scope": _DESCRIBED}, "Which Kafka and which registry this is.", required=("scope",)),
    "SchemaRegistryServerVersion": _object(
        {"version": _TEXT, "commitId": _TEXT}, "The release whose API this is.", required=("version", "commitId")
    ),
    "SchemaRegistryDeployment": _object({"attributes": _list(_TEXT)}, "What is said of the deployment."),
}
"""Every object that an endpoint names as its body or answer, and those nested in them."""

_SIMPLE: Final[Mapping[str, Shape]] = {
    "object": {"type": "object"},
    "string": _TEXT,
    "integer": _INT32,
    "text": {"description": "The text of the schema itself."},
}


def shape(name: str) -> Shape:
    """The shape by an endpoint's name: an object's, a simple one's, or a ``list[...]``."""
    if name.startswith("list["):
        return _list(shape(name[5:-1]))
    return _SIMPLE.get(name) or _ref(name)
