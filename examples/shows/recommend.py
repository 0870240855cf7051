"""``recommend.py Solaris``: shows that its viewers watched too. It reads as a consumer group.

The group's offsets are kept, so a second start reads only what is new, and adds it to watched.json.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer
from player import KAFKA, TOPIC

WATCHED = Path("watched.json")
ENOUGH = 30
"""A person has watched a show after so many minutes of it."""

watched = {
    viewer: set(titles) for viewer, titles in (json.loads(WATCHED.read_text()) if WATCHED.exists() else {}).items()
}
settings = {"group.id": "recommend", "auto.offset.reset": "earliest", "enable.auto.commit": False}
consumer = Consumer({**KAFKA, **settings, "enable.partition.eof": True})
consumer.subscribe([TOPIC])
read, ended = 0, set()
while not consumer.assignment() or len(ended) < len(consumer.assignment()):
    for message in consumer.consume(1000, timeout=1):
        if message.error():
            ended.add(message.partition())
            continue
        read += 1
        position = json.loads(message.value())
        if position["minute"] >= ENOUGH:
            watched.setdefault(position["viewer"], set()).add(position["title"])
WATCHED.write_text(json.dumps({viewer: sorted(titles) for viewer, titles in watched.items()}))
if read:
    consumer.commit(asynchronous=False)  # after the work: who dies before reads again what it adds again
consumer.close()
title = sys.argv[1]
others = Counter(other for titles in watched.values() if title in titles for other in titles - {title})
print(f"read {read:,} positions")
for other, viewers in others.most_common(2):
    print(f"{viewers} viewers of {title} watched {other} too")
