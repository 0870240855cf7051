"""``/subjects``: register, look up, list and delete."""

from __future__ import annotations

from typing import Any, Final

from registry.domain.catalog import LATEST
from registry.domain.tags import found_tags
from registry.errors import InvalidSubject
from registry.model.records import SchemaVersion
from registry.model.subjects import ANY_CONTEXT, is_valid
from registry.server.routes import answers
from registry.server.routes.bodies import definition, new_schema, tag_change
from registry.server.routes.call import Call
from registry.server.routes.dispatch import SchemaText
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import (
    DELETED,
    DELETED_AS_NEGATIVE,
    DELETED_ONLY,
    FIND_TAGS,
    FORCE,
    FORMAT,
    KEY,
    LIMIT,
    NORMALIZE,
    OFFSET,
    PERMANENT,
    REFERENCE_FORMAT,
    SUBJECT_PREFIX,
    VALUE,
)

__all__ = ["ENDPOINTS"]


def list_subjects(call: Call) -> Any:
    """The names of subjects, sorted."""
    prefix, only = call.prefix(SUBJECT_PREFIX, ANY_CONTEXT), call.flag(DELETED_ONLY)
    return call.page(call.shown(call.registry.catalog.subjects(prefix, deleted=call.flag(DELETED), deleted_only=only)))


async def look_up_schema_under_subject(call: Call) -> Any:
    """The version under which a schema is registered."""
    sent, normalize = definition(call.json()), call.flag(NORMALIZE)
    await call.registry.catalog.understand(call.subject, sent, normalize=normalize, strict=(False,), versions=False)
    version = call.registry.catalog.lookup(call.subject, sent, normalize=normalize, deleted=call.flag(DELETED))
    call.permitted(version)
    return answers.version(version, text=_formatted(call, version), history=False)


async def delete_subject(call: Call) -> Any:
    """Delete every version of a subject, softly first, permanently the second time. The answer is their numbers."""
    return await call.registry.delete_subject(call.subject, permanent=call.flag(PERMANENT))


def get_latest_with_metadata(call: Call) -> Any:
    """The newest version whose metadata has these properties."""
    properties = dict(zip(call.texts(KEY), call.texts(VALUE), strict=False))
    version = call.registry.catalog.latest_with(call.subject, properties, deleted=call.flag(DELETED))
    return answers.version(version, text=_formatted(call, version))


def get_all_versions(call: Call) -> Any:
    """The numbers of a subject's versions, oldest first."""
    negative, only = call.flag(DELETED_AS_NEGATIVE), call.flag(DELETED_ONLY)
    versions = call.registry.catalog.versions(call.subject, deleted=call.flag(DELETED), deleted_only=only)
    if negative:
        versions = call.registry.catalog.state.versions(call.subject, deleted=True)
    return call.page([-each.version if negative and each.deleted else each.version for each in versions])


async def register_schema(call: Call) -> Any:
    """Register a schema under the subject. The same schema gets the same id again."""
    version = await call.registry.register(
        call.subject, new_schema(call.json()), normalize=call.flag(NORMALIZE), force=call.flag(FORCE)
    )
    return answers.registered(version, _formatted(call, version))


def get_schema_by_version(call: Call) -> Any:
    """One version of the subject."""
    version = _version(call)
    return answers.version(
        version,
        text=_formatted(call, version),
        qualified=call.text(REFERENCE_FORMAT) == "qualified",
        tags=found_tags(version.schema_type, version.schema, call.texts(FIND_TAGS)),
    )


def get_version_schema_only(call: Call) -> Any:
    """The text of one version."""
    version = _version(call)
    return SchemaText(_formatted(call, version) or version.schema)


async def delete_schema_version(call: Call) -> Any:
    """Delete one version, softly first, permanently the second time. The answer is its number."""
    return await call.registry.delete_version(call.subject, call.version, permanent=call.flag(PERMANENT))


def get_referenced_by(call: Call) -> Any:
    """Ids of the schemas that refer to a version."""
    version = call.permitted(call.registry.catalog.version(call.subject, call.version, deleted=True))
    return call.page(call.registry.catalog.referenced_by(version, deleted=call.flag(DELETED)), 1000)


async def modify_tags(call: Call) -> Any:
    """Register a version that differs from this one in tags, metadata or rules."""
    if not is_valid(call.subject, for_settings=False):
        raise InvalidSubject(call.subject)
    version = call.permitted(call.registry.catalog.version(call.subject, call.version))
    change = tag_change(call.json())
    return answers.registered(await call.registry.change_tags(call.subject, version, change))


def _version(call: Call) -> SchemaVersion:
    number = call.version
    return call.permitted(
        call.registry.catalog.version(call.subject, number, deleted=call.flag(DELETED) and number != LATEST)
    )


def _formatted(call: Call, version: SchemaVersion) -> str | None:
    form = call.text(FORMAT).strip()
    return call.registry.catalog.schemas.stored(version).formatted(form) if form else None


_SUBJECT: Final = "/subjects/{subject}"
_VERSION: Final = _SUBJECT + "/versions/{version}"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/subjects",
        list_subjects,
        "list[string]",
        (SUBJECT_PREFIX, DELETED, DELETED_ONLY, OFFSET, LIMIT),
        cached=True,
    ),
    Endpoint(
        "POST",
        _SUBJECT,
        look_up_schema_under_subject,
        "Schema",
        (NORMALIZE, FORMAT, DELETED),
        body="SchemaRequest",
        cached=True,
    ),
    Endpoint("DELETE", _SUBJECT, delete_subject, "list[integer]", (PERMANENT,)),
    Endpoint(
        "GET", _SUBJECT + "/metadata", get_latest_with_metadata, "Schema", (KEY, VALUE, FORMAT, DELETED), cached=True
    ),
    Endpoint(
        "GET",
        _SUBJECT + "/versions",
        get_all_versions,
        "list[integer]",
        (DELETED, DELETED_ONLY, DELETED_AS_NEGATIVE, OFFSET, LIMIT),
        cached=True,
    ),
    Endpoint(
        "POST",
        _SUBJECT + "/versions",
        register_schema,
        "RegisterSchemaResponse",
        (NORMALIZE, FORMAT, FORCE),
        body="RegisterSchemaRequest",
        cached=True,
    ),
    Endpoint(
        "GET",
        _VERSION,
        get_schema_by_version,
        "Schema",
        (FORMAT, REFERENCE_FORMAT, DELETED, FIND_TAGS),
        cached=True,
    ),
    Endpoint("DELETE", _VERSION, delete_schema_version, "integer", (PERMANENT,)),
    Endpoint("GET", _VERSION + "/schema", get_version_schema_only, "text", (FORMAT, DELETED), cached=True),
    Endpoint(
        "GET", _VERSION + "/referencedby", get_referenced_by, "list[integer]", (DELETED, OFFSET, LIMIT), cached=True
    ),
    Endpoint("POST", _VERSION + "/tags", modify_tags, "RegisterSchemaResponse", body="TagSchemaRequest"),
)
