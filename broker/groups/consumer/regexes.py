"""Decides when a group's regular expressions are matched against the topics, and stores the results.

All expressions of a group are matched together, so that new topics cause one rebalance; at most every ten seconds, and
not during the heartbeat that triggers it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from broker.groups.consumer import changes
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.consumer.regex import Resolved, check, resolve
from broker.groups.consumer.step import Step
from broker.groups.modern.group import metadata_hash
from broker.groups.modern.service import METADATA_REFRESH_INTERVAL_MS, GroupService
from tidegate.kit.logs import get_logger

__all__ = ["RegexChange", "Regexes"]

logger = get_logger(__name__)

_LEAST_INTERVAL_MS: Final = 10_000
_REGEX = "regex"


class RegexChange(NamedTuple):
    """Whether a member subscribes to another expression, and whether the topics of the new one are known."""

    changed: bool
    resolved: bool


class Regexes:
    """The expressions of all consumer groups."""

    def __init__(self, service: GroupService[ConsumerGroup]) -> None:
        self._service = service

    def changed(
        self, step: Step, before: ConsumerMember, member: ConsumerMember, may_describe: Callable[[str], bool] | None
    ) -> RegexChange:
        """Record a change of the member's expression, if any, and match all expressions again if that is due.

        Raises InvalidRegularExpression for a new invalid expression.
        """
        group = step.group
        change, due = RegexChange(changed=False, resolved=False), False
        subscribed = group.expressions(group.members.values())
        if (before.regex or "") != (member.regex or ""):
            known = not member.regex
            if before.regex and subscribed[before.regex] == 1:
                step.records.append(changes.no_regex(group.group_id, before.regex))
            if member.regex and not subscribed[member.regex]:
                check(member.regex)
                due = True
            elif member.regex:
                known = member.regex in group.regexes
            change = RegexChange(changed=True, resolved=known)
        elif before.regex != member.regex:
            change = RegexChange(changed=True, resolved=False)
        if due or subscribed:
            self._refresh(step, member, may_describe, due=due)
        return change

    def _refresh(
        self, step: Step, member: ConsumerMember, may_describe: Callable[[str], bool] | None, *, due: bool
    ) -> None:
        group, around = step.group, self._service.around
        if (_REGEX, group.group_id, "") in self._service.timers:
            return
        now_ms = around.clock.now_ms()
        last = next(iter(group.regexes.values()), None)
        if last is not None and now_ms <= last.at_ms + _LEAST_INTERVAL_MS:
            return
        expressions = group.expressions(step.members_with(member).values())
        due = due or len(expressions) != len(group.regexes)
        due = due or (last.version if last is not None else 0) < around.topics.created_version
        due = due or (last is not None and now_ms > last.at_ms + around.config.consumer_regex_refresh_interval_ms)
        if due and expressions:
            group_id = group.group_id
            self._service.later(_REGEX, group_id, "", 0, lambda: self._look_up(group_id, may_describe))

    def _look_up(self, group_id: str, may_describe: Callable[[str], bool] | None) -> None:
        around = self._service.around
        group = around.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return
        now_ms, version = around.clock.now_ms(), around.topics.version
        expressions = group.expressions(group.members.values())
        result = {
            expression: Resolved(topics, version, now_ms)
            for expression, topics in resolve(expressions, around.topics.names(), may_describe).items()
        }
        bump = any(
            resolved.topics != (group.regexes[expression].topics if expression in group.regexes else frozenset())
            for expression, resolved in result.items()
        )
        records = [changes.regex_resolved(group_id, expression, resolved) for expression, resolved in result.items()]
        after = {**group.regexes, **result}
        new_hash = metadata_hash(group.names_of(group.members.values(), after), around.topics)
        if bump or new_hash != group.metadata_hash:
            epoch = group.epoch + 1
            records.append(changes.group_epoch(group_id, epoch, new_hash))
            group.refresh_at(now_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
            logger.info("regular expressions match other topics", group=group_id, epoch=epoch)
        self._service.write_by_timer(group_id, self._service.change(records))
