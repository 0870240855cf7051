import pytest

from registry.log.cluster.election import choose
from registry.log.cluster.identity import DUPLICATE_URLS, Assignment, Identity

A, B, C = Identity("a", 1), Identity("b", 1), Identity("c", 1)
SHY = Identity("0", 1, eligible=False)


@pytest.mark.parametrize(
    ("members", "sticky", "expected"),
    [
        ({"x": (B, False), "y": (A, False)}, True, Assignment(0, "y", A)),
        ({"x": (B, True), "y": (A, False)}, True, Assignment(0, "x", B)),
        ({"x": (B, True), "y": (A, False)}, False, Assignment(0, "y", A)),
        ({"x": (B, True), "y": (C, True)}, True, Assignment(0, "x", B)),
        ({"x": (SHY, False), "y": (C, False)}, True, Assignment(0, "y", C)),
        ({"x": (SHY, True)}, True, Assignment(0)),
        ({}, True, Assignment(0)),
        ({"x": (A, False), "y": (A, False)}, True, Assignment(DUPLICATE_URLS, "x", A)),
    ],
)
def test_the_one_that_writes_is_chosen_as_confluent_does(
    members: dict[str, tuple[Identity, bool]], sticky: bool, expected: Assignment
) -> None:
    assert choose(members, sticky=sticky) == expected
