"""The bytes that workers exchange, compared with those of Kafka Connect 4.3.1 (see RecordRounds.java)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.group.protocol import (
    Assignment,
    Item,
    MalformedWorkerMessage,
    Protocol,
    WorkerState,
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)
from tests.connect.distributed.recorded import URL, items_of, recorded

names = st.text(max_size=12)
items = st.frozensets(st.builds(Item, names, st.integers(-1, 50)), max_size=8)
assignments = st.builds(
    Assignment,
    leader=names,
    leader_url=names,
    offset=st.integers(-1, 2**62),
    items=items,
    revoked=items,
    delay_ms=st.integers(0, 2**31 - 1),
    error=st.sampled_from([0, 1]),
)


@given(
    st.builds(WorkerState, url=names, offset=st.integers(-1, 2**62), assignment=st.none() | assignments),
    st.sampled_from([Protocol.SESSIONED, Protocol.COMPATIBLE]),
)
def test_a_written_record_is_read_back(state, protocol):
    assert decode_state(encode_state(state, protocol)) == state


@given(assignments)
def test_the_eager_protocol_carries_what_it_can(assignment):
    read = decode_assignment(encode_assignment(assignment, Protocol.EAGER))
    assert (read.items, read.offset, read.error) == (assignment.items, assignment.offset, assignment.error)
    assert not read.revoked and read.delay_ms == 0


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    for decode in (decode_state, decode_assignment):
        for sent in (data, b"\x00\x02" + data):
            try:
                decode(sent)
            except MalformedWorkerMessage as error:
                assert "worker" in str(error)


@given(assignments, st.data())
def test_a_message_cut_short_is_refused_or_lacks_only_what_may_be_left_out(assignment, data):
    whole = encode_assignment(assignment, Protocol.SESSIONED)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        assert decode_assignment(cut).items == assignment.items
    except MalformedWorkerMessage:
        pass


MESSAGES = [line for line in recorded() if line["kind"] != "round"]


@pytest.mark.parametrize("line", MESSAGES, ids=lambda line: f"{line['protocol']}-{line['kind']}-{line['offset']}")
def test_the_bytes_are_kafka_connects(line):
    data, protocol, expected_assignment = bytes.fromhex(line["hex"]), Protocol(line["protocol"]), line["assignment"]
    assignment = expected_assignment and Assignment(
        "leader-1",
        URL,
        expected_assignment["offset"],
        items_of(expected_assignment["items"]),
        items_of(expected_assignment["revoked"]),
        expected_assignment["delay"],
        expected_assignment["error"],
    )
    if line["kind"] == "assignment":
        assert decode_assignment(data) == assignment
        assert encode_assignment(assignment, protocol) == data
    else:
        state = WorkerState(URL, line["offset"], assignment)
        assert decode_state(data) == state
        assert encode_state(state, protocol) == data
