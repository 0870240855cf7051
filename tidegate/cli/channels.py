"""``tidegate events channels`` and ``subscriptions``: streams of several events, and positions that the service keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.cli.events_client import client_of, events_options
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from events.client import EventsClient

__all__ = ["channels", "subscriptions"]

_CHANNEL: Final = "PlatformEventChannel"
_MEMBER: Final = "PlatformEventChannelMember"
_SUBSCRIPTION: Final = "ManagedEventSubscription"
_STATES: Final = {"RUN": "running", "STOP": "stopped"}


@click.group()
def channels() -> None:
    """Channels carry several events in one stream, each with its filter."""


@channels.command("list")
@events_options
@json_option
def list_channels(as_json: bool, **where: Any) -> None:
    """List channels with the events in them and their filters."""
    client = client_of(**where)
    members: dict[str, list[dict[str, Any]]] = {record["FullName"]: [] for record in client.tooling_records(_CHANNEL)}
    for member in client.tooling_records(_MEMBER):
        metadata = member["Metadata"]
        selected = {"event": metadata["selectedEntity"], "filter": metadata.get("filterExpression") or None}
        members.setdefault(metadata["eventChannel"], []).append(selected)
    if as_json:
        print_json([{"channel": name, "events": events} for name, events in sorted(members.items())])
        return
    rows = [
        [name, event["event"], event["filter"]]
        for name, events in sorted(members.items())
        for event in events or [{"event": None, "filter": None}]
    ]
    print_table(["channel", "event", "filter"], rows)


@channels.command("add")
@click.argument("channel")
@click.argument("events", nargs=-1, required=True, metavar="EVENT...")
@click.option(
    "--filter", "expression", metavar="EXPRESSION", help="Only events for which this holds, such as Amount__c > 10."
)
@click.option("--label", help="The label of a new channel.")
@events_options
@done_option
def add(channel: str, events: tuple[str, ...], expression: str | None, label: str | None, **where: Any) -> None:
    """Put events into a channel, which is created if it is not there. The filter of an event in it is replaced.

    Example: tidegate events channels add Big_Orders__chn Order_Shipped__e --filter "Amount__c > 1000"
    """
    client = client_of(**where)
    known = {record["FullName"].lower() for record in client.tooling_records(_CHANNEL)}
    if channel.lower() not in known and channel.lower() != "changeevents":
        kinds = {"event" if event.lower().endswith("__e") else "data" for event in events}
        if len(kinds) > 1:
            raise UsageError("a channel carries platform events (X__e) or change events (XChangeEvent), not both")
        metadata = {"channelType": kinds.pop(), "label": label or channel.removesuffix("__chn")}
        client.define_tooling_record(_CHANNEL, channel, metadata)
        done(f"channel {channel} is created", channel=channel, action="created")
    for event in events:
        metadata = {"eventChannel": channel, "selectedEntity": event}
        if expression is not None:
            metadata["filterExpression"] = expression
        name = _member_of(client, channel, event) or re.sub(r"_+", "_", f"{channel}_{event}")
        client.define_tooling_record(_MEMBER, name, metadata)
        text = f"{event} is in {channel}" + (f", where {expression}" if expression else "")
        done(text, channel=channel, action="added", event=event, filter=expression)


@channels.command("remove")
@click.argument("channel")
@click.argument("events", nargs=-1, required=True, metavar="EVENT...")
@events_options
@done_option
def remove(channel: str, events: tuple[str, ...], **where: Any) -> None:
    """Take events out of a channel. Events that it carried stay for its retention."""
    client = client_of(**where)
    for event in events:
        name = _member_of(client, channel, event)
        if name is None:
            raise UsageError(f"{event} is not in {channel}; `tidegate events channels list` shows what is")
        client.delete_tooling_record(_MEMBER, name)
        done(f"{event} is no longer in {channel}", channel=channel, action="removed", event=event)


@channels.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="CHANNEL...")
@events_options
@done_option
def delete_channels(names: tuple[str, ...], **where: Any) -> None:
    """Delete channels. Their events stay in their topics."""
    client = client_of(**where)
    for name in names:
        for member in client.tooling_records(_MEMBER):
            if member["Metadata"]["eventChannel"].lower() == name.lower():
                client.delete_tooling_record(_MEMBER, member["FullName"])
        client.delete_tooling_record(_CHANNEL, name)
        done(f"channel {name} is deleted", channel=name, action="deleted")


def _member_of(client: EventsClient, channel: str, event: str) -> str | None:
    """The name of the record that puts an event into a channel."""
    wanted = {"eventChannel": channel.lower(), "selectedEntity": event.lower()}
    for member in client.tooling_records(_MEMBER):
        if all(str(member["Metadata"].get(key, "")).lower() == value for key, value in wanted.items()):
            return str(member["FullName"])
    return None


@click.group()
def subscriptions() -> None:
    """Managed subscriptions: the service keeps their position, subscribers commit what they have done."""


@subscriptions.command("list")
@events_options
@json_option
def list_subscriptions(as_json: bool, **where: Any) -> None:
    """List managed subscriptions with their topic and state."""
    rows = [
        {
            "subscription": record["FullName"],
            "topic": record["Metadata"]["topicName"],
            "state": _STATES.get(record["Metadata"]["state"], record["Metadata"]["state"]),
            "starts": str(record["Metadata"].get("defaultReplay", "")).lower(),
            "shared": bool(record["Metadata"].get("shared")),
        }
        for record in client_of(**where).tooling_records(_SUBSCRIPTION)
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(["subscription", "topic", "state", "starts", "shared"], [list(row.values()) for row in rows])


@subscriptions.command("create")
@click.argument("name")
@click.argument("topic")
@click.option(
    "--from",
    "start",
    type=click.Choice(["latest", "earliest"]),
    default="latest",
    show_default=True,
    help="Where a subscriber without a position starts.",
)
@click.option("--shared", is_flag=True, help="Each event goes to one of its subscribers.")
@events_options
@done_option
def create(name: str, topic: str, start: str, shared: bool, **where: Any) -> None:
    """Create a managed subscription to an event or channel, such as Order_Shipped__e or /event/Big_Orders__chn.

    Example: tidegate events subscriptions create Warehouse Order_Shipped__e --from earliest
    """
    path = (
        topic if topic.startswith("/") else f"/event/{topic}" if topic.endswith(("__e", "__chn")) else f"/data/{topic}"
    )
    replay = start.upper()
    metadata: dict[str, Any] = {
        "label": name,
        "topicName": path,
        "defaultReplay": replay,
        "errorRecoveryReplay": replay,
        "state": "RUN",
    }
    if shared:
        metadata["shared"] = True
    client = client_of(**where)
    if any(record["FullName"].lower() == name.lower() for record in client.tooling_records(_SUBSCRIPTION)):
        raise UsageError(f"there is a subscription {name}; delete it first, or stop and start it")
    client.define_tooling_record(_SUBSCRIPTION, name, metadata)
    done(f"subscription {name} to {path} is created", subscription=name, action="created", topic=path)


@subscriptions.command("stop")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@events_options
@done_option
def stop(names: tuple[str, ...], **where: Any) -> None:
    """Stop subscriptions: subscribers get nothing until they are started; the position stays."""
    _set_state(client_of(**where), names, "STOP")


@subscriptions.command("start")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@events_options
@done_option
def start(names: tuple[str, ...], **where: Any) -> None:
    """Start stopped subscriptions where they stood."""
    _set_state(client_of(**where), names, "RUN")


@subscriptions.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@events_options
@done_option
def delete_subscriptions(names: tuple[str, ...], **where: Any) -> None:
    """Delete subscriptions with their positions."""
    client = client_of(**where)
    for name in names:
        client.delete_tooling_record(_SUBSCRIPTION, name)
        done(f"subscription {name} is deleted", subscription=name, action="deleted")


def _set_state(client: EventsClient, names: tuple[str, ...], state: str) -> None:
    known: Mapping[str, dict[str, Any]] = {
        record["FullName"].lower(): record for record in client.tooling_records(_SUBSCRIPTION)
    }
    for name in names:
        record = known.get(name.lower())
        if record is None:
            raise UsageError(
                f"there is no subscription {name}; there are: {', '.join(r['FullName'] for r in known.values()) or 'none'}"
            )
        client.define_tooling_record(_SUBSCRIPTION, record["FullName"], {**record["Metadata"], "state": state})
        full_name = record["FullName"]
        done(f"subscription {full_name} is {_STATES[state]}", subscription=full_name, action=_STATES[state])
