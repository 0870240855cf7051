"""Managed subscriptions: Pub/Sub subscribers' positions, stored by the server (Salesforce's ManagedEventSubscription).

A position is the last replay id that its subscriber committed. It belongs to one incarnation of a topic: if the topic
was recreated, the position is stale whatever its number. One stream holds a subscription. A newer stream of the same
user, or of one who may change the subscription, takes it over, on any server; later commits of the older stream are
refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from events.access import Permission, User, long_id
from events.bus.bus import EARLIEST, LATEST, EventBus, Stale, Start
from events.errors import (
    InvalidMetadata,
    SubscriptionActive,
    SubscriptionDeleted,
    SubscriptionStopped,
    SubscriptionTakenOver,
    UnknownManagedSubscription,
)
from events.store.state import EventState

__all__ = ["ManagedSubscription", "ManagedSubscriptions", "SharedPosition"]

_DEFINITION: Final = "managed-subscription/"
_POSITION: Final = "managed-position/"
_HOLDER: Final = "managed-holder/"
_LEASE: Final = "managed-lease/"
_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")
_PRESETS: Final = {"LATEST": LATEST, "EARLIEST": EARLIEST}
_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ManagedSubscription:
    """A definition; ``topic_name`` is a channel such as ``/event/Order_Shipped__e``."""

    name: str
    topic_name: str
    label: str = ""
    default_replay: str = "LATEST"
    """Where a subscriber starts that has never committed."""
    error_recovery_replay: str = "LATEST"
    """Where it continues if its committed replay id is no longer valid."""
    state: str = "RUN"
    shared: bool = False
    """Tidegate's extension: several streams may hold it, and each event goes to one of them."""

    @property
    def id(self) -> str:
        number = int.from_bytes(hashlib.sha256(self.name.lower().encode()).digest()[:5]) % 10**10
        return long_id(f"18xTG{number:010d}")

    @property
    def topic(self) -> str:
        """The name of the event or channel itself."""
        return self.topic_name.rpartition("/")[2]

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as in the Tooling API."""
        return {
            "defaultReplay": self.default_replay,
            "errorRecoveryReplay": self.error_recovery_replay,
            "label": self.label,
            "state": self.state,
            "topicName": self.topic_name,
        } | ({"shared": True} if self.shared else {})


class SharedPosition(NamedTuple):
    """The progress of a shared subscription: every event before ``next`` is done except those in ``open``, which
    ascend.
    """

    next: int = 0
    open: tuple[int, ...] = ()


class _Holder(NamedTuple):
    """The stream that holds a subscription, and its user; empty if there is none."""

    stream: str = ""
    user: str = ""


class ManagedSubscriptions:
    """All managed subscriptions, in the servers' shared state. Names are case-insensitive."""

    def __init__(self, state: EventState, bus: EventBus) -> None:
        self._state, self._bus = state, bus

    async def all(self) -> list[ManagedSubscription]:
        return [ManagedSubscription(**value) for value in (await self._state.under(_DEFINITION)).values()]

    async def define(self, name: str, metadata: Mapping[str, Any]) -> ManagedSubscription:
        """Create or change a subscription; its position stays. Raises InvalidMetadata."""
        made = _parsed(name, metadata)
        stored = await self._state.get(_DEFINITION + name.lower())
        if stored is None and len(await self._state.under(_DEFINITION)) >= _MAX:
            raise InvalidMetadata(f"There are {_MAX} managed event subscriptions; more are not taken")
        if stored is not None and stored["topic_name"] != made.topic_name:
            raise InvalidMetadata(f"topicName of {name} is {stored['topic_name']} and cannot be changed")
        if stored is not None and stored["shared"] != made.shared:
            raise InvalidMetadata(f"shared of {name} cannot be changed; make another subscription")
        await self._state.put(
            _DEFINITION + name.lower(),
            {field: getattr(made, field) for field in ManagedSubscription.__dataclass_fields__},
        )
        return made

    async def delete(self, name: str) -> None:
        """Delete a subscription and its position."""
        for prefix in (_DEFINITION, _POSITION, _HOLDER, _LEASE):
            await self._state.put(prefix + name.lower(), None)

    async def find(self, *, subscription_id: str, name: str) -> ManagedSubscription:
        """A subscription by id or by developer name. Raises UnknownManagedSubscription."""
        if name:
            stored = await self._state.get(_DEFINITION + name.lower())
            subscription = None if stored is None else ManagedSubscription(**stored)
        else:
            every = await self.all()
            subscription = next(
                (candidate for candidate in every if subscription_id in (candidate.id, candidate.id[:15])), None
            )
        if subscription is None:
            raise UnknownManagedSubscription(
                name or subscription_id, by="developer.name" if name else "subscription.id"
            )
        return subscription

    async def start(self, subscription: ManagedSubscription) -> Start:
        """The start of its stream. Raises SubscriptionStopped if it is stopped."""
        if subscription.state != "RUN":
            raise SubscriptionStopped(subscription.name, subscription.state)
        return self._start(
            subscription,
            await self._state.get(_POSITION + subscription.name.lower()),
            await self._identity(subscription),
        )

    async def _identity(self, subscription: ManagedSubscription) -> str:
        return await self._bus.identity(subscription.topic)

    def _start(self, subscription: ManagedSubscription, stored: Mapping[str, Any] | None, identity: str) -> Start:
        if stored is None:
            return Start(_PRESETS[subscription.default_replay])
        if stored["topic"] != identity:
            return Start(_PRESETS[subscription.error_recovery_replay])
        # The position before a topic's first event is not a valid replay id: -1 has another meaning.
        replay_id = stored["replayId"] if stored["replayId"] >= 0 else EARLIEST
        return Start(replay_id, stale=Stale[subscription.error_recovery_replay])

    async def hold(self, name: str, holder: str, user: User) -> None:
        """Take the subscription over for a stream of this user.

        Raises SubscriptionActive if only another user may release it.
        """
        current_holder = await self._holder(name)
        if current_holder.user not in ("", user.id) and not user.may(Permission.CUSTOMIZE):
            raise SubscriptionActive(name)
        await self._state.put(_HOLDER + name.lower(), _Holder(holder, user.id)._asdict())

    async def give_up(self, name: str, holder: str) -> None:
        """Release the subscription, because the stream has ended."""
        if (await self._holder(name)).stream == holder:
            await self._state.put(_HOLDER + name.lower(), None)

    async def _holder(self, name: str) -> _Holder:
        holder = await self._state.get(_HOLDER + name.lower())
        if isinstance(holder, str):
            return _Holder(holder)  # an earlier version stored no user
        return _Holder() if holder is None else _Holder(**holder)

    async def check(self, name: str, holder: str) -> None:
        """Raise the reason why a holder's stream must end: deleted, stopped, or taken over by another."""
        try:
            subscription = await self.find(subscription_id="", name=name)
        except UnknownManagedSubscription:
            raise SubscriptionDeleted(name) from None
        if subscription.state != "RUN":
            raise SubscriptionStopped(subscription.name, subscription.state)
        if not subscription.shared and (await self._holder(name)).stream != holder:
            raise SubscriptionTakenOver(name)

    async def commit(self, name: str, holder: str, replay_id: int, identity: str) -> None:
        """Store a position in the topic with this identity. When this returns, the log has it."""
        await self.check(name, holder)
        await self._state.put(_POSITION + name.lower(), {"replayId": replay_id, "topic": identity})

    async def shared_start(self, subscription: ManagedSubscription) -> tuple[Start, SharedPosition]:
        """Where distribution starts, and the progress so far."""
        start = await self.start(subscription)
        stored = await self._state.get(_POSITION + subscription.name.lower())
        if stored is None or "next" not in stored or stored["topic"] != await self._identity(subscription):
            return start, SharedPosition()
        return start, SharedPosition(stored["next"], tuple(stored["open"]))

    async def keep_shared(self, name: str, position: SharedPosition, identity: str) -> None:
        """Store a subscription's progress in the topic with this identity."""
        kept = {"replayId": min((position.next, *position.open)) - 1, "next": position.next, "open": position.open}
        await self._state.put(_POSITION + name, kept | {"topic": identity})

    async def lease(self, name: str, server: str, now_ms: int, lasts_ms: int) -> bool:
        """Acquire or renew the right to distribute a shared subscription; False while another server has it."""
        lease_ = await self._state.get(_LEASE + name)
        if lease_ is not None and lease_["server"] != server and lease_["until"] > now_ms:
            return False
        await self._state.put(_LEASE + name, {"server": server, "until": now_ms + lasts_ms})
        now_held = await self._state.get(_LEASE + name)  # if two acquire it at once, the later one wins
        return now_held is not None and bool(now_held["server"] == server)

    async def release(self, name: str, server: str) -> None:
        lease_ = await self._state.get(_LEASE + name)
        if lease_ is not None and lease_["server"] == server:
            await self._state.put(_LEASE + name, None)

    def listening(self, name: str, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``listener`` on every change that may end a stream of this subscription."""
        keys = (_DEFINITION + name.lower(), _HOLDER + name.lower())
        return self._state.listening(lambda key: listener() if key in keys else None)


def _parsed(name: str, metadata: Mapping[str, Any]) -> ManagedSubscription:
    if not _NAME.fullmatch(name) or len(name) > 80:
        raise InvalidMetadata(
            f"FullName {name[:100]!r} must begin with a letter and have only letters, digits and single _"
        )
    topic = metadata.get("topicName")
    if not isinstance(topic, str) or not topic.startswith(("/event/", "/data/")):
        raise InvalidMetadata(f"topicName {str(topic)[:100]!r} must be a channel such as /event/Order_Shipped__e")
    known = {"topicName", "label", "defaultReplay", "errorRecoveryReplay", "state", "version", "shared"}
    if unknown := sorted(set(metadata) - known):
        raise InvalidMetadata(f"{unknown[0]!r} is no field of ManagedEventSubscription")
    choices = (("defaultReplay", tuple(_PRESETS)), ("errorRecoveryReplay", tuple(_PRESETS)), ("state", ("RUN", "STOP")))
    chosen = {}
    for field, allowed in choices:
        value = metadata.get(field) or allowed[0]
        if value not in allowed:
            raise InvalidMetadata(f"{field} is {str(value)[:50]!r}; it must be one of {', '.join(allowed)}")
        chosen[field] = value
    shared = metadata.get("shared") or False
    if not isinstance(shared, bool):
        raise InvalidMetadata(f"shared is {str(shared)[:50]!r}; it must be true or false")
    label = metadata.get("label") or name
    if not isinstance(label, str):
        raise InvalidMetadata("label is text")
    return ManagedSubscription(
        name, topic, label, chosen["defaultReplay"], chosen["errorRecoveryReplay"], chosen["state"], shared
    )
