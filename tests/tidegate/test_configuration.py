"""The configuration of one platform is written as files and applied to another."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.client import Reference, RegistryClient
from tests.support.platform import RunningPlatform, running_platform, tidegate, until

ITEM = '{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}]}'
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "item", "type": "Item"}]}'
EVENT = {
    "type": "record",
    "name": "Parcel_Sent__e",
    "fields": [
        {"name": "CreatedDate", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "CreatedById", "type": "string"},
        {"name": "Weight__c", "type": ["null", "double"], "default": None},
    ],
}


def configure(platform: RunningPlatform, folder: Path) -> None:
    where = ("--data", platform.data)
    tidegate("topics", "create", "orders", "--partitions", "3", "--config", "retention.ms=5000", *where)
    with RegistryClient(platform.addresses["registry"]) as client:
        client.register("unused", '"string"')
        client.delete_subject("unused")
        client.register("order-value", '"string"')
        client.set_compatibility("NONE", "order-value")
        client.register("item", ITEM)
        client.register("order-value", ORDER, references=[Reference("Item", "item", 1)])
    (folder / "Parcel_Sent__e.avsc").write_text(json.dumps(EVENT))
    tidegate("events", "define", folder / "Parcel_Sent__e.avsc", "--retention-hours", "48", *where)
    (folder / "Plain__e.avsc").write_text(json.dumps(EVENT | {"name": "Plain__e"}))
    tidegate("events", "define", folder / "Plain__e.avsc", *where)
    tidegate("events", "channels", "add", "Heavy__chn", "Parcel_Sent__e", "--filter", "Weight__c > 5", *where)
    tidegate("events", "subscriptions", "create", "Warehouse", "Parcel_Sent__e", *where)
    tidegate("quotas", "set", "--client-id", "batch", "--produce", "1000", *where)
    platform.create("lines", connector__class="FileStreamSink", topics="orders", file=folder / "out.txt")
    tidegate("connectors", "stop", "lines", *where)
    until(
        lambda: '"STOPPED"' in tidegate("connectors", "status", "lines", "--json", *where).stdout, "a stopped connector"
    )


def contents(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))}


@pytest.mark.proof
def test_what_is_configured_moves_to_another_platform(tmp_path: Path) -> None:
    backup, copy = tmp_path / "backup", tmp_path / "copy"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with running_platform(tmp_path / "first") as platform:
        configure(platform, tmp_path)
        tidegate("export", backup, "--data", platform.data)
    exported = contents(backup)
    assert {"topics/orders.json", "schemas/item.json", "events/Parcel_Sent__e.json", "channels/Heavy__chn.json"} <= set(
        exported
    )
    assert {"subscriptions/Warehouse.json", "connectors/lines.json", "events/Plain__e.json"} <= set(exported)
    assert "topics/Plain__e.json" not in exported
    assert exported["topics/orders.json"] == {"name": "orders", "partitions": 3, "configs": {"retention.ms": "5000"}}
    assert [version["id"] for version in exported["schemas/order-value.json"]["versions"]] == [1, 3]
    assert exported["connectors/lines.json"]["initial_state"] == "STOPPED"
    assert all(path.stat().st_mode & 0o077 == 0 for path in backup.rglob("*.json")), "they may hold secrets"
    with running_platform(tmp_path / "second") as platform:
        where = ("--data", platform.data)
        dry = json.loads(tidegate("import", backup, "--json", *where).stdout)
        assert {change["name"] for change in dry["changes"]} >= {
            "orders",
            "item",
            "order-value",
            "Parcel_Sent__e",
            "lines",
        }
        assert json.loads(tidegate("schemas", "list", "--prefix", "order", "--json", *where).stdout) == []
        assert tidegate("import", backup, "--execute", *where).stdout.splitlines()[-1] == "done"
        assert tidegate("import", backup, *where).stdout == "everything is as in the files\n"
        tidegate("export", copy, *where)
        assert contents(copy) == exported
        assert '"STOPPED"' in tidegate("connectors", "status", "lines", "--json", *where).stdout
        tidegate("events", "publish", "Parcel_Sent__e", "Weight__c=7", *where)
        first = tidegate("events", "subscribe", "Parcel_Sent__e", "--replay", "-2", "-n", "1", *where).stdout
        event = json.loads(first)
        assert event["replayId"] > 0, "as of an event that was defined here"
        assert abs(datetime.fromisoformat(event["CreatedDate"]) - datetime.now(UTC)) < timedelta(minutes=10)
        refused_schema(backup, where)


def refused_schema(backup: Path, where: tuple[Any, ...]) -> None:
    """A version that is another one there is told, and the rest goes on."""
    path = backup / "schemas" / "item.json"
    document = json.loads(path.read_text())
    document["versions"][0]["schema"] = '"int"'
    path.write_text(json.dumps(document))
    topic = backup / "topics" / "more.json"
    topic.write_text(json.dumps({"name": "more", "partitions": 1, "configs": {}}))
    done = tidegate("import", backup, "--execute", *where, check=False)
    assert done.returncode == 1
    assert "cannot: version 1 differs from what is registered" in done.stdout
    assert "more" in tidegate("topics", "list", *where).stdout
