"""``replay.py changes-1.jsonl 300`` writes recorded changes to the topic changes, 300 times as fast as they came."""

import json
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

recorded = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
speed = float(sys.argv[2])
producer = Producer({"bootstrap.servers": "127.0.0.1:9092"})
began, first = time.monotonic(), recorded[0]["timestamp"]
for change in recorded:
    time.sleep(max(0, (change["timestamp"] - first) / speed - (time.monotonic() - began)))
    producer.produce("changes", json.dumps(change), change["wiki"])
    producer.poll(0)
producer.flush()
print(f"{len(recorded)} changes of {recorded[-1]['timestamp'] - first} seconds")
