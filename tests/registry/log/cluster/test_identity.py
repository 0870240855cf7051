import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.log.cluster.identity import Assignment, Identity, InvalidAssignment

IDENTITY = b'{"version":1,"host":"sr1","port":8081,"master_eligibility":true,"scheme":"http","leader":false}'


def test_identities_are_confluents_json() -> None:
    identity = Identity("sr1", 8081)
    assert identity.encode(leader=False) == IDENTITY
    assert Identity.decode(IDENTITY) == (identity, False)
    assert Identity.decode(identity.encode(leader=True)) == (identity, True)
    assert identity.url == "http://sr1:8081"
    assert Identity("::1", 1, "https").url == "https://[::1]:1"


def test_an_identity_of_an_older_registry_has_no_scheme_and_no_leader() -> None:
    old = b'{"version":1,"host":"h","port":1,"master_eligibility":false}'
    assert Identity.decode(old) == (Identity("h", 1, eligible=False), False)


def test_assignments_are_confluents_json() -> None:
    assignment = Assignment(0, "sr-1-abc", Identity("sr1", 8081))
    value = json.loads(assignment.encode())
    assert list(value) == ["version", "error", "master", "master_identity"]
    assert value["master_identity"]["host"] == "sr1"
    assert Assignment.decode(assignment.encode()) == assignment
    assert Assignment.decode(b'{"version":1,"error":1}') == Assignment(1)


@pytest.mark.parametrize(
    "data", [b"", b"3", b'{"host":"h"}', b'{"host":"h","port":"1"}', b'{"host":"h","port":99999}', b"\xff"]
)
def test_an_invalid_identity_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidAssignment):
        Identity.decode(data)


@given(st.binary(max_size=40) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(
        st.sampled_from(["host", "port", "scheme", "version", "error", "master", "master_identity", "master_eligibility"]),
        inner, max_size=6,
    ),
    max_leaves=8,
).map(json.dumps).map(str.encode))  # fmt: skip
def test_whatever_a_member_sends_is_read_or_refused(data: bytes) -> None:
    for decode in (Identity.decode, Assignment.decode):
        with contextlib.suppress(InvalidAssignment):
            decode(data)
