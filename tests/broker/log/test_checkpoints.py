"""Kafka's checkpoint files: round trips, and damaged files."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import KafkaStorageError
from broker.log.checkpoints import (
    parse_offsets,
    read_offsets,
    read_topic_id,
    uuid_from_text,
    uuid_text,
    write_offsets,
    write_topic_id,
)


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(path, {("b", 0): 7, ("a", 10): 2**40})
    assert path.read_text() == "0\n2\na 10 1099511627776\nb 0 7\n"
    assert read_offsets(path) == {("a", 10): 2**40, ("b", 0): 7}
    assert read_offsets(tmp_path / "absent") == {}


@settings(deadline=None)
@given(st.text(max_size=60))
def test_noise_is_no_checkpoint(text: str) -> None:
    try:
        parse_offsets(text)
    except ValueError:
        return
    assert text.splitlines()[:1] == (["0"] if text else [])


@given(st.uuids())
def test_ids_have_kafkas_text(value: uuid.UUID) -> None:
    assert len(uuid_text(value)) == 22
    assert uuid_from_text(uuid_text(value)) == value


def test_the_id_of_the_metadata_topic_is_written_as_kafka_writes_it() -> None:
    assert uuid_text(uuid.UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    for wrong in ("", "AAAA", "!" * 22, "AAAAAAAAAAAAAAAAAAAAAQAA"):
        with pytest.raises(ValueError, match="UUID|bytes"):
            uuid_from_text(wrong)


def test_a_topic_id_that_a_power_cut_took_is_none(tmp_path: Path) -> None:
    assert read_topic_id(tmp_path) is None
    (tmp_path / "partition.metadata").write_bytes(b"")
    assert read_topic_id(tmp_path) is None
    (tmp_path / "partition.metadata").write_bytes(bytes(40))
    assert read_topic_id(tmp_path) is None


@pytest.mark.parametrize("content", ["version: 0\n", "version: 0\ntopic_id: x\n", "nonsense"])
def test_a_damaged_topic_id_is_named(tmp_path: Path, content: str) -> None:
    made = uuid.uuid4()
    write_topic_id(tmp_path, made)
    assert read_topic_id(tmp_path) == made
    (tmp_path / "partition.metadata").write_text(content)
    with pytest.raises(KafkaStorageError, match="partition.metadata does not tell the topic's id"):
        read_topic_id(tmp_path)
