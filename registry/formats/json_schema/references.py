"""Resolves ``$ref``: documents by URI, including the registry's own references. Nothing is fetched from a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from registry.formats.json_schema.model import ReferenceSchema, Schema, Target

if TYPE_CHECKING:
    from referencing import Registry
    from referencing._core import Resolver

__all__ = ["References", "SchemaError", "bridged", "draft_of"]


class SchemaError(ValueError):
    """The JSON is not a JSON Schema; the message says where and why."""


_DRAFTS: Final[Mapping[str, str]] = {
    "json-schema.org/draft-04/schema": "http://json-schema.org/draft-04/schema#",
    "json-schema.org/draft-06/schema": "http://json-schema.org/draft-06/schema#",
    "json-schema.org/draft-07/schema": "http://json-schema.org/draft-07/schema#",
    "json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
}
DRAFT_7: Final = _DRAFTS["json-schema.org/draft-07/schema"]
_BASE: Final = "mem://input"


def draft_of(value: Any) -> str:
    """The URI of a schema's draft; draft 7 if it names none or an unknown one."""
    said = value.get("$schema") if isinstance(value, dict) else None
    if not isinstance(said, str):
        return DRAFT_7
    return _DRAFTS.get(said.removeprefix("http://").removeprefix("https://").removesuffix("#"), DRAFT_7)


def bridged(document: Any) -> Any:
    """The document with its ``definitions`` also in ``$defs``, because Confluent resolves ``#/$defs/x`` in both."""
    if not isinstance(document, dict) or not isinstance(document.get("definitions"), dict):
        return document
    known = document.get("$defs", {})
    return {**document, "$defs": {**document["definitions"], **known}} if isinstance(known, dict) else document


def _is_uri(value: Any) -> bool:
    """Whether a value can be resolved against another URI, and others against it."""
    try:
        urljoin(_BASE, value)
        urljoin(value, "x")
    except (ValueError, TypeError, AttributeError):
        return False
    return isinstance(value, str)


class References:
    """Resolves the references of one schema. Each target is loaded once, however often it is referenced."""

    def __init__(self, document: Any, referenced: Mapping[str, Any], draft: str, *, modern: bool) -> None:
        from jsonschema_specifications import REGISTRY as METASCHEMAS
        from referencing.jsonschema import specification_with

        specification = specification_with(draft)
        # Drafts 4 to 7 resolve names against the schema's own id, later drafts against a base of Confluent's.
        keyword = "id" if "draft-04" in draft else "$id"
        id_ = document.get(keyword) if isinstance(document, dict) else None
        if id_ is not None and not _is_uri(id_):
            raise SchemaError(f"#/{keyword}: expected a URI, found {id_!r}")
        base = _BASE if modern else id_ or ""
        documents = {}
        for name, text in referenced.items():
            if not _is_uri(name):
                raise SchemaError(f"The name of a reference must be a URI, not {name!r}")
            resource = specification_with(draft_of(text)).create_resource(bridged(text))
            for uri in (name, urljoin(base, name)):
                documents[uri.removesuffix("#")] = resource
        registry: Registry[Any] = METASCHEMAS.with_resources(documents.items())
        root = specification.create_resource(document)
        own_base = urljoin(base, id_) if id_ else base
        registry = registry.with_resources([(base, root), (own_base, root)])
        self.resolver = registry.resolver(own_base)
        # The later drafts resolve a registry reference by its exact name from anywhere.
        self._by_name = dict.fromkeys(referenced, registry.resolver("")) if modern else {}
        self._targets: dict[int, Target] = {}
        # Keys are identities of parsed JSON, which is kept alive here, so that identities are not reused.
        self._keep_alive: list[Any] = []

    def within(self, resolver: Resolver[Any], value: dict[str, Any], id_keyword: str) -> Resolver[Any]:
        """The resolver for a schema inside the document, which may have its own id."""
        id_ = value.get(id_keyword)
        if not isinstance(id_, str) or id_.startswith("#"):
            return resolver
        if not _is_uri(id_):
            raise SchemaError(f"{id_keyword}: expected a URI, found {id_!r}")
        from referencing.jsonschema import DRAFT202012

        return resolver.in_subresource(DRAFT202012.create_resource({"$id": id_}))

    def reference(
        self, ref: str, resolver: Resolver[Any], where: str, load: Callable[[Any, Resolver[Any], str], Schema]
    ) -> ReferenceSchema:
        """A reference. ``load`` is called for its target, unless that is known."""
        from referencing.exceptions import Unresolvable

        try:
            schema = self._by_name.get(ref.partition("#")[0], resolver).lookup(ref)
        except (Unresolvable, ValueError, TypeError, AttributeError, KeyError) as error:
            raise SchemaError(
                f"{where}/$ref: nothing is found at {ref!r}; a schema in another document must be among the references"
            ) from error
        known = id(schema.contents) in self._targets
        target = self.target_of(schema.contents)
        if not known:
            target.schema = load(schema.contents, schema.resolver, ref)
        return ReferenceSchema(ref, target)

    def target_of(self, contents: Any) -> Target:
        """The target for a location in a document; the same object for the same location."""
        target = self._targets.get(id(contents))
        if target is None:
            self._keep_alive.append(contents)
            target = self._targets[id(contents)] = Target()
        return target
