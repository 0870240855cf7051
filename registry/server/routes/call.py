"""A request for handlers: path and query parsed, contexts and aliases resolved, the body read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from registry.domain.registry import Registry, parse_version
from registry.errors import SchemaNotFound, Unprocessable
from registry.model.records import SchemaVersion
from registry.model.subjects import ANY_CONTEXT, bare_context, context_of, normalize, within
from registry.server.routes.query import LIMIT, OFFSET, Query
from registry.server.security.access import View
from tidegate.kit.http import InvalidBody

__all__ = ["Call"]

T = TypeVar("T")

_INT: Final = range(-(1 << 31), 1 << 31)


class Call:
    """One request. ``context`` is the prefix for subjects from ``/contexts/{context}`` before the path, or None.

    ``view`` decides which subjects the user may see; None permits all.
    """

    __slots__ = ("_query", "body", "context", "params", "registry", "view")

    def __init__(
        self,
        registry: Registry,
        params: Mapping[str, str],
        query: bytes,
        body: bytes,
        context: str | None,
        view: View | None,
    ) -> None:
        self.registry = registry
        self.params = params
        self.body = body
        self.context = context
        self.view = view
        text = query.decode("ascii", "replace")
        self._query = parse_qs(text, keep_blank_values=True, max_num_fields=1000) if text else {}

    # -- path

    @property
    def subject(self) -> str:
        """The subject of the path, normalized, with its context and its alias resolved."""
        named = self.settings_scope
        subject = self.registry.catalog.unaliased(named)
        if self.view is not None and subject != named:
            self.view.require(subject)
        return subject

    @property
    def settings_scope(self) -> str:
        """The subject of the path for settings: under its own name, even if that is an alias."""
        return normalize(self._qualified(self.params["subject"]))

    def _qualified(self, name: str) -> str:
        if not self.context or name.startswith((":.", ANY_CONTEXT)):
            return name
        return self.context + name

    @property
    def version(self) -> int:
        """The version of the path, ``catalog.LATEST`` for ``latest`` and ``-1``; raises InvalidVersion."""
        return parse_version(self.params["version"])

    @property
    def id(self) -> int:
        """The schema id of the path. A path without a number is not part of this API."""
        return self._integer(self.params["id"])

    # -- query

    def flag(self, query: Query) -> bool:
        return self.text(query).lower() == "true"

    def text(self, query: Query) -> str:
        values = self._query.get(query.name)
        return values[0] if values else ""

    def texts(self, query: Query) -> list[str]:
        return self._query.get(query.name, [])

    def number(self, query: Query) -> int:
        values = self._query.get(query.name, [""])
        if len(values) > 1:
            raise HTTPException(404)  # several values, treated like an invalid number
        return int(query.default) if not values[0] else self._integer(values[0])

    @staticmethod
    def _integer(text: str) -> int:
        digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
        if digits.isascii() and digits.isdigit() and len(digits) <= 20 and int(text) in _INT:
            return int(text)
        raise HTTPException(404)

    def subject_query(self, query: Query) -> str:
        """A subject in the query, with its context and its alias resolved; empty if there is none."""
        name = self._qualified(self.text(query))
        return self.registry.catalog.unaliased(normalize(name)) if name else ""

    def prefix(self, query: Query, default: str) -> str:
        """A prefix of subjects. Inside a context it is a prefix in that context."""
        if self.context is not None:
            return self._qualified(self.text(query))
        return self._query[query.name][0] if query.name in self._query else default

    def page(self, items: Sequence[T], most: int | None = None) -> list[T]:
        """The items selected by ``offset`` and ``limit``, at most ``most``."""
        offset, limit = max(self.number(OFFSET), 0), self.number(LIMIT)
        if limit <= 0 or (most is not None and limit > most):
            return list(items[offset:] if most is None else items[offset : offset + most])
        return list(items[offset : offset + limit])

    def shown(self, subjects: list[str]) -> list[str]:
        """The subjects that the user may see."""
        return subjects if self.view is None else [name for name in subjects if self.view(name)]

    def permitted(self, version: SchemaVersion) -> SchemaVersion:
        """Check the right to a version found under another subject, for example the same name in another context."""
        if self.view is not None and version.subject != self.settings_scope:
            self.view.require(version.subject)
        return version

    def visible(self, version: SchemaVersion) -> SchemaVersion:
        """The same schema under a subject that the user may see. Raises SchemaNotFound if there is none."""
        if self.view is None or self.view(version.subject):
            return version
        context = bare_context(context_of(version.subject))
        return self.all_visible(self.registry.catalog.with_id(version.id, context, deleted=True))[0]

    def all_visible(self, versions: list[SchemaVersion]) -> list[SchemaVersion]:
        """The versions with one id that the user may see.

        Raises SchemaNotFound if there are some but the user may see none.
        """
        seen = versions if self.view is None else [each for each in versions if self.view(each.subject)]
        if versions and not seen:
            raise SchemaNotFound(versions[0].id)
        return seen

    # -- body

    def json(self) -> dict[str, Any]:
        """The JSON object in the body. Raises a 400, or a 422 if there is none."""
        if not self.body.strip():
            raise Unprocessable("The request body may not be null")
        try:
            value = json.loads(self.body)
        except json.JSONDecodeError as error:
            raise InvalidBody(f"The request body is not valid JSON: {error}") from error
        except (UnicodeDecodeError, RecursionError) as error:
            raise InvalidBody("The request body is not valid JSON: it is not UTF-8 or is nested too deep") from error
        except ValueError as error:  # Python limits the digits it converts
            raise InvalidBody(
                "The request body is not readable JSON: a number in it has thousands of digits"
            ) from error
        if value is None:
            raise Unprocessable("The request body may not be null")
        if not isinstance(value, dict):
            raise InvalidBody("The request body must be a JSON object")
        if self.view is not None:
            self._require_references(value.get("references"), self.view)
        return value

    def _require_references(self, references: Any, view: View) -> None:
        """A client that refers to a schema can read it, so the user needs the right to read it."""
        named = (
            [item.get("subject") for item in references if isinstance(item, dict)]
            if isinstance(references, list)
            else []
        )
        for name in named:
            if isinstance(name, str):
                subject = within(self.settings_scope, name)
                view.require(subject, "Read")
                view.require(self.registry.catalog.unaliased(subject), "Read")
