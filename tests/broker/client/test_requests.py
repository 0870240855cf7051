"""Answers that are read without their library."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from broker.client.requests import TopicMetadataRequest, TopicNamesRequest
from broker.protocol.codec import writer
from broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NODES = st.lists(st.integers(0, 5), max_size=3)
PARTITIONS = st.builds(
    MetadataResponsePartition,
    partition_index=st.integers(0, 9),
    replica_nodes=NODES,
    isr_nodes=NODES,
    offline_replicas=NODES,
)
TOPICS = st.builds(
    MetadataResponseTopic,
    error_code=st.integers(0, 50),
    name=st.text(min_size=1, max_size=300),
    topic_id=st.uuids(),
    is_internal=st.booleans(),
    partitions=st.lists(PARTITIONS, max_size=3),
)


def read(request, answer):
    return request.prepare({3: (0, 12)}).RESPONSE_TYPE.decode(answer)


@given(st.lists(TOPICS, max_size=5))
def test_names_of_topics_are_those_of_the_whole_answer(topics):
    answer = bytearray()
    response = MetadataResponse(brokers=[MetadataResponseBroker(host="h", port=1)], cluster_id="c", topics=topics)
    writer(MetadataResponse, 12, True)(answer, response)
    whole = read(TopicMetadataRequest(None), bytes(answer))
    assert read(TopicNamesRequest(), bytes(answer)).topics == [(topic[1], topic[3]) for topic in whole.topics]
    assert [topic[1] for topic in whole.topics] == [topic.name for topic in topics]


def test_numbers_of_more_than_a_byte_are_read():
    topic = MetadataResponseTopic(
        name="x" * 249, topic_id=uuid.uuid4(), partitions=[MetadataResponsePartition(replica_nodes=range(200))] * 20_000
    )
    answer = bytearray()
    writer(MetadataResponse, 12, True)(answer, MetadataResponse(topics=[topic, MetadataResponseTopic(name="y")]))
    assert read(TopicNamesRequest(), bytes(answer)).topics == [("x" * 249, False), ("y", False)]
