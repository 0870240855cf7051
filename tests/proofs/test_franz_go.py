"""franz-go's own tests of its client pass against our broker as against Apache Kafka."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.proofs import effort
from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

_QUICK = "^(TestClient_Produce|TestGroupETL|TestTxnEtl|TestIssue325|TestIssue434|TestIssue810|TestIssue865|TestConsumeRegex)$"
"""Producing with every codec, groups with every balancer, transactions, pausing, regular expressions."""
_SETTINGS = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


def outcomes(folder: Path, broker: Any, *, run: str, records: int) -> dict[str, str]:
    """Name of each test to PASS, FAIL or SKIP; what the tests wrote is in the folder."""
    home = or_skip(lambda: require("franz-go")).absolute()
    log = folder / "kgo.log"
    environment: Mapping[str, str] = {
        **os.environ,
        "KGO_SEEDS": broker.bootstrap_servers,
        "KGO_TEST_RECORDS": str(records),
        "KGO_TEST_MAX_TOPIC_PARTS": "3",
        "KGO_TEST_RF": "1",
        "KGO_LOG_LEVEL": "none",
    }
    command = [str(home / "bin" / "kgo.test"), "-test.v", "-test.timeout", "25m", "-test.run", run]
    with log.open("wb") as out:
        where = home / "sources" / "pkg" / "kgo"
        subprocess.run(command, env=environment, stdout=out, stderr=subprocess.STDOUT, cwd=where, check=False)
    matches = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", log.read_text(errors="replace"), re.MULTILINE)
    return {name: outcome for outcome, name in matches}


@pytest.mark.timeout(3600)
def test_franz_go_s_own_tests(tmp_path: Path, record_property: Any, request: pytest.FixtureRequest) -> None:
    everything = bool(effort(0, 1))
    run, records = (".", 20_000) if everything else (_QUICK, 2_000)
    broker = TidegateBroker(tmp_path / "tidegate", _SETTINGS)
    broker.start()
    try:
        ours = outcomes(tmp_path, broker, run=run, records=records)
    finally:
        broker.stop()
    assert ours, (tmp_path / "kgo.log").read_text(errors="replace")[-2000:]
    failed = sorted(name for name, outcome in ours.items() if outcome == "FAIL")
    record_property("passed", sum(outcome == "PASS" for outcome in ours.values()))
    record_property("skipped", sum(outcome == "SKIP" for outcome in ours.values()))
    assert not failed
    if everything:
        theirs: KafkaBroker = request.getfixturevalue("apache_kafka")
        (tmp_path / "apache").mkdir()
        assert ours == outcomes(tmp_path / "apache", theirs, run=run, records=records)
