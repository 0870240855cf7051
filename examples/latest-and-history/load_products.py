"""Loads the newest record of every product into a dict, as a service does when it starts, and measures how long it takes."""

import json
import sys
import time

from broker.client import ClientConfig
from broker.client.blocking import Admin, BatchConsumer


def read(topic):
    """All pairs of key and value that the topic has now; those of a key in their order."""
    config = ClientConfig("127.0.0.1:9092", {"auto.offset.reset": "earliest"})
    with Admin(config) as admin, BatchConsumer(config) as consumer:
        partitions = [(topic, partition) for partition in consumer.partitions(topic)]
        ends = admin.end_offsets(partitions)
        consumer.assign(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for fetched in consumer.fetch():
                columns = fetched.columns()
                yield from zip(columns.keys.to_pylist(), columns.values.to_pylist(), strict=True)


def load(topic):
    """Every key with its newest value."""
    return dict(read(topic))


if __name__ == "__main__":
    began = time.monotonic()
    products = load("products")
    took = time.monotonic() - began
    print(f"{len(products):,} products in memory after {took:.1f} s")
    for product in sys.argv[1:]:
        print(product, json.loads(products[product.encode()])["cents"], "cents")
