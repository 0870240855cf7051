"""Metadata records of each kind are written and read back; invalid bytes raise CorruptMessage and no other error."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.metadata.records import (
    RECORD_TYPES,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    decode_record,
    encode_record,
)

ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.mark.parametrize(
    "record",
    [
        *(made() for made in RECORD_TYPES.values()),
        TopicRecord(name="ä" * 100, topic_id=ID),
        ConfigRecord(resource_type=2, resource_name="t", name="a.b", value=None),
        PartitionRecord(
            partition_id=3, topic_id=ID, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, directories=(ID,)
        ),
        RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=ID,
            end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=65535, security_protocol=0),),
            features=(BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=30),),
            rack="r",
            fenced=False,
            log_dirs=(ID,),
        ),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_written_record_is_read_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_a_topic_record_has_kafkas_bytes() -> None:
    assert encode_record(TopicRecord(name="ab", topic_id=ID)) == b"\x01\x02\x00" + b"\x03ab" + ID.bytes + b"\x00"


@settings(deadline=None)
@given(st.binary(max_size=60), st.sampled_from([*RECORD_TYPES, 99]))
def test_noise_is_no_record(noise: bytes, key: int) -> None:
    for data in (noise, bytes([1, key, 0]) + noise):
        try:
            decode_record(data)
        except CorruptMessage as error:
            assert "metadata record" in str(error)
