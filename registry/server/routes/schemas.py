"""``/schemas`` and ``/contexts``: registered schemas by id, by guid or as a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from registry.domain.tags import found_tags
from registry.formats import SCHEMA_TYPES
from registry.model.associations import Association
from registry.model.records import SchemaVersion
from registry.model.subjects import bare_context, context_of, normalize
from registry.server.routes import answers
from registry.server.routes.call import Call
from registry.server.routes.dispatch import SchemaText
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import (
    ALIASES,
    ASSOCIATION_TYPE,
    CONTEXT_PREFIX,
    DELETED,
    FETCH_MAX_ID,
    FIND_TAGS,
    FORMAT,
    LATEST_ONLY,
    LIFECYCLES,
    LIMIT,
    OFFSET,
    REFERENCE_FORMAT,
    RESOURCE_TYPE,
    RULE_TYPE,
    SUBJECT,
    SUBJECT_PREFIX,
)

__all__ = ["ENDPOINTS"]

_MOST: Final = 1000


def get_schemas(call: Call) -> Any:
    """Versions by subject and number, at most a thousand."""
    listed = call.registry.catalog.listed(
        call.prefix(SUBJECT_PREFIX, ""),
        deleted=call.flag(DELETED),
        latest_only=call.flag(LATEST_ONLY),
        rule_type=call.text(RULE_TYPE),
        aliases=call.flag(ALIASES),
    )
    if (view := call.view) is not None:
        listed = (each for each in listed if view(each[0].subject))
    offset, limit = max(call.number(OFFSET), 0), call.number(LIMIT)
    chosen = _by_association(call, listed)
    shown = islice(chosen, offset, offset + (limit if 0 < limit <= _MOST else _MOST))
    return [answers.listed(version, aliases, associations) for version, aliases, associations in shown]


def _by_association(
    call: Call, listed: Iterable[tuple[SchemaVersion, Sequence[str]]]
) -> Iterator[tuple[SchemaVersion, Sequence[str], Sequence[Association]]]:
    """Versions whose subjects match the association query, with those associations; all versions without such a query."""
    type_, kinds, lifecycles = call.text(RESOURCE_TYPE), call.texts(ASSOCIATION_TYPE), call.texts(LIFECYCLES)
    for version, aliases in listed:
        if not type_ and not kinds and not lifecycles:
            yield version, aliases, ()
            continue
        every = call.registry.catalog.state.associations.of_subject(version.subject, type_=type_ or None, kinds=kinds)
        matching = [each for each in every if not lifecycles or each.lifecycle in lifecycles]
        if matching or (not every and "NONE" in lifecycles):
            yield version, aliases, matching


def get_schema_types(_: Call) -> Any:
    """The supported schema types."""
    return list(SCHEMA_TYPES)


def get_schema(call: Call) -> Any:
    """The schema with an id."""
    version = call.visible(call.registry.catalog.by_id(call.id, call.subject_query(SUBJECT)))
    return answers.by_id(
        version,
        text=_formatted(call, version),
        qualified=call.text(REFERENCE_FORMAT) == "qualified",
        tags=found_tags(version.schema_type, version.schema, call.texts(FIND_TAGS)),
        max_id=call.registry.catalog.state.max_id(context_of(version.subject)) if call.flag(FETCH_MAX_ID) else None,
    )


def get_only_schema_by_id(call: Call) -> Any:
    """The text of the schema with an id."""
    version = call.visible(call.registry.catalog.by_id(call.id, call.subject_query(SUBJECT)))
    return SchemaText(_formatted(call, version) or version.schema)


def get_all_subjects_by_id(call: Call) -> Any:
    """The subjects that have a version with the id."""
    versions = call.all_visible(
        call.registry.catalog.with_id(call.id, call.subject_query(SUBJECT), deleted=call.flag(DELETED))
    )
    return call.page(sorted({version.subject for version in versions}))


def get_all_versions_by_id(call: Call) -> Any:
    """The versions that have the id, with their subjects."""
    versions = call.all_visible(
        call.registry.catalog.with_id(call.id, call.subject_query(SUBJECT), deleted=call.flag(DELETED))
    )
    return call.page([{"subject": each.subject, "version": each.version} for each in versions])


def get_schema_by_guid(call: Call) -> Any:
    """The schema with a guid, in any context."""
    version = call.visible(call.registry.catalog.by_guid(call.params["guid"]))
    return answers.by_id(version, text=_formatted(call, version), with_subject=False)


def get_all_ids_by_guid(call: Call) -> Any:
    """The contexts that have the schema with a guid, and its id in each."""
    ids = call.registry.catalog.ids_of(call.params["guid"])
    return [
        {"context": context, "id": schema_id} for context, schema_id in ids if _is_visible(call, context, schema_id)
    ]


def _is_visible(call: Call, context: str, schema_id: int) -> bool:
    view = call.view
    return view is None or any(view(each.subject) for each in call.registry.catalog.state.by_id(context, schema_id))


def list_contexts(call: Call) -> Any:
    """The contexts, the default one first."""
    prefix = call.text(CONTEXT_PREFIX)
    contexts = [context for context in call.registry.catalog.state.contexts() if context.startswith(prefix)]
    if call.view is not None:
        names = [name for name in call.registry.catalog.subjects(":*:", deleted=True) if call.view(name)]
        known = {".", *(context_of(name) for name in names)}
        contexts = [context for context in contexts if context in known]
    return call.page(contexts)


async def delete_context(call: Call) -> Any:
    """Delete a context without subjects."""
    name = call.params["context"]
    await call.registry.delete_context(
        normalize(name if name.startswith(":") else bare_context("." + name.lstrip(".")))
    )


def _formatted(call: Call, version: SchemaVersion) -> str | None:
    form = call.text(FORMAT).strip()
    return call.registry.catalog.schemas.stored(version).formatted(form) if form else None


_ID: Final = "/schemas/ids/{id}"
_GUID: Final = "/schemas/guids/{guid}"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/schemas",
        get_schemas,
        "list[ExtendedSchema]",
        (
            SUBJECT_PREFIX,
            ALIASES,
            DELETED,
            LATEST_ONLY,
            RULE_TYPE,
            RESOURCE_TYPE,
            ASSOCIATION_TYPE,
            LIFECYCLES,
            OFFSET,
            LIMIT,
        ),
        cached=True,
    ),
    Endpoint("GET", "/schemas/types", get_schema_types, "list[string]", cached=True),
    Endpoint(
        "GET",
        _ID,
        get_schema,
        "SchemaString",
        (SUBJECT, FORMAT, REFERENCE_FORMAT, FIND_TAGS, FETCH_MAX_ID),
        cached=True,
    ),
    Endpoint("GET", _ID + "/schema", get_only_schema_by_id, "text", (SUBJECT, FORMAT), cached=True),
    Endpoint(
        "GET", _ID + "/subjects", get_all_subjects_by_id, "list[string]", (SUBJECT, DELETED, OFFSET, LIMIT), cached=True
    ),
    Endpoint(
        "GET",
        _ID + "/versions",
        get_all_versions_by_id,
        "list[SubjectVersion]",
        (SUBJECT, DELETED, OFFSET, LIMIT),
        cached=True,
    ),
    Endpoint("GET", _GUID, get_schema_by_guid, "SchemaString", (FORMAT,), cached=True),
    Endpoint("GET", _GUID + "/ids", get_all_ids_by_guid, "list[ContextId]", cached=True),
    Endpoint("GET", "/contexts", list_contexts, "list[string]", (OFFSET, LIMIT, CONTEXT_PREFIX), cached=True),
    Endpoint("DELETE", "/contexts/{context}", delete_context, "none"),
)
