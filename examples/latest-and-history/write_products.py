"""Writes products to both topics: ``write_products.py 1`` all of them, ``write_products.py 2`` new prices of some, and so on.

A record is 100 bytes of JSON with the product as key. The same products are in round-1.parquet, for check_products.py.
"""

import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.client import ClientConfig
from broker.client.blocking import BatchProducer
from broker.client.columns import encode_batches
from broker.client.partitioning import murmur2

TOPICS = ("products", "product-history")
ALL, SOME = 1_000_000, 50_000

round_number = int(sys.argv[1])
chance = np.random.default_rng(round_number)
numbers = np.arange(ALL) if round_number == 1 else chance.choice(ALL, SOME, replace=False)
cents = chance.integers(100, 100_000, len(numbers))
keys = pc.binary_join_element_wise("p-", pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 7, padding="0"), "")
price = pa.array(cents).cast(pa.string())
values = pc.binary_join_element_wise('{"product": "', keys, '", "cents": ', price, "")
values = pc.binary_join_element_wise(
    pc.utf8_rpad(pc.binary_join_element_wise(values, ', "name": "', ""), 98, "x"), '"}', ""
)
pq.write_table(pa.table({"product": keys, "cents": cents}), f"round-{round_number}.parquet")

began = time.monotonic()
with BatchProducer(ClientConfig("127.0.0.1:9092")) as producer:
    for topic in TOPICS:
        count = len(producer.partitions(topic))
        where = (murmur2(keys.cast(pa.large_binary())) & 0x7FFFFFFF) % count  # as Java's client does
        for partition in range(count):
            rows = pa.array(np.flatnonzero(where == partition))
            for batch in encode_batches(keys.take(rows), values.take(rows), compression="lz4"):
                producer.send_batch(topic, partition, batch)
    producer.flush()
print(f"wrote {len(numbers):,} records of 100 B to each topic in {time.monotonic() - began:.1f} s")
