"""Decisions by ACLs: Kafka's rules, compared with a second implementation."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from broker.errors import InvalidRequest
from broker.security.access import CLUSTER, Operation, Resource, ResourceType
from broker.security.acl_records import AccessControlEntryRecord
from broker.security.acls import AccessControlEntry, AclFilter, Acls, PatternType, Permission, check_entry
from broker.security.authorizer import StandardAuthorizer
from broker.security.principal import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TOPIC = ResourceType.TOPIC


def entry(
    name: str = "t",
    operation: Operation = Operation.READ,
    *,
    who: str = "User:alice",
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
    permission: Permission = Permission.ALLOW,
    kind: ResourceType = TOPIC,
) -> AccessControlEntry:
    return AccessControlEntry(kind, name, pattern, who, host, operation, permission)


def acls(entries: Iterable[AccessControlEntry]) -> Acls:
    made = Acls()
    for record in made.additions(entries):
        made.replay(record)
    return made


def allowed(
    entries: Iterable[AccessControlEntry],
    operation: Operation,
    name: str = "t",
    who: Principal = ALICE,
    host: str = "h",
) -> bool:
    return StandardAuthorizer(acls(entries)).allows(who, host, operation, Resource(TOPIC, name))


def test_without_entries_only_super_users_may() -> None:
    authorizer = StandardAuthorizer(Acls(), super_users=["User:alice"])
    assert authorizer.allows(ALICE, "h", Operation.ALTER, CLUSTER)
    assert not authorizer.allows(BOB, "h", Operation.ALTER, CLUSTER)


def test_a_resource_without_acls_may_be_open_to_everyone() -> None:
    authorizer = StandardAuthorizer(acls([entry("t")]), allow_if_no_acl=True)
    assert authorizer.allows(BOB, "h", Operation.READ, Resource(TOPIC, "other"))
    assert not authorizer.allows(BOB, "h", Operation.READ, Resource(TOPIC, "t"))


def test_a_denial_holds_before_any_allowance_but_not_for_super_users() -> None:
    both = [entry(operation=Operation.ALL), entry("*", permission=Permission.DENY, who="User:*")]
    assert not allowed(both, Operation.READ)
    assert allowed(both, Operation.WRITE)
    authorizer = StandardAuthorizer(acls(both), super_users=["User:alice"])
    assert authorizer.allows(ALICE, "h", Operation.READ, Resource(TOPIC, "t"))


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_allowing_use_allows_describing_and_denying_it_does_not_deny_describing(operation: Operation) -> None:
    assert allowed([entry(operation=operation)], Operation.DESCRIBE)
    denied = entry(operation=operation, permission=Permission.DENY)
    assert allowed([denied, entry(operation=Operation.DESCRIBE)], Operation.DESCRIBE)


def test_prefixes_wildcards_and_hosts() -> None:
    prefixed = entry("ab", pattern=PatternType.PREFIXED)
    assert allowed([prefixed], Operation.READ, "abc") and allowed([prefixed], Operation.READ, "ab")
    assert not allowed([prefixed], Operation.READ, "a")
    assert allowed([entry("*")], Operation.READ, "anything")
    assert not allowed([entry("ab")], Operation.READ, "abc")
    assert allowed([entry(host="h")], Operation.READ) and not allowed([entry(host="g")], Operation.READ)


def test_decisions_follow_changes() -> None:
    entries = acls([])
    authorizer = StandardAuthorizer(entries)
    asked = (ALICE, "h", Operation.READ, Resource(TOPIC, "t"))
    assert not authorizer.allows(*asked)
    (record,) = entries.additions([entry()])
    entries.replay(record)
    assert authorizer.allows(*asked)
    (removal,) = entries.removals([entry()])
    entries.replay(removal)
    assert not authorizer.allows(*asked) and len(entries) == 0


def test_a_refusal_is_logged_once_until_something_changes() -> None:
    entries = acls([])
    authorizer = StandardAuthorizer(entries)
    asked = (ALICE, "h", Operation.READ, Resource(TOPIC, "t"))
    with capture_logs() as logged:
        for _ in range(3):
            authorizer.refused(*asked)
        for record in entries.additions([entry("other")]):
            entries.replay(record)
        assert not authorizer.allows(*asked)
        authorizer.refused(*asked)
    assert [(line["principal"], line["operation"], line["resource"]) for line in logged] == [
        ("User:alice", "READ", "TOPIC:t")
    ] * 2


def test_the_refusals_of_a_request_for_thousands_of_topics_are_counted_and_not_all_logged() -> None:
    """A line takes 40 us of the event loop: 20,000 of them stopped the broker for 0.8 s, with each request anew."""
    now = 100.0
    authorizer = StandardAuthorizer(acls([]), clock=lambda: now)
    with capture_logs() as logged:
        for number in range(20_000):
            authorizer.refused(ALICE, "h", Operation.DESCRIBE, Resource(TOPIC, f"t{number}"))
        assert len(logged) == 50
        now += 10
        authorizer.refused(ALICE, "h", Operation.DESCRIBE, Resource(TOPIC, "last"))
    told, last = logged[-2:]
    assert told["refusals"] == 19_950 and last["resource"] == "TOPIC:last"


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
entries = st.lists(
    st.builds(
        entry,
        names,
        st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL, Operation.ALTER_CONFIGS]),
        who=st.sampled_from(["User:alice", "User:bob", "User:*"]),
        pattern=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        host=st.sampled_from(["*", "h"]),
        permission=st.sampled_from([Permission.ALLOW, Permission.DENY]),
    ),
    max_size=6,
)
asked = st.sampled_from([Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.DELETE])


def as_the_documentation_says(
    among: list[AccessControlEntry], operation: Operation, name: str, who: str, host: str, otherwise: bool
) -> bool:
    """Kafka's rules, one after the other, over all entries."""
    on_it = [
        named
        for named in among
        if (name.startswith(named.resource_name) if named.pattern_type == PatternType.PREFIXED else False)
        or (named.pattern_type == PatternType.LITERAL and named.resource_name in (name, "*"))
    ]
    mine = [named for named in on_it if named.principal in (who, "User:*") and named.host in (host, "*")]
    implied = {
        Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
        Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
    }.get(operation, set())
    if any(named.permission == Permission.DENY and named.operation in (operation, Operation.ALL) for named in mine):
        return False
    if any(
        named.permission == Permission.ALLOW and named.operation in {operation, Operation.ALL, *implied}
        for named in mine
    ):
        return True
    return otherwise and not on_it


@given(entries, asked, names, st.sampled_from(["h", "g"]), st.booleans())
def test_decisions_are_those_of_the_documented_rules(
    among: list[AccessControlEntry], operation: Operation, name: str, host: str, otherwise: bool
) -> None:
    authorizer = StandardAuthorizer(acls(among), allow_if_no_acl=otherwise)
    expected = as_the_documentation_says(among, operation, name, "User:alice", host, otherwise)
    for _ in range(2):  # the second time from memory
        assert authorizer.allows(ALICE, host, operation, Resource(TOPIC, name)) == expected


@given(entries, asked)
def test_any_resource_is_allowed_where_one_is(among: list[AccessControlEntry], operation: Operation) -> None:
    # Kafka leaves out implied operations here, so this holds for operations that nothing implies.
    if operation not in (Operation.READ, Operation.DELETE):
        return
    authorizer = StandardAuthorizer(acls(among))
    tried = ["a", "ab", "abc", "b", "bb", "abcd", "zzz", "hardcode"]
    allowed = any(authorizer.allows(ALICE, "h", operation, Resource(TOPIC, name)) for name in tried)
    assert authorizer.allows_any(ALICE, "h", operation, TOPIC) or not allowed


@pytest.mark.parametrize(
    "wrong",
    [
        entry(""),
        entry(who="alice"),
        entry(operation=Operation.ANY),
        entry(pattern=PatternType.MATCH),
        entry(permission=Permission.ANY),
        entry(kind=ResourceType.ANY),
        entry("mine", kind=ResourceType.CLUSTER),
        entry()._replace(resource_type=99),
    ],
)
def test_an_invalid_acl_entry_is_refused(wrong: AccessControlEntry) -> None:
    with pytest.raises(InvalidRequest):
        check_entry(wrong)


def test_filters_find_exactly_by_any_and_by_match() -> None:
    every = [entry("ab"), entry("a", pattern=PatternType.PREFIXED), entry("*"), entry("x", who="User:bob")]
    known = acls(every)

    def found(name: str | None, pattern: PatternType, who: str | None = None) -> list[AccessControlEntry]:
        acl_filter = AclFilter(TOPIC, name, pattern, who, None, Operation.ANY, Permission.ANY)
        acl_filter.check()
        return known.find(acl_filter)

    assert found(None, PatternType.ANY) == every
    assert found("ab", PatternType.LITERAL) == every[:1]
    assert found("ab", PatternType.MATCH) == every[:3]
    assert found("ab", PatternType.ANY) == every[:1]
    assert found(None, PatternType.PREFIXED) == every[1:2]
    assert found(None, PatternType.ANY, "User:bob") == every[3:]


def test_the_same_entry_is_kept_once() -> None:
    known = acls([entry(), entry()])
    assert len(known) == 1 and known.additions([entry()]) == []


def test_removing_what_is_not_there_is_nothing() -> None:
    known = acls([entry()])
    assert known.removals([entry("other")]) == []
    known.replay(AccessControlEntryRecord(acl_id=uuid.uuid4(), resource_name="x"))
    assert len(known) == 2
