"""Quotas: rates over windows, precedence, and throttle times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidRequest, ThrottlingQuotaExceeded, UnsupportedVersion
from broker.quotas.config import QuotaConfig
from broker.quotas.quotas import Quotas
from broker.quotas.rates import Rate, TokenBucket
from broker.quotas.settings import CLIENT_ID, IP, USER, EntityFilter, QuotaSettings
from broker.security.principal import Principal
from tidegate.kit.config import parse

ALICE = Principal("User", "alice")
Parts = list[tuple[str, str | None]]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def quotas(clock: Clock, *entries: tuple[Parts, dict[str, float | None]]) -> tuple[Quotas, QuotaSettings]:
    settings = QuotaSettings()
    for entity, ops in entries:
        for record in settings.changed(entity, ops):
            settings.replay(record)
    return Quotas(settings, parse(QuotaConfig, {}), clock), settings


def test_a_burst_is_taken_over_all_windows_but_one() -> None:
    rate = Rate(11, 1)
    rate.limit = 100
    assert rate.use(1000, 0.0) == 0
    # (101 - 100) / 100 of ten seconds
    assert rate.use(10, 0.0) == pytest.approx(0.1)


def test_old_use_is_forgotten() -> None:
    rate = Rate(11, 1)
    rate.limit = 100
    rate.use(10_000, 0.0)
    assert rate.use(1, 11.5) == 0
    assert rate.measure(11.5) == pytest.approx(0.1)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 1000)), min_size=1, max_size=60))
def test_waiting_as_told_brings_the_rate_to_the_limit(uses: list[tuple[float, int]]) -> None:
    rate = Rate(11, 1)
    rate.limit = 50
    now = 0.0
    kept: list[tuple[float, int]] = []
    for pause, amount in uses:
        now += pause
        wait = rate.use(amount, now)
        kept = [*((at, n) for at, n in kept if now - at < 11), (now, amount)]
        # Nothing that was used within the eleven windows is left out, and over ten of them at least it is taken.
        used = sum(n for _, n in kept)
        assert wait >= used / 50 - 12 - 1e-6
        assert wait <= max(sum(n for _, n in uses) / 50 - 10, 0) + 1e-6
        now += wait


def test_usage_that_was_taken_back_does_not_count() -> None:
    rate = Rate(11, 1)
    rate.limit = 10
    assert rate.use(1000, 0.0) > 0
    rate.take_back(1000, 0.0)
    assert rate.use(50, 0.0) == 0


def test_a_bucket_begins_full_and_is_overdrawn_once() -> None:
    bucket = TokenBucket(11, 1)
    bucket.limit = 2
    assert bucket.wait(0.0) == 0
    bucket.take(30, 0.0)
    assert bucket.wait(0.0) == pytest.approx(4)
    assert bucket.wait(3.0) == pytest.approx(1)
    assert bucket.wait(4.0) == 0


@pytest.mark.parametrize("without", range(8))
def test_the_most_specific_quota_holds(without: int) -> None:
    levels: list[Parts] = [
        [(USER, "alice"), (CLIENT_ID, "c")],
        [(USER, "alice"), (CLIENT_ID, None)],
        [(USER, "alice")],
        [(USER, None), (CLIENT_ID, "c")],
        [(USER, None), (CLIENT_ID, None)],
        [(USER, None)],
        [(CLIENT_ID, "c")],
        [(CLIENT_ID, None)],
    ]
    entries = [(entity, {"producer_byte_rate": 100.0 + i}) for i, entity in enumerate(levels)]
    made, _ = quotas(Clock(), *entries[without:])  # type: ignore[arg-type]
    producer = made.of(ALICE, "c").producer
    assert producer is not None and producer.limit == 100 + without


def test_clients_of_one_entity_share_its_quota() -> None:
    made, _ = quotas(
        Clock(), ([(USER, "alice")], {"producer_byte_rate": 10}), ([(USER, None)], {"request_percentage": 5})
    )
    assert made.of(ALICE, "a").producer is made.of(ALICE, "b").producer
    bob = made.of(Principal("User", "bob"), "a")
    assert bob.producer is None and bob.request is not made.of(ALICE, "a").request


def test_a_changed_quota_holds_at_once_and_keeps_what_was_used() -> None:
    clock = Clock()
    made, settings = quotas(clock, ([(USER, "alice")], {"producer_byte_rate": 1000}))
    assert made.produced(made.of(ALICE, "c"), 5000) == 0
    for record in settings.changed([(USER, "alice")], {"producer_byte_rate": 100}):
        settings.replay(record)
    assert made.produced(made.of(ALICE, "c"), 0) == 40_000
    for record in settings.changed([(USER, "alice")], {"producer_byte_rate": None}):
        settings.replay(record)
    assert not made.active and made.produced(made.of(ALICE, "c"), 10**9) == 0


def test_fetches_above_the_quota_are_not_counted() -> None:
    clock = Clock()
    made, _ = quotas(clock, ([(CLIENT_ID, "c")], {"consumer_byte_rate": 100}))
    quota = made.of(ALICE, "c")
    assert quota.most_fetched == 1000
    assert made.fetched(quota, 1000) == 0
    assert made.fetched(quota, 1000) == 10_000
    clock.now += 11
    assert made.fetched(quota, 100) == 0


def test_time_is_waited_for_one_window_at_most() -> None:
    made, _ = quotas(Clock(), ([(CLIENT_ID, None)], {"request_percentage": 1}))
    assert made.worked(made.of(ALICE, "c"), 60) == 1000


def test_changes_of_topics() -> None:
    clock = Clock()
    made, _ = quotas(clock, ([(USER, "alice")], {"controller_mutation_rate": 1}))
    strict = made.mutations(ALICE, "c", strict=True)
    strict.take(12)
    with pytest.raises(ThrottlingQuotaExceeded):
        strict.take(1)
    assert strict.throttle_time_ms == 1000
    lenient = made.mutations(ALICE, "c", strict=False)
    lenient.take(1)
    assert lenient.throttle_time_ms == 2000


def test_connections_of_an_address() -> None:
    made, _ = quotas(Clock(), ([(IP, None)], {"connection_creation_rate": 1}))
    assert [made.connected("10.0.0.1") for _ in range(10)] == [0] * 10
    assert made.connected("10.0.0.1") > 0
    assert made.connected("10.0.0.2") == 0


def test_many_clients_are_not_remembered_for_ever() -> None:
    clock = Clock()
    made, _ = quotas(clock, ([(CLIENT_ID, None)], {"producer_byte_rate": 1}))
    for i in range(3000):
        made.produced(made.of(ALICE, str(i)), 1)
        clock.now += 10
    assert len(made._clients) <= 1001 and len(made._rates) <= 1001


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ([], {"producer_byte_rate": 1}),
        ([("host", "h")], {"producer_byte_rate": 1}),
        ([(USER, "")], {"producer_byte_rate": 1}),
        ([(USER, "a"), (USER, "b")], {"producer_byte_rate": 1}),
        ([(IP, "127.0.0.1"), (USER, "a")], {"connection_creation_rate": 1}),
        ([(IP, "nobody")], {"connection_creation_rate": 1}),
        ([(USER, "a")], {"connection_creation_rate": 1}),
        ([(USER, "a")], {"producer_byte_rate": 0}),
        ([(USER, "a")], {"producer_byte_rate": 1.5}),
        ([(IP, None)], {"connection_creation_rate": 1 << 40}),
    ],
)
def test_an_invalid_quota_is_refused(entity: Parts, ops: dict[str, float | None]) -> None:
    with pytest.raises(InvalidRequest):
        QuotaSettings().changed(entity, ops)


def test_filters_find_quotas_by_entity() -> None:
    _, settings = quotas(
        Clock(),
        ([(USER, "alice"), (CLIENT_ID, "c")], {"producer_byte_rate": 1}),
        ([(USER, None)], {"producer_byte_rate": 2}),
        ([(USER, "alice")], {"producer_byte_rate": 3, "request_percentage": 0.5}),
    )

    def found(*filters: EntityFilter, strict: bool = False) -> list[float]:
        return sorted(values["producer_byte_rate"] for _, values in settings.find(filters, strict=strict))

    assert found() == [1, 2, 3]
    assert found(EntityFilter(USER, 0, "alice")) == [1, 3]
    assert found(EntityFilter(USER, 0, "alice"), strict=True) == [3]
    assert found(EntityFilter(USER, 1, None)) == [2]
    assert found(EntityFilter(USER, 2, None)) == [1, 2, 3]
    assert found(EntityFilter(USER, 2, None), EntityFilter(CLIENT_ID, 2, None)) == [1]
    for wrong in ([EntityFilter(USER, 0, None)], [EntityFilter(USER, 1, "a")], [EntityFilter(USER, 9, None)]):
        with pytest.raises(InvalidRequest):
            settings.find(wrong, strict=False)
    with pytest.raises(UnsupportedVersion):
        settings.find([EntityFilter("host", 2, None)], strict=False)
