"""Topics, access control entries and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tidegate.clients.topics import is_internal, with_admin
from tidegate.configuration.parts import Document

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig

__all__ = ["Acls", "Quotas", "Topics"]


_OF_EVENTS: Final = ("__e", "__chn", "ChangeEvents")
"""The ends of names of topics that the events service makes itself, and begins in its own way."""


class Topics:
    """Topics with their partitions and the configs that are not the default, but for those of events and channels."""

    folder = "topics"

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def read(self) -> dict[str, Document]:
        async def ask(admin: Admin) -> dict[str, Document]:
            topics = await admin.list_topics()
            names = [name for name in topics if not is_internal(name) and not name.endswith(_OF_EVENTS)]
            described = await admin.describe_topics(names)
            return {
                name: {
                    "name": name,
                    "partitions": len(described[name].partitions),
                    "configs": {
                        entry.name: entry.value
                        for entry in (await admin.describe_configs(name)).values()
                        if entry.source == "DYNAMIC_TOPIC_CONFIG"
                    },
                }
                for name in names
            }

        return with_admin(self._config, ask)

    def difference(self, document: Document, existing: Document | None) -> str:
        if existing is None:
            return f"create with {document['partitions']} partitions"
        changes = [
            f"{key}={value}" for key, value in document["configs"].items() if existing["configs"].get(key) != value
        ]
        if document["partitions"] > existing["partitions"]:
            changes.append(f"grow from {existing['partitions']} to {document['partitions']} partitions")
        return ", ".join(changes)

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        from broker.client import NewTopic

        async def change(admin: Admin) -> None:
            for name, (document, existing) in documents.items():
                if existing is None:
                    await admin.create_topics([NewTopic(name, document["partitions"], configs=document["configs"])])
                    continue
                await admin.alter_configs(name, document["configs"])
                if document["partitions"] > existing["partitions"]:
                    await admin.create_partitions(name, document["partitions"])

        with_admin(self._config, change)


class Acls:
    """Access control entries; none where the broker has no authorizer."""

    folder = "acls"

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def read(self) -> dict[str, Document]:
        from dataclasses import asdict

        from broker.client import AclFilter
        from broker.client.errors import SecurityDisabled

        try:
            bindings = with_admin(self._config, lambda admin: admin.describe_acls(AclFilter()))
        except SecurityDisabled:
            return {}
        entries = [asdict(binding) for binding in bindings]
        return {" ".join(str(value) for value in entry.values()): entry for entry in entries}

    def difference(self, document: Document, existing: Document | None) -> str:
        return "" if existing is not None else "create"

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        from broker.client import AclBinding

        bindings = [AclBinding(**document) for document, _ in documents.values()]
        for _, error in with_admin(self._config, lambda admin: admin.create_acls(bindings)):
            raise error


class Quotas:
    """Quotas of users, clients and addresses."""

    folder = "quotas"

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def read(self) -> dict[str, Document]:
        described = with_admin(self._config, lambda admin: admin.describe_quotas())
        return {
            " ".join(f"{kind} {name or 'default'}" for kind, name in sorted(quota.entity.items())): {
                "entity": dict(quota.entity),
                "values": dict(quota.values),
            }
            for quota in described
        }

    def difference(self, document: Document, existing: Document | None) -> str:
        before = {} if existing is None else existing["values"]
        return ", ".join(f"{key}={value:g}" for key, value in document["values"].items() if before.get(key) != value)

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        async def change(admin: Admin) -> None:
            for document, _ in documents.values():
                await admin.alter_quotas(document["entity"], document["values"])

        with_admin(self._config, change)
