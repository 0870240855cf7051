"""A channel is told that a signal was carried out only after a later offset has been stored: after a kill before that,
the signal is read again.
"""

from __future__ import annotations

from typing import Any

import pytest

from connectors.debezium.incremental.snapshots import IncrementalSnapshots
from connectors.debezium.signals.signal import Signal


class Channel:
    def __init__(self) -> None:
        self.waiting: list[Signal] = []
        self.done_after: list[int] = []
        self.looks = 0

    def read(self) -> list[Signal]:
        signals, self.waiting = self.waiting, []
        return signals

    def done(self) -> None:
        self.done_after.append(self.looks)

    def close(self) -> None: ...


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def snapshots(channel: Channel) -> IncrementalSnapshots:
    unused: Any = None  # a pause needs no tables
    made = {"partition": {}, "signal_topic": None, "chunk_size": 1, "channel_interval_s": 0}
    return IncrementalSnapshots(unused, [channel], unused, **made)


def poll(snapshots: IncrementalSnapshots, channel: Channel, seq: int) -> list[dict[str, Any]]:
    """The offsets of one poll; afterwards the channel's ``done_after`` shows whether it was informed in this poll."""
    channel.looks, channel.done_after = seq, []
    made = snapshots.streamed([], {"seq": seq}, seq, float(seq))
    return [dict(batch.source_offset or {}) for batch in made]


def test_a_channel_is_told_when_a_position_after_the_signal_is_stored(snapshots, channel):
    channel.waiting = [Signal("1", "pause-snapshot", {})]
    (position,) = poll(snapshots, channel, 1)
    for seq in (2, 3):
        assert poll(snapshots, channel, seq) == [] and not channel.done_after
    snapshots.committed([{"seq": 0}])
    poll(snapshots, channel, 4)
    assert not channel.done_after, "a position from before the signal says nothing of it"
    snapshots.committed([position])
    poll(snapshots, channel, 5)
    assert channel.done_after == [5]


def test_a_signal_in_between_waits_for_a_position_of_its_own(snapshots, channel):
    channel.waiting = [Signal("1", "pause-snapshot", {})]
    (first,) = poll(snapshots, channel, 1)
    channel.waiting = [Signal("2", "resume-snapshot", {})]
    (second,) = poll(snapshots, channel, 2)
    snapshots.committed([first])
    poll(snapshots, channel, 3)
    assert not channel.done_after
    snapshots.committed([second])
    poll(snapshots, channel, 4)
    assert channel.done_after == [4]
