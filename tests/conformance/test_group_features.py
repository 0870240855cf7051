"""A cluster in which a group protocol's feature is at level 0 refuses that protocol, and accepts it again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.differential.exchange import Peer
from tests.servers.kafka import KafkaBroker
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

MEMBER = {"group_id": "g", "member_id": "m", "member_epoch": 0}
DESCRIBED = {"group_ids": ["g", "h"]}
SESSION = {"group_id": "g", "member_id": "AAAAAAAAAAAAAAAAAAAAAA"}
ASKED: dict[str, list[tuple[int, int, dict[str, Any]]]] = {
    "group.version": [(68, 1, MEMBER), (69, 1, DESCRIBED)],
    "streams.version": [(88, 0, MEMBER), (89, 0, DESCRIBED)],
    "share.version": [
        (76, 1, MEMBER),
        (77, 1, DESCRIBED),
        (78, 1, {**SESSION, "share_session_epoch": 0}),
        (79, 1, SESSION),
        (90, 0, {"groups": [{"group_id": "g"}]}),
        (91, 0, {"group_id": "g"}),
        (92, 0, {"group_id": "g"}),
    ],
}
"""Requests of each feature; where a request names groups, each of them has its own error."""
UPGRADE, DOWNGRADE = 1, 2


@pytest.fixture(params=[TidegateBroker, KafkaBroker])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    """A separate broker, because features apply to the whole cluster."""
    broker = request.param(tmp_path)
    broker.start()
    peer = Peer(int(broker.bootstrap_servers.rpartition(":")[2]))
    try:
        yield peer
    finally:
        peer.hang_up()
        broker.stop()


def set_level(peer: Peer, feature: str, level: int) -> None:
    update = {"feature": feature, "max_version_level": level, "upgrade_type": UPGRADE if level else DOWNGRADE}
    assert peer.ask(57, 2, {"feature_updates": [update]})["error_code"] == "none"

    def in_use() -> bool:
        answer = peer.ask(18, 3, {"client_software_name": "test", "client_software_version": "1"})
        return any(entry["name"] == feature for entry in answer["finalized_features"]) == bool(level)

    wait_until(in_use, f"{feature} is {level}")


def refusals(answer: dict[str, Any]) -> list[str]:
    return [answer["error_code"]] if "error_code" in answer else [group["error_code"] for group in answer["groups"]]


def test_a_protocol_whose_feature_is_off_is_refused(peer: Peer) -> None:
    for feature, requests in ASKED.items():
        set_level(peer, feature, 0)
        for key, version, body in requests:
            answer = peer.ask(key, version, body)
            assert set(refusals(answer)) == {"unsupported_version"}, (feature, key)
            if key in (69, 77, 89):
                assert [group["group_id"] for group in answer["groups"]] == ["g", "h"]
        set_level(peer, feature, 1)
        for key, version, body in requests:
            assert "unsupported_version" not in refusals(peer.ask(key, version, body)), (feature, key)
