"""Unit tests of naming, record formats, and the choice of offsets to sync."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, TopicPartition
from connectors.mirror.config import MirrorSourceConfig
from connectors.mirror.offset_syncs import PartitionState
from connectors.mirror.policies import DefaultReplicationPolicy, IdentityReplicationPolicy
from connectors.mirror.positions import check_positions
from connectors.mirror.records import Checkpoint, Heartbeat, MalformedRecord, OffsetSync
from connectors.mirror.source import MirrorSourceConnector
from connectors.mirror.topics import MirroredTopics
from connectors.mirror.translation import OffsetSyncStore
from tests.connectors.mirror.clusters import Cluster
from tidegate.kit.config import parse, validate

PLACE = TopicPartition("t", 1)
NAMES = st.text(max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
PLACES = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))
RECORDS = (
    st.builds(OffsetSync, PLACES, LONGS, LONGS)
    | st.builds(Checkpoint, NAMES, PLACES, LONGS, LONGS, NAMES)
    | st.builds(Heartbeat, NAMES, NAMES, LONGS)
)


def test_records_lie_in_the_original_s_bytes():
    sync, long = OffsetSync(PLACE, 1, 2), b"\0" * 7
    assert (sync.key, sync.value) == (b"\0\1t\0\0\0\1", long + b"\1" + long + b"\2")
    checkpoint = Checkpoint("g", PLACE, 3, 4, "m")
    assert checkpoint.key == b"\0\1g\0\1t\0\0\0\1"
    assert checkpoint.value == b"\0\0" + long + b"\3" + long + b"\4\0\1m"
    heartbeat = Heartbeat("a", "b", 5)
    assert (heartbeat.key, heartbeat.value) == (b"\0\1a\0\1b", b"\0\0" + long + b"\5")


@settings(max_examples=20)
@given(RECORDS)
def test_records_are_read_as_they_were_written(record):
    assert type(record).read(record.key, record.value) == record


@settings(max_examples=30)
@given(st.sampled_from([OffsetSync, Checkpoint, Heartbeat]), st.binary(max_size=30), st.binary(max_size=30) | st.none())
def test_anything_else_is_refused_in_words(kind, key, value):
    try:
        kind.read(key, value)
    except MalformedRecord as error:
        assert str(error)


def policy(cls=DefaultReplicationPolicy, separator=".", internal="."):
    return cls(separator=separator, internal_separator=internal, source="west")


def test_names_tell_where_a_topic_comes_from():
    plain = policy()
    assert plain.remote_topic("west", "a.b") == "west.a.b"
    assert [plain.source_of(name) for name in ("a", "west.a", "a.", ".a", "a..b", "..")] == [
        None,
        "west",
        None,
        "",
        "a",
        None,
    ]
    assert (plain.upstream_topic("east.west.a"), plain.original_topic("east.west.a")) == ("west.a", "a")
    assert plain.is_heartbeats("east.west.heartbeats") and not plain.is_heartbeats("x-heartbeats")
    internal = ("mm2-offset-syncs.east.internal", "west.checkpoints.internal", "__x", ".x")
    assert all(map(plain.is_internal, internal)) and not plain.is_internal("my.internal")
    other = policy(separator="__", internal="__")
    assert other.checkpoints_topic("w") == "w__checkpoints__internal" and other.source_of("w__a_b") == "w"
    # As Kafka's DefaultReplicationPolicy 4.3.1, which splits by the separator: nothing splits after each letter.
    blank = policy(separator="", internal="")
    assert (blank.remote_topic("", "orders"), blank.source_of("orders"), blank.upstream_topic("orders")) == (
        "orders",
        "o",
        "rders",
    )
    assert blank.source_of("o") is None and blank.is_internal("mm2-offset-syncseastinternal")
    same = policy(IdentityReplicationPolicy)
    assert (same.remote_topic("west", "a"), same.source_of("a"), same.upstream_topic("a")) == ("a", "west", "a")
    assert (same.remote_topic("west", "heartbeats"), same.source_of("heartbeats")) == ("west.heartbeats", None)


def naive(rows, max_lag):
    """The original's rule, record by record: which of (upstream, downstream) are synced."""
    up = down = last = -1
    rows_to_sync = []
    for upstream, downstream in rows:
        if last == -1 or downstream - (last + 1) >= max_lag or upstream - up != 1 or downstream < down:
            last = downstream
            rows_to_sync.append((upstream, downstream))
        up, down = upstream, downstream
    return rows_to_sync


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.lists(st.sampled_from([1, 1, 1, 1, 3]), min_size=1, max_size=40), st.integers(0, 3)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 12),
)
def test_syncs_are_those_that_the_original_writes(runs, max_lag):
    state, few, rows, synced = PartitionState(max_lag), PartitionState(max_lag), [], []
    upstream = downstream = 0
    for gap, steps, more in runs:
        offsets = np.cumsum(steps) + upstream + gap
        before = len(rows)
        rows += [(int(offset), downstream + n) for n, offset in enumerate(offsets)]
        made = [rows[before + n] for n in state.rows_to_sync(offsets, downstream, 1 << 30)]
        short = [rows[before + n] for n in few.rows_to_sync(offsets, downstream, 2)]
        assert short == (made if len(made) <= 2 else [*made[:2], made[-1]])
        synced += made
        upstream, downstream = int(offsets[-1]), downstream + len(steps) + more
    assert synced == naive(rows, max_lag)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), min_size=1, max_size=60), st.data())
def test_a_position_is_never_told_too_high(steps, data):
    """At each step this many records are dropped in between."""
    store, upstream, downstream = OffsetSyncStore(only_latest=False), 0, 0
    syncs = []
    for step, dropped in steps:
        upstream, downstream = upstream + step, downstream + max(step - dropped, 1)
        syncs.append(OffsetSync(PLACE, upstream, downstream))
        store.add(syncs[-1])
    assert store.downstream(PLACE, upstream) is None, "before the topic is read to its end"
    store.read([])
    assert store.downstream(PLACE, upstream) == downstream and store.downstream(PLACE, upstream + 9) == downstream + 1
    assert store.downstream(PLACE, syncs[0].upstream - 1) is None
    asked = sorted(data.draw(st.lists(st.integers(syncs[0].upstream, upstream), max_size=8)))
    told = [store.downstream(PLACE, position) for position in asked]
    assert told == sorted(told)
    for position, answer in zip(asked, told, strict=True):
        near = max(sync for sync in ((s.upstream, s.downstream) for s in syncs) if sync[0] <= position)
        assert syncs[0].downstream <= answer <= near[1] + (position > near[0])
    store.add(OffsetSync(PLACE, 0, downstream + 5))
    assert store.downstream(PLACE, upstream) == downstream + 6, "a source that began anew"


def test_positions_are_told_as_the_original_tells_them():
    """Recorded with java/Translations.java."""
    with gzip.open(Path(__file__).with_name("translations.jsonl.gz"), "rt") as lines:
        recorded = [json.loads(line) for line in lines]
    for case in recorded:
        store = OffsetSyncStore(only_latest=False)
        store.read([])
        for upstream, downstream in case["syncs"]:
            store.add(OffsetSync(PLACE, upstream, downstream))
        told = [[position, store.downstream(PLACE, position)] for position, _ in case["told"]]
        assert [[position, -1 if offset is None else offset] for position, offset in told] == case["told"]
    assert len(recorded) == 40


def test_validation_names_the_key():
    wrong = {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target", "source.cluster.alias": "a"}
    errors = {value.key.name: value.errors for value in validate(MirrorSourceConfig, wrong) if value.errors}
    assert set(errors) == {
        "emit.offset-syncs.enabled",
        "source.cluster.bootstrap.servers",
        "target.cluster.bootstrap.servers",
    }
    assert "can't setup offset-syncs feature" in errors["emit.offset-syncs.enabled"][0]


@pytest.mark.parametrize(
    ("source_partition", "offset", "said"),
    [
        ({"cluster": "a", "topic": "t", "partition": 0}, {"offset": 5}, None),
        ({"nonsense": 1}, None, None),
        ({"topic": "t", "partition": 0}, {"offset": 5}, "missing the 'cluster' key"),
        ({"cluster": "a", "topic": 7, "partition": 0}, {"offset": 5}, "for the 'topic' key, which must be a string"),
        ({"cluster": "a", "topic": "t", "partition": -1}, {"offset": 5}, "cannot be negative"),
        ({"cluster": "a", "topic": "t", "partition": 2**31}, {"offset": 5}, "must be an integer"),
        ({"cluster": "a", "topic": "t", "partition": 0}, {"other": 5}, "missing the 'offset' key"),
        ({"cluster": "a", "topic": "t", "partition": 0}, {"offset": "5"}, "must be an integer"),
    ],
)
def test_positions_are_changed_to_what_can_be(source_partition, offset, said):
    if said is None:
        assert MirrorSourceConnector.alter_offsets({}, [(source_partition, offset)])
        return
    with pytest.raises(ConnectError, match=said):
        MirrorSourceConnector.alter_offsets({}, [(source_partition, offset)])


def test_positions_that_say_nothing_are_zero():
    with pytest.raises(ConnectError, match="the only accepted value is 0"):
        check_positions([({"a": "x"}, {"offset": 1})], texts=("a",), only_zero=True, partition=False)


def test_rules_about_topics_are_mirrored(tmp_path):
    from broker.client import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
    from broker.client.errors import SecurityDisabled
    from connectors.mirror.client import Calls
    from tests.support.connect import FakeContext

    guarded = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    guarded |= {"super_users": "User:ANONYMOUS"}
    with Cluster(tmp_path / "west", **guarded) as west:
        config = parse(
            MirrorSourceConfig,
            {
                "source.cluster.alias": "west",
                "source.cluster.bootstrap.servers": west.servers,
                "target.cluster.bootstrap.servers": west.servers,
                "topics": "orders",
            },
        )
        calls = Calls(FakeContext().stopping)
        topics = MirroredTopics(config, calls)

        def rule(topic, operation, *, user="User:ann", pattern=PatternType.LITERAL, permission=Permission.ALLOW):
            return AclBinding(ResourceType.TOPIC, topic, pattern, user, "*", operation, permission)

        changes = [
            rule("orders", Operation.ALL),
            rule("orders", Operation.WRITE, user="User:bob"),
            rule("orders", Operation.WRITE, user="User:eve", permission=Permission.DENY),
            rule("ord", Operation.READ, pattern=PatternType.PREFIXED),
            rule("others", Operation.READ),
        ]
        assert west.admin.create_acls(changes) == []
        assert set(west.admin.describe_acls(AclFilter(ResourceType.TOPIC))) == set(changes)
        admin = west.admin._real
        topics.sync_acls(admin, admin)
        made = {
            acl
            for acl in west.admin.describe_acls(AclFilter(ResourceType.TOPIC))
            if acl.resource_name.startswith("west.")
        }
        assert made == {
            rule("west.orders", Operation.READ),
            rule("west.orders", Operation.WRITE, user="User:eve", permission=Permission.DENY),
        }
    with Cluster(tmp_path / "east") as east:
        with pytest.raises(SecurityDisabled):
            east.admin.describe_acls(AclFilter())
        topics.sync_acls(east.admin._real, east.admin._real)
