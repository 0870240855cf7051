"""A user with few rights gets the same response from each API as from Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.handlers import ROUTES
from tests.conformance.access.brokers import apache, ours, walked
from tests.conformance.access.walk import recorded


def differences(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    lines = []
    for user, asked in theirs.items():
        for name, told in asked.items():
            # Which APIs are served another test compares.
            if name in mine[user] and mine[user][name] != told:
                lines.append(f"{user} {name}:\n  ours   {mine[user][name]}\n  kafka  {told}")
    return lines


def test_every_api_tells_who_may_do_little_what_kafka_tells(tmp_path: Path) -> None:
    with ours(tmp_path) as ports:
        lines = differences(walked(ports), recorded())
    assert not lines, "\n".join(lines)


@pytest.mark.proof
def test_the_recorded_answers_are_those_of_kafka(tmp_path: Path) -> None:
    with apache(tmp_path) as ports:
        lines = differences(walked(ports), recorded())
    assert not lines, "\n".join(lines)


def test_no_api_is_left_out() -> None:
    asked = {name.split()[0] for name in recorded()["nobody"]}
    assert {route.key.title for route in ROUTES.values()} - asked == {
        # These ask nobody for rights, or are part of saying who one is.
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        "GetTelemetrySubscriptions",
        "PushTelemetry",
        # Tokens are changed by their owners and renewers only.
        "RenewDelegationToken",
        "ExpireDelegationToken",
    }
