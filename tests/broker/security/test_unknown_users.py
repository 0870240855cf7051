"""The SCRAM challenge for a user that does not exist cannot be distinguished from that for an existing user."""

from __future__ import annotations

from broker.security.sasl.scram import nobody
from broker.security.scram import ScramMechanism
from tidegate.kit.scram import MIN_ITERATIONS, ScramCredential, make_credential

MECHANISM = ScramMechanism.SHA_256


def asked(user: str, known: list[tuple[str, ScramCredential]]) -> tuple[bytes, int, int]:
    """Salt, its length, and iterations."""
    shown = nobody(b"secret", user, MECHANISM, known).credential
    return shown.salt, len(shown.salt), shown.iterations


def test_salts_and_iterations_are_like_those_of_users_there_are() -> None:
    java = make_credential("sha256", "p", salt=b"j" * 26, iterations=8192)
    others = make_credential("sha256", "p", salt=b"o" * 100)
    known = [("java", java), ("others", others)]
    shapes = {asked(f"user-{number}", known)[1:] for number in range(100)}
    assert shapes == {(26, 8192), (100, MIN_ITERATIONS)}
    assert asked("x", [])[1:] == (24, MIN_ITERATIONS)


def test_the_same_user_is_always_asked_the_same() -> None:
    known = [(f"known-{n}", make_credential("sha256", "p", salt=b"s" * (20 + n))) for n in range(10)]
    before = asked("x", known)
    assert asked("x", known) == before
    assert asked("x", known[::-1]) == before
    assert asked("y", known)[0] != before[0]
