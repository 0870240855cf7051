"""A player: ``player.py anna Solaris 40`` plays forty minutes from where anna stopped, ``player.py anna`` lists her shows.

A position is a record with the key anna/Solaris. All positions of a viewer are in one partition, so a player that starts
reads one partition, and no group keeps offsets for it.
"""

import json
import sys
import zlib

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

KAFKA = {"bootstrap.servers": "127.0.0.1:9092"}
TOPIC = "positions"


def partition_of(viewer, count):
    return zlib.crc32(viewer.encode()) % count


def send(producer, count, viewer, title, minute):
    value = json.dumps({"viewer": viewer, "title": title, "minute": minute})
    producer.produce(TOPIC, key=f"{viewer}/{title}", value=value, partition=partition_of(viewer, count))


def positions(viewer, partition):
    """Where the viewer stopped, by show."""
    settings = {"group.id": "player", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**KAFKA, **settings})
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
    stopped = {}
    while (message := consumer.poll(30)) is not None and not message.error():  # the end of the partition is an "error"
        position = json.loads(message.value())
        if position["viewer"] == viewer:
            stopped[position["title"]] = position["minute"]
    consumer.close()
    return stopped


def main(viewer, title=None, minutes=0):
    producer = Producer(KAFKA)
    count = len(producer.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions)
    stopped = positions(viewer, partition_of(viewer, count))
    if title is None:
        for known, minute in sorted(stopped.items()):
            print(f"{known}: minute {minute}")
        return
    began = stopped.get(title, 0)
    for minute in range(began + 1, began + int(minutes) + 1):
        send(producer, count, viewer, title, minute)
    producer.flush()
    print(f"{viewer} watched {title} from minute {began} to {began + int(minutes)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
