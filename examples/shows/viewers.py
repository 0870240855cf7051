"""Five hundred viewers who watch for an evening, always the same. Their positions are also in positions.jsonl, for DuckDB."""

import json
import random
from pathlib import Path

from confluent_kafka import Producer
from player import KAFKA, TOPIC, send

LENGTHS = {"Alien": 117, "Brazil": 132, "Metropolis": 153, "Solaris": 167, "Stalker": 162}

chance = random.Random(7)
producer = Producer(KAFKA)
count = len(producer.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions)
raw = []
for number in range(500):
    viewer = f"viewer-{number}"
    taste = ["Solaris", "Stalker"] if number % 3 == 0 else ["Alien", "Brazil", "Metropolis"]
    for title in chance.sample(taste, 2):
        stops = chance.choice([LENGTHS[title], chance.randint(5, LENGTHS[title])])
        for minute in range(5, stops + 1, 5):
            raw.append({"viewer": viewer, "title": title, "minute": minute})
            send(producer, count, viewer, title, minute)
            producer.poll(0)
producer.flush()
Path("positions.jsonl").write_text("".join(f"{json.dumps(position)}\n" for position in raw))
print(f"{len(raw):,} positions of 500 viewers")
