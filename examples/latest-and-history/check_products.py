"""Compares both topics with DuckDB over the files of what was written, record by record."""

import duckdb
import pyarrow as pa
from load_products import load, read

WRITTEN = "SELECT product, cents, filename FROM read_parquet('round-*.parquet', filename = true)"
EXPECTED = {
    "products": f"SELECT product, arg_max(cents, filename) FROM ({WRITTEN}) GROUP BY product",
    "product-history": f"SELECT product, cents FROM ({WRITTEN})",
}
IN_TOPIC = "SELECT decode(key), (decode(value) ->> 'cents')::BIGINT FROM topic"


def in_memory(pairs):
    """Pairs of keys and values as a table that DuckDB can query."""
    keys, values = zip(*pairs, strict=True)
    return pa.table({"key": pa.array(keys), "value": pa.array(values)})


for name, pairs in (("products", load("products").items()), ("product-history", read("product-history"))):
    topic = in_memory(pairs)
    differences = f"(({EXPECTED[name]}) EXCEPT ALL ({IN_TOPIC})) UNION ALL (({IN_TOPIC}) EXCEPT ALL ({EXPECTED[name]}))"
    different = len(duckdb.sql(differences).fetchall())
    print(f"{name}: {topic.num_rows:,} records, {different} differ from what DuckDB expects")
