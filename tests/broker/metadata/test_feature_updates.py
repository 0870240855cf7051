"""The levels that a feature may be set to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidUpdateVersion
from broker.metadata.feature_updates import FeatureUpdate, UpgradeType, checked
from broker.metadata.features import FEATURES

PRESENT = {"metadata.version": 30, "transaction.version": 2, "group.version": 1, "share.version": 1}
UP, DOWN, UNSAFE, UNKNOWN = (
    UpgradeType.UPGRADE,
    UpgradeType.SAFE_DOWNGRADE,
    UpgradeType.UNSAFE_DOWNGRADE,
    UpgradeType.UNKNOWN,
)


@pytest.mark.parametrize(
    "update",
    [
        FeatureUpdate("transaction.version", 2, UP),
        FeatureUpdate("transaction.version", 0, DOWN),
        FeatureUpdate("transaction.version", 1, UNSAFE),
        FeatureUpdate("streams.version", 1, UP),
        FeatureUpdate("eligible.leader.replicas.version", 1, UP),
        FeatureUpdate("kraft.version", 0, DOWN),
    ],
)
def test_possible_feature_levels_are_accepted(update: FeatureUpdate) -> None:
    assert checked(PRESENT, [update]) == {update.name: update.level}


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (FeatureUpdate("transaction.version", 1, UP), "has to be asked for as one"),
        (FeatureUpdate("streams.version", 1, DOWN), "would be no downgrade"),
        (FeatureUpdate("group.version", 0, UNKNOWN), "kind of update"),
        (FeatureUpdate("group.version", -1, DOWN), "not below 0"),
        (FeatureUpdate("group.version", 2, UP), "0 to 1"),
        (FeatureUpdate("no.such", 1, UP), "no such feature"),
        (FeatureUpdate("metadata.version", 29, DOWN), "would lose it"),
        (FeatureUpdate("metadata.version", 6, UNSAFE), "7 to 30"),
        (FeatureUpdate("kraft.version", 1, UP), "static"),
    ],
)
def test_impossible_feature_levels_are_refused(update: FeatureUpdate, reason: str) -> None:
    with pytest.raises(InvalidUpdateVersion, match=reason):
        checked(PRESENT, [update])


def test_a_feature_that_needs_newer_metadata_waits_for_it_or_comes_with_it() -> None:
    leaders = FeatureUpdate("eligible.leader.replicas.version", 1, UP)
    with pytest.raises(InvalidUpdateVersion, match="needs metadata.version 23"):
        checked({"metadata.version": 20}, [leaders])
    both = [leaders, FeatureUpdate("metadata.version", 23, UP)]
    assert checked({"metadata.version": 20}, both)["metadata.version"] == 23


def test_metadata_goes_back_only_where_nothing_new_can_be_in_it() -> None:
    assert checked({"metadata.version": 29}, [FeatureUpdate("metadata.version", 24, DOWN)]) == {"metadata.version": 24}
    with pytest.raises(InvalidUpdateVersion, match="would lose it"):
        checked({"metadata.version": 29}, [FeatureUpdate("metadata.version", 22, DOWN)])


@given(
    st.lists(
        st.builds(
            FeatureUpdate,
            st.sampled_from([*FEATURES, "other"]),
            st.integers(-2, 40),
            st.sampled_from(list(UpgradeType)),
        )
    )
)
def test_whatever_is_asked_levels_stay_those_that_are_served(updates: list[FeatureUpdate]) -> None:
    try:
        levels = checked(PRESENT, updates)
    except InvalidUpdateVersion:
        return
    assert all(FEATURES[name].lowest <= level <= FEATURES[name].highest for name, level in levels.items())
