"""The metadata log is internal: no request can reach it by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.metadata.image import METADATA_TOPIC
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.exchange import Peer
from tests.support.broker import BrokerThread, settings

BATCH = encode_batch([Record(b"k", b"not a record of the metadata", timestamp_ms=1)])
ID = "00000000-0000-0000-0000-000000000001"


def asked(directory: str) -> dict[str, tuple[int, int, dict[str, Any]]]:
    partition = {"partition_index": 0}
    return {
        "produce": (0, 9, {"acks": -1, "timeout": 1000, "topic_data": [
            {"name": METADATA_TOPIC, "partition_data": [{"index": 0, "records": BATCH}]}]}),
        "produce by id": (0, 13, {"acks": -1, "timeout": 1000, "topic_data": [
            {"topic_id": ID, "partition_data": [{"index": 0, "records": BATCH}]}]}),
        "fetch": (1, 12, {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, "replica_id": -1,
            "topics": [{"topic": METADATA_TOPIC, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}]}),
        "list offsets": (2, 6, {"replica_id": -1, "topics": [
            {"name": METADATA_TOPIC, "partitions": [{**partition, "timestamp": -1}]}]}),
        "commit": (8, 8, {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": [
            {"name": METADATA_TOPIC, "partitions": [{**partition, "committed_offset": 0}]}]}),
        "delete records": (21, 2, {"timeout": 1000, "topics": [{"name": METADATA_TOPIC, "partitions": [{**partition, "offset": -1}]}]}),
        "end of an epoch": (23, 4, {"replica_id": -1, "topics": [
            {"topic": METADATA_TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}]}),
        "marker": (27, 1, {"markers": [{"producer_id": 1, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
            "topics": [{"name": METADATA_TOPIC, "partition_indexes": [0]}]}]}),
        "move": (34, 2, {"dirs": [{"path": directory, "topics": [{"name": METADATA_TOPIC, "partitions": [0]}]}]}),
        "producers": (61, 0, {"topics": [{"name": METADATA_TOPIC, "partition_indexes": [0]}]}),
    }  # fmt: skip


def codes(answer: Any) -> set[str]:
    """Every error in an answer."""
    if isinstance(answer, list):
        return set().union(*map(codes, answer))
    if not isinstance(answer, dict):
        return set()
    codes_found = {answer["error_code"]} if "error_code" in answer else set()
    return codes_found.union(*(codes(value) for value in answer.values()))


def test_clients_cannot_reach_the_metadata_log_by_its_name(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path / "data")
    with BrokerThread(broker_settings) as broker:
        peer = Peer(broker.port)
        end = broker.server.broker.metadata.log.log_end_offset
        for what, (key, version, body) in asked(broker_settings["log.dirs"]).items():
            reached_codes = codes(peer.ask(key, version, body)) - {"none"}
            assert reached_codes == {"unknown_topic_id" if what == "produce by id" else "unknown_topic_or_partition"}, (
                what
            )
        assert broker.server.broker.metadata.log.log_end_offset == end
        assert broker.server.broker.metadata.log.log_start_offset == 0
        peer.hang_up()
    with BrokerThread(broker_settings) as broker:
        assert broker.server.broker.metadata.log.log_end_offset >= end


@pytest.mark.parametrize("beside", [True, False])
def test_the_metadata_may_have_a_directory_of_its_own(tmp_path: Path, beside: bool) -> None:
    logs = [str(tmp_path / "one"), str(tmp_path / "two")]
    home = str(tmp_path / "own") if beside else logs[1]
    broker_settings = {**settings(tmp_path), "log.dirs": ",".join(logs), "metadata.log.dir": home}
    for start in range(2):
        with BrokerThread(broker_settings) as broker:
            inside = broker.server.broker
            if start == 0:
                inside.topics.create("t", partitions=4)
            assert [log.partition for log in inside.metadata.logs("t")] == [0, 1, 2, 3]
            peer = Peer(broker.port)
            shown = peer.ask(35, 4, {"topics": None})["results"]
            peer.hang_up()
            assert sorted(log_dir["log_dir"] for log_dir in shown) == logs
            assert sum(len(log_dir["topics"][0]["partitions"]) for log_dir in shown) == 4
    assert (Path(home) / f"{METADATA_TOPIC}-0").is_dir()
    assert sorted(path.name for path in tmp_path.glob("*/t-*")) == ["t-0", "t-1", "t-2", "t-3"]
