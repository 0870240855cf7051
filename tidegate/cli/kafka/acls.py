"""``tidegate acls``: access control entries of any Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.topics import with_admin
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import AclBinding, AclFilter, Admin, Operation, PatternType, ResourceType

__all__ = ["acls"]

F = TypeVar("F", bound=Callable[..., Any])

_CLUSTER = "kafka-cluster"
"""The resource name of the cluster (``Resource.CLUSTER_NAME``)."""


@click.group()
def acls() -> None:
    """List, add and remove access control entries: who may do what with which topic or group."""


def resource_options(function: F) -> F:
    """``--topic``, ``--group``, ``--transactional-id``, ``--cluster`` and ``--prefixed``."""
    for option in (
        click.option("--prefixed", is_flag=True, help="The name is the beginning of names."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", metavar="NAME", help="A transactional id; * is every one."),
        click.option("--group", metavar="NAME", help="A group; * is every one."),
        click.option("--topic", metavar="NAME", help="A topic; * is every one."),
    ):
        function = option(function)
    return function


def _resource(
    topic: str | None, group: str | None, transactional_id: str | None, cluster: bool
) -> tuple[ResourceType, str] | None:
    """The resource that the options name; None if they name none."""
    from broker.client import ResourceType

    named = [
        (kind, name)
        for kind, name in (
            (ResourceType.TOPIC, topic),
            (ResourceType.GROUP, group),
            (ResourceType.TRANSACTIONAL_ID, transactional_id),
            (ResourceType.CLUSTER, _CLUSTER if cluster else None),
        )
        if name is not None
    ]
    if len(named) > 1:
        raise click.UsageError("give one of --topic, --group, --transactional-id and --cluster")
    return named[0] if named else None


def _pattern(prefixed: bool) -> PatternType:
    from broker.client import PatternType

    return PatternType.PREFIXED if prefixed else PatternType.LITERAL


def _operation(name: str) -> Operation:
    from broker.client import Operation

    names = [operation.name for operation in Operation if operation > Operation.ANY]
    wire = name.strip().upper().replace("-", "_")
    if wire not in names:
        known = ", ".join(known.lower() for known in names)
        raise click.UsageError(f"--operation {name!r} is none of {known}")
    return Operation[wire]


def _principal(name: str) -> str:
    return name if ":" in name else f"User:{name}"


@acls.command("list")
@resource_options
@click.option("--principal", metavar="USER", help="Only entries of this user.")
@kafka_options
@json_option
def list_acls(
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    cluster: bool,
    prefixed: bool,
    principal: str | None,
    as_json: bool,
    **where: Any,
) -> None:
    """List entries; with a resource those that apply to it, by its name, a prefix or *."""
    from broker.client import AclFilter, PatternType, ResourceType

    kind, name = _resource(topic, group, transactional_id, cluster) or (ResourceType.ANY, None)
    pattern = PatternType.PREFIXED if prefixed else PatternType.ANY if name is None else PatternType.MATCH
    chosen = AclFilter(kind, name, pattern, None if principal is None else _principal(principal))
    _print(with_admin(client_config(**where), lambda admin: admin.describe_acls(chosen)), as_json)


@acls.command()
@resource_options
@click.option("--allow", "allowed", metavar="USER", help="Whom to allow it; * is everybody.")
@click.option("--deny", "denied", metavar="USER", help="Whom to deny it.")
@click.option(
    "--operation", "operations", multiple=True, required=True, metavar="NAME", help="read, write, create, ..."
)
@click.option("--host", default="*", show_default=True, help="The address that clients come from.")
@kafka_options
@json_option
def add(
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    cluster: bool,
    prefixed: bool,
    allowed: str | None,
    denied: str | None,
    operations: tuple[str, ...],
    host: str,
    as_json: bool,
    **where: Any,
) -> None:
    """Add an entry for each operation.

    Example: tidegate acls add --allow billing --operation read --topic orders
    """
    from broker.client import AclBinding, Permission

    resource = _resource(topic, group, transactional_id, cluster)
    if resource is None:
        raise click.UsageError("give one of --topic, --group, --transactional-id and --cluster")
    principal = allowed or denied
    if principal is None or (allowed and denied):
        raise click.UsageError("give --allow USER or --deny USER")
    permission = Permission.ALLOW if allowed else Permission.DENY
    bindings = [
        AclBinding(*resource, _pattern(prefixed), _principal(principal), host, _operation(operation), permission)
        for operation in operations
    ]
    refused = with_admin(client_config(**where), lambda admin: admin.create_acls(bindings))
    if refused:
        raise UsageError("; ".join(f"{error}" for _, error in refused))
    _print(bindings, as_json)


@acls.command()
@resource_options
@click.option("--principal", metavar="USER", help="Only entries of this user.")
@click.option("--operation", metavar="NAME", help="Only entries for this operation.")
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@kafka_options
@json_option
def remove(
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    cluster: bool,
    prefixed: bool,
    principal: str | None,
    operation: str | None,
    execute: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Remove the entries of a resource with exactly this name or prefix, of a user, or both.

    Example: tidegate acls remove --topic orders --principal billing --execute
    """
    from broker.client import AclFilter, Operation, PatternType, ResourceType

    resource = _resource(topic, group, transactional_id, cluster)
    if resource is None and principal is None:
        raise click.UsageError("name a resource (--topic, ...), a user (--principal), or both")
    kind, name = resource or (ResourceType.ANY, None)
    chosen: AclFilter = AclFilter(
        kind,
        name,
        PatternType.ANY if name is None else _pattern(prefixed),
        None if principal is None else _principal(principal),
        operation=Operation.ANY if operation is None else _operation(operation),
    )

    async def change(admin: Admin) -> list[AclBinding]:
        return await (admin.delete_acls([chosen]) if execute else admin.describe_acls(chosen))

    rows = with_admin(client_config(**where), change)
    _print(rows, as_json)
    if not as_json:
        click.echo(f"{len(rows)} removed" if execute else "nothing is changed: --execute does it")


def _print(bindings: list[AclBinding], as_json: bool) -> None:
    from broker.client import Operation, PatternType, Permission, ResourceType

    def name_of(codes: Any, code: int) -> str:
        try:
            return str(codes(code).name).lower()
        except ValueError:  # of a newer broker
            return str(code)

    rows = [
        {
            "resource": name_of(ResourceType, binding.resource_type),
            "name": binding.resource_name,
            "pattern": name_of(PatternType, binding.pattern_type),
            "principal": binding.principal,
            "host": binding.host,
            "operation": name_of(Operation, binding.operation),
            "permission": name_of(Permission, binding.permission),
        }
        for binding in bindings
    ]
    rows.sort(key=lambda row: tuple(row.values()))
    if as_json:
        print_json(rows)
    else:
        columns = ["resource", "name", "pattern", "principal", "host", "operation", "permission"]
        print_table(columns, [list(row.values()) for row in rows])
