"""Generates ``broker/protocol/messages``: one class per Kafka message for all its versions, from kio's classes per
version.

Run ``python -m broker.protocol.codegen`` after a change; it needs the development dependency ``kio``. The broker itself
never imports kio or this module.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib
import subprocess
import sys
import types
import typing
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["APIS", "generate", "main"]

APIS: Final = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "add_raft_voter",
    "alter_client_quotas",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "alter_share_group_offsets",
    "alter_user_scram_credentials",
    "api_versions",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "create_acls",
    "create_delegation_token",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_groups",
    "delete_records",
    "delete_share_group_offsets",
    "delete_share_group_state",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_delegation_token",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_quorum",
    "describe_share_group_offsets",
    "describe_topic_partitions",
    "describe_transactions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "end_txn",
    "expire_delegation_token",
    "find_coordinator",
    "get_telemetry_subscriptions",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "initialize_share_group_state",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "push_telemetry",
    "read_share_group_state",
    "read_share_group_state_summary",
    "remove_raft_voter",
    "renew_delegation_token",
    "sasl_authenticate",
    "sasl_handshake",
    "share_acknowledge",
    "share_fetch",
    "share_group_describe",
    "share_group_heartbeat",
    "streams_group_describe",
    "streams_group_heartbeat",
    "sync_group",
    "txn_offset_commit",
    "unregister_broker",
    "update_features",
    "write_share_group_state",
    "write_txn_markers",
)
"""The messages to generate; Produce and Fetch are hand-written."""

_FOLDER: Final = Path(__file__).with_name("messages")
_FIRST_LINE: Final = (
    "# Generated from kio {version}'s Kafka schema by `python -m broker.protocol.codegen`. Do not edit."
)
_TYPES: Final = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "records": "bytes"}
_UNITS: Final = {"timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64", "error_code": "int16"}
_NEVER: Final = 1 << 15


@dataclass(slots=True)
class _Field:
    """The facts about one field, collected from all versions."""

    name: str
    kind: str
    array: bool
    tag: int | None
    default: Any
    versions: list[int] = field(default_factory=list)
    null_versions: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Class:
    name: str
    base: str
    fields: dict[str, _Field] = field(default_factory=dict)
    order: dict[str, set[str]] = field(default_factory=dict)
    """For each field the names of those before it in some version."""


def generate() -> dict[str, str]:
    """The text of every generated module by its file name."""
    from kio._version import __version__
    from kio.schema.index import api_key_map

    keys = {name: key for key, name in api_key_map.items()}
    first_line = _FIRST_LINE.format(version=__version__)
    texts = {f"{api}.py": _module(first_line, api, keys[api]) for api in APIS}
    texts["__init__.py"] = f'{first_line}\n"""One module per Kafka API: its request, its response, their parts."""\n'
    return {name: _formatted(text) for name, text in texts.items()}


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _module(first_line: str, api: str, api_key: int) -> str:
    from kio.schema.index import schema_name_map

    classes: dict[str, _Class] = {}
    flexible: list[int] = []
    public: dict[str, str] = {}
    for version, paths in sorted(schema_name_map[api].items()):
        for kind, path in paths.items():
            if kind.name not in ("request", "response"):
                continue
            module, _, name = path.replace(":", ".").rpartition(".")
            top = getattr(importlib.import_module(module), name)
            public[kind.name] = name
            if top.__flexible__:
                flexible.append(version)
            _collect(top, version, classes, kind.name.capitalize(), kind.name)
    _check(api, classes, public)
    constants = f"    API_KEY = {api_key}\n    FLEXIBLE_SINCE = {min(flexible, default=_NEVER)}\n"
    body = "\n\n".join(
        _class_text(c, "" if c.base.startswith("Message") else constants) for c in _nested_first(classes)
    )
    needs = [text for text in ("Field", "Message", "Request", "Response") if f"{text}(" in body or f"({text})" in body]
    lines = [first_line, "", "from __future__ import annotations", ""]
    if "uuid.UUID" in body:
        lines.append("import uuid")
    if "Sequence[" in body:
        lines.append("from collections.abc import Sequence")
    lines += ["from typing import ClassVar", ""]
    if "ZERO_UUID" in body:
        lines.append("from broker.protocol.primitives import ZERO_UUID")
    lines.append(f"from broker.protocol.schema import {', '.join(needs)}")
    names = ", ".join(f'"{name}"' for name in sorted(classes))
    return "\n".join(lines) + f"\n\n__all__ = [{names}]\n\n\n{body}\n"


def _check(api: str, classes: dict[str, _Class], public: dict[str, str]) -> None:
    for made in classes.values():
        for f in made.fields.values():
            versions = f.versions
            if versions != list(range(versions[0], versions[-1] + 1)):
                raise ValueError(f"{api}: {made.name}.{f.name} comes and goes: {versions}")
    if set(public) != {"request", "response"}:
        raise ValueError(f"{api}: found only {public}")


def _collect(cls: Any, version: int, classes: dict[str, _Class], base: str, prefix: str) -> str:
    """Add the fields of one version's class, nested classes first. Returns the class's name."""
    before: list[str] = []
    result: list[tuple[str, dataclasses.Field[Any]]] = []
    for declared in dataclasses.fields(cls):
        inner, _, _ = _shape(declared.type)
        kind = _collect(inner, version, classes, "Message", prefix) if dataclasses.is_dataclass(inner) else ""
        result.append((kind, declared))
    name: str = cls.__name__
    # A name used in both request and response (Cursor) means two structures: the response's gets a prefix.
    owner = classes.get(name)
    if base == "Message" and owner is not None and owner.base.partition(" ")[2] not in ("", prefix):
        name = f"{prefix.capitalize()}{name}"
    made = classes.setdefault(name, _Class(name, base if base != "Message" else f"Message {prefix}"))
    for kind, declared in result:
        _add_field(made, kind, declared, version, before)
    return name


def _add_field(made: _Class, kind: str, declared: dataclasses.Field[Any], version: int, before: list[str]) -> None:
    _, array, nullable = _shape(declared.type)
    wire = declared.metadata.get("kafka_type", "")
    name = declared.name
    if wire.startswith(("timedelta", "datetime")):
        name += "_ms"
    kind = kind or _UNITS.get(wire, wire)
    f = made.fields.setdefault(name, _Field(name, kind, array, declared.metadata.get("tag"), None))
    if (f.kind, f.array) != (kind, array):
        raise ValueError(f"{made.name}.{name} changes its type in v{version}")
    if f.versions and f.versions[-1] == version:
        return  # a structure that the message contains several times
    f.versions.append(version)
    if nullable and kind != "uuid":
        f.null_versions.append(version)
    f.default = _default(declared, kind, array)
    made.order.setdefault(name, set()).update(before)
    before.append(name)


def _shape(annotation: Any) -> tuple[Any, bool, bool]:
    """(inner type, is an array, may be null) of a kio annotation."""
    nullable = False
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        members = [a for a in typing.get_args(annotation) if a is not types.NoneType]
        annotation, nullable = members[0], True
    if typing.get_origin(annotation) is tuple:
        inner, _, _ = _shape(typing.get_args(annotation)[0])
        return inner, True, nullable
    return annotation, False, nullable


def _default(declared: dataclasses.Field[Any], kind: str, array: bool) -> str:
    """The default as Python text."""
    value = declared.default
    if array:
        return "None" if value is None else "()"
    if kind == "uuid":
        return "ZERO_UUID"
    if value is dataclasses.MISSING:
        plain = {"string": '""', "bytes": 'b""', "records": 'b""', "bool": "False", "float64": "0.0"}
        return plain.get(kind, "0" if kind in ("int8", "int16", "uint16", "int32", "int64") else "STRUCT")
    if isinstance(value, dt.timedelta):
        return str(value // dt.timedelta(milliseconds=1))
    if dataclasses.is_dataclass(value):
        return "STRUCT"
    if value is None:
        # kio maps Kafka's -1 of a time to None.
        return "-1" if kind.startswith("int") else "None"
    if isinstance(value, bool | str | bytes | float):
        return repr(value) if not isinstance(value, str) else '"' + value + '"'
    return "ZERO_UUID" if isinstance(value, uuid.UUID) else str(int(value))


def _nested_first(classes: dict[str, _Class]) -> list[_Class]:
    left, result = dict(classes), list[_Class]()
    while left:
        name = next(n for n, c in left.items() if not any(f.kind in left for f in c.fields.values()))
        result.append(left.pop(name))
    return result


def _ordered(made: _Class) -> list[_Field]:
    """Kafka's order of the fields, consistent with every version."""
    left, result = dict(made.order), list[_Field]()
    while left:
        name = next((n for n, before in left.items() if not before & left.keys()), None)
        if name is None:
            raise ValueError(f"{made.name}: versions order {sorted(left)} differently")
        result.append(made.fields[name])
        del left[name]
    return result


def _class_text(made: _Class, constants: str) -> str:
    fields = _ordered(made)
    last = max((f.versions[-1] for f in fields), default=0)
    slots = "".join(f'"{f.name}", ' for f in fields)
    lines = [f"class {made.name}({made.base.partition(' ')[0]}):", f"    __slots__ = ({slots})", constants.rstrip("\n")]
    lines.append("    FIELDS: ClassVar = (")
    lines += [f"        {_table_row(f, last)}," for f in fields]
    lines += ["    )", "", "    def __init__(self" + (", *" if fields else "")]
    for f in fields:
        default = "None" if f.default == "STRUCT" else f.default
        lines.append(f"        , {f.name}: {_annotation(f)} = {default}")
    lines.append("    ) -> None:")
    for f in fields:
        struct_default = f.default == "STRUCT" and not f.null_versions
        value = f"{f.name} if {f.name} is not None else {f.kind}()" if struct_default else f.name
        lines.append(f"        self.{f.name} = {value}")
    if not fields:
        lines.append("        pass")
    return "\n".join(line for line in lines if line) + "\n"


def _table_row(f: _Field, last: int) -> str:
    primitive = f.kind in ("uuid", *_TYPES) or f.kind.startswith(("int", "uint"))
    parts = [f'name="{f.name}"', f'kind="{f.kind}"' if primitive else f"kind={f.kind}"]
    if f.array:
        parts.append("array=True")
    if f.versions[0]:
        parts.append(f"since={f.versions[0]}")
    if f.versions[-1] < last:
        parts.append(f"until={f.versions[-1]}")
    if f.null_versions:
        parts.append(f"null_since={f.null_versions[0]}")
    if f.tag is not None:
        parts.append(f"tag={f.tag}")
    return f"Field({', '.join(parts)})"


def _annotation(f: _Field) -> str:
    if f.kind.startswith(("int", "uint")):
        inner = "int"
    else:
        inner = "uuid.UUID" if f.kind == "uuid" else _TYPES.get(f.kind, f.kind)
    if f.array:
        inner = f"Sequence[{inner}]"
    return f"{inner} | None" if f.null_versions or f.default in ("None", "STRUCT") else inner


def main() -> None:
    """Write the modules, and delete those of APIs that are no longer in the list."""
    _FOLDER.mkdir(exist_ok=True)
    texts = generate()
    for path in _FOLDER.glob("*.py"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (_FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
