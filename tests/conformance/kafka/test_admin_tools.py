"""Kafka's administration tools work on a cluster of one broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.tidegate_broker import TidegateBroker

Tools = Callable[..., str]
pytestmark = [pytest.mark.servers, pytest.mark.proof]

ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture
def run(kafka_tools: Tools, tidegate_broker: TidegateBroker) -> Tools:
    address = ("--bootstrap-server", tidegate_broker.bootstrap_servers)
    return lambda tool, *arguments: kafka_tools(tool, *address, *arguments)


@pytest.fixture
def topic(run: Tools) -> str:
    run("kafka-topics", "--create", "--if-not-exists", "--topic", "admin-tools", "--partitions", "2")
    return "admin-tools"


def test_the_quorum_is_this_node(run: Tools) -> None:
    status = run("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId:\s+1\n", status)
    assert re.search(r"MaxFollowerLag:\s+0\n", status)


def test_features_go_down_and_up(run: Tools) -> None:
    run("kafka-features", "downgrade", "--feature", "transaction.version=1")
    run("kafka-features", "upgrade", "--feature", "transaction.version=2")
    described = run("kafka-features", "describe")
    assert re.search(r"Feature: transaction.version\s.*FinalizedVersionLevel: 2\s", described)
    assert re.search(r"Feature: kraft.version\s.*FinalizedVersionLevel: 0\s", described)


@pytest.mark.long
def test_partitions_that_stay_have_moved(run: Tools, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1]}]}))
    started = run(REASSIGN, "--execute", "--reassignment-json-file", str(plan), "--throttle", "1000000")
    assert "Successfully started partition reassignment for admin-tools-0" in started
    assert "is completed" in run(REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    assert "No partition reassignments found" in run(REASSIGN, "--list")
    elected = run(ELECTION, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Valid replica already elected for partitions admin-tools-0" in elected


@pytest.mark.long
def test_brokers_and_loggers_are_configured(run: Tools) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    run("kafka-configs", *broker, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in run("kafka-configs", *broker, "--describe")
    assert "num.network.threads=3" in run("kafka-configs", *broker, "--describe", "--all")
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    run("kafka-configs", *loggers, "--alter", "--add-config", "tidegate.kit.service=DEBUG")
    assert "tidegate.kit.service=DEBUG" in run("kafka-configs", *loggers, "--describe")
    run("kafka-configs", *loggers, "--alter", "--delete-config", "tidegate.kit.service")


@pytest.mark.long
def test_the_cluster_is_this_broker(kafka_tools: Tools, tidegate_broker: TidegateBroker, run: Tools) -> None:
    address = ("--bootstrap-server", tidegate_broker.bootstrap_servers)
    assert "unfenced" in kafka_tools("kafka-cluster", "list-endpoints", *address)
    assert kafka_tools("kafka-cluster", "cluster-id", *address).startswith("Cluster ID: ")
    assert "Leader" in run("kafka-metadata-quorum", "describe", "--replication")


@pytest.mark.long
def test_records_are_deleted_and_logs_measured(run: Tools, topic: str, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 0}]}))
    assert "low_watermark: 0" in run("kafka-delete-records", "--offset-json-file", str(offsets))
    assert f"{topic}:0:0" in run("kafka-get-offsets", "--topic", topic)
    assert topic in run("kafka-log-dirs", "--describe", "--topic-list", topic)
