"""Creates, changes and deletes associations: checks which combinations are allowed, and registers their schemas."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from registry.domain.association_requests import Request, RequestedAssociation, unfitting, with_defaults
from registry.domain.catalog import Catalog
from registry.domain.settings import Mode
from registry.errors import (
    AssociationFrozen,
    Incompatible,
    InvalidAssociation,
    NoActiveVersion,
    OperationNotPermitted,
    ReferenceExists,
    ResourceAssociated,
    SubjectAssociated,
    SubjectOwned,
)
from registry.model.associations import STRONG, WEAK, Association, Resource, default_subject
from registry.model.subjects import split, within

__all__ = ["Checked", "check", "check_deletion", "made"]


class Checked(NamedTuple):
    """A validated request.

    ``every`` has all its associations, ``changed`` those that differ from the current state, ``before`` the current
    ones by kind.
    """

    request: Request
    every: list[RequestedAssociation]
    changed: list[RequestedAssociation]
    before: Mapping[str, Association]


def check(catalog: Catalog, request: Request, *, context: str, create: bool, dry_run: bool) -> Checked:
    """Raises if the request conflicts with the current state. ``context`` is that of the path."""
    resolved = [_resolved(catalog, each, context) for each in request.associations]
    kinds = request.kinds
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise InvalidAssociation(
                "associationType", f"may only appear once per request, but '{kind}' appears more than once"
            )
    index = catalog.state.associations
    existing = index.of_id(request.id, request.type, kinds)
    if not existing and create and dry_run and request.id is None:
        # Before a topic has an id, its name decides whether this is a retry.
        existing = _latest(index.of_name(request.name, request.namespace, request.type, kinds))
    before = {each.kind: each for each in existing}
    placed: list[RequestedAssociation] = []
    left: list[RequestedAssociation] = []
    for each in resolved:
        settled, known = _settled(catalog, request, each, before.get(each.kind), create=create)
        placed.append(settled)
        if not known:
            left.append(settled)
    _check_uniform(catalog, request, placed)
    for each in placed:
        _check_subject(catalog, placed, each, before.get(each.kind))
    for each in placed:
        _check_schema(catalog, each)
    return Checked(request, placed, left, before)


def _resolved(catalog: Catalog, association: RequestedAssociation, context: str) -> RequestedAssociation:
    """The subject with its context and its alias resolved. Raises OperationNotPermitted if it is read-only."""
    if association.subject is None:
        return association
    subject = catalog.unaliased(within(context, association.subject))
    _check_writable(catalog, subject)
    return dataclasses.replace(association, subject=subject)


def _check_writable(catalog: Catalog, subject: str) -> None:
    if catalog.settings.mode_in_scope(subject).read_only:
        context, name = split(subject)
        raise OperationNotPermitted(f"Subject {name} in context {context} is in read-only mode")


def _settled(
    catalog: Catalog, request: Request, association: RequestedAssociation, before: Association | None, *, create: bool
) -> tuple[RequestedAssociation, bool]:
    """The resulting association, and whether it equals the current one."""
    if before is None and not create:
        association = with_defaults(association, create=False)
    default = default_subject(request.name, request.namespace, association.kind)
    lifecycle = association.lifecycle or (before.lifecycle if before is not None else None)
    if association.subject is None:
        if before is None and association.lifecycle != STRONG:
            raise InvalidAssociation("subject", "must be provided for WEAK associations")
        association = dataclasses.replace(association, subject=before.subject if before is not None else default)
    subject = str(association.subject)
    if lifecycle is None:
        raise InvalidAssociation("lifecycle", "lifecycle must be set")
    if lifecycle == WEAK:
        if association.schema is not None:
            raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
        if subject == default:
            raise InvalidAssociation("subject", f"WEAK associations cannot use subject '{default}'")
    frozen = before.frozen if before is not None else association.frozen is True
    asked = frozen if association.frozen is None else association.frozen
    if asked is not (lifecycle == STRONG):
        raise InvalidAssociation("frozen", unfitting(lifecycle, asked))
    if frozen and subject != default:
        raise InvalidAssociation("subject", f"frozen associations must use subject '{default}'")
    if before is None:
        _check_new(catalog, association, lifecycle, create=create)
        return association, False
    return association, _check_change(catalog, association, before, default, create=create)


def _check_new(catalog: Catalog, association: RequestedAssociation, lifecycle: str, *, create: bool) -> None:
    subject = str(association.subject)
    importing = catalog.settings.mode_in_scope(subject) is Mode.IMPORT
    if not create and lifecycle == STRONG and not importing:
        raise InvalidAssociation(
            "lifecycle",
            "cannot be STRONG when creating an association; STRONG associations must be created with the topic",
        )
    if not association.frozen or importing:
        return
    if create and association.schema is None:
        raise InvalidAssociation("schema", "schema must be provided when creating a frozen association")
    live = catalog.state.versions(subject)
    if live and (association.schema is None or live[-1].version != 1 or not _registered(catalog, association)):
        raise InvalidAssociation(
            "frozen", "cannot create a frozen association when schemas already exist in the subject"
        )


def _registered(catalog: Catalog, association: RequestedAssociation) -> bool:
    if association.schema is None:
        return False
    sent = catalog.candidate(
        str(association.subject), association.schema.definition, normalize=association.normalize, strict=False
    )
    return catalog.same(str(association.subject), sent) is not None


def _check_change(
    catalog: Catalog, association: RequestedAssociation, before: Association, default: str, *, create: bool
) -> bool:
    """Whether the association already has the requested values. Raises if it can't be changed to them."""
    equal = (
        before.subject == association.subject
        and association.lifecycle in (None, before.lifecycle)
        and association.frozen in (None, before.frozen)
    )
    if equal:
        if create and association.schema is not None and not _registered(catalog, association):
            raise ResourceAssociated(before.kind, before.resource.name)
        return True
    if create:
        raise ResourceAssociated(before.kind, before.resource.name)
    if association.lifecycle is None and association.schema is None:
        raise InvalidAssociation("lifecycle", "at least lifecycle or schema must be provided for update")
    if before.subject != association.subject:
        raise InvalidAssociation(
            "subject", f"subject of association cannot be changed from '{before.subject}' to '{association.subject}'"
        )
    if before.lifecycle == STRONG and association.lifecycle == WEAK and before.subject == default:
        raise InvalidAssociation("lifecycle", f"cannot change to WEAK when subject matches default format '{default}'")
    if association.frozen not in (None, before.frozen):
        raise InvalidAssociation("frozen", "frozen attribute of association cannot be changed")
    if before.frozen:
        raise AssociationFrozen(before.kind, before.subject)
    return False


def _check_uniform(catalog: Catalog, request: Request, associations: Sequence[RequestedAssociation]) -> None:
    """Require all associations of a resource to be STRONG, or all to be WEAK."""
    index = catalog.state.associations
    if request.id is not None:
        existing = index.of_id(request.id, request.type)
    else:
        existing = _latest(index.of_name(request.name, request.namespace, request.type))
    lifecycles = {each.kind: each.lifecycle for each in existing}
    lifecycles |= {each.kind: each.lifecycle for each in associations if each.lifecycle is not None}
    if len(set(lifecycles.values())) > 1:
        shown = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in lifecycles.items())
        raise InvalidAssociation(
            "lifecycle", f"all associations for a resource must have the same lifecycle, but got {shown}"
        )


def _check_subject(
    catalog: Catalog,
    every: Sequence[RequestedAssociation],
    association: RequestedAssociation,
    before: Association | None,
) -> None:
    """Check the subject: a STRONG association owns its subject exclusively and unreferenced; WEAK ones may share it."""
    subject = str(association.subject)
    if association.schema is not None and catalog.settings.mode_in_scope(subject) is Mode.IMPORT:
        raise InvalidAssociation("schema", f"cannot be provided while subject '{subject}' is in IMPORT mode")
    if association.schema is None and not catalog.state.versions(subject):
        raise NoActiveVersion(subject)
    others = [
        each
        for each in catalog.state.associations.of_subject(subject)
        if before is None
        or (each.resource_id, each.resource.type, each.kind)
        != (
            before.resource_id,
            before.resource.type,
            before.kind,
        )
    ]
    lifecycle = association.lifecycle or (before.lifecycle if before is not None else WEAK)
    if lifecycle == STRONG:
        if others:
            raise SubjectAssociated(subject)
        if _is_referenced(catalog, subject) or any(_refers(each, subject) for each in every):
            raise ReferenceExists(subject)
    elif any(each.lifecycle == STRONG for each in others):
        raise SubjectOwned(subject)


def _is_referenced(catalog: Catalog, subject: str) -> bool:
    versions = catalog.state.versions(subject, deleted=True)
    return any(catalog.state.referrers(subject, version.version) for version in versions)


def _refers(association: RequestedAssociation, subject: str) -> bool:
    references = () if association.schema is None else association.schema.definition.references
    return any(within(str(association.subject), reference.subject) == subject for reference in references)


def _check_schema(catalog: Catalog, association: RequestedAssociation) -> None:
    if association.schema is not None:
        subject = str(association.subject)
        problems = catalog.check(subject, association.schema.definition, None, normalize=association.normalize)
        if problems:
            raise Incompatible(subject, problems)


def _latest(associations: Sequence[Association]) -> list[Association]:
    """The associations of the resource that was written last, because a name may have belonged to several."""
    if not associations:
        return []
    last = max(associations, key=lambda each: (each.updated_ms or -1, each.created_ms or -1, each.resource_id))
    return [each for each in associations if each.resource_id == last.resource_id]


def made(checked: Checked) -> list[Association]:
    """The associations to write."""
    return [_association_of(checked.request, each, checked.before.get(each.kind)) for each in checked.changed]


def _association_of(request: Request, association: RequestedAssociation, before: Association | None) -> Association:
    if before is None:
        resource = Resource(request.name, request.namespace, request.type, association.kind)
        return Association(
            str(association.subject),
            str(uuid.uuid4()),
            resource,
            str(request.id),
            association.lifecycle or WEAK,
            association.frozen is True,
        )
    return dataclasses.replace(
        before,
        lifecycle=association.lifecycle or before.lifecycle,
        frozen=before.frozen if association.frozen is None else association.frozen,
    )


def check_deletion(catalog: Catalog, doomed: Sequence[Association], *, cascade: bool) -> None:
    """Frozen associations can be deleted only together with their subjects."""
    for each in doomed:
        _check_writable(catalog, each.subject)
        if not cascade and each.frozen:
            raise AssociationFrozen(each.kind, each.subject)
