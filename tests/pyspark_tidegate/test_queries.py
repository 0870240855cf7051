"""Ten queries over topics in Spark give the rows that DuckDB gives over the same data, which never saw a topic."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pytest

from tests.pyspark_tidegate.test_reading import Topic, reader
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,  # ten seconds in a session that is cold
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GEO = {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "float"}]}
PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "city", "type": ["null", "string"]}, {"name": "geo", "type": ["null", GEO]}],
}
SALE = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "product", "type": ["null", "int"]},
        {"name": "quantity", "type": ["null", "int"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "moment", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "shop", "type": ["null", PLACE]},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "sizes", "type": {"type": "map", "values": ["null", "double"]}},
        {"name": "note", "type": "string"},
        {"name": "scan", "type": "bytes"},
        {"name": "paid", "type": ["null", "string", "long"]},
    ],
}
PRODUCT = {
    "type": "record",
    "name": "Product",
    "fields": [{"name": "code", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
}
SALES: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("product", pa.int32()),
        ("quantity", pa.int32()),
        ("price", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("shop", pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64()), ("lon", pa.float32())]))])),
        ("tags", pa.list_(pa.string())),
        ("sizes", pa.map_(pa.string(), pa.float64())),
        ("note", pa.string()),
        ("scan", pa.binary()),
        ("paid", pa.struct([("string", pa.string()), ("long", pa.int64())])),
    ]
)  # fmt: skip

QUERIES: Final = {
    "joins": """
        SELECT s.id, p.name, q.code FROM sales s LEFT JOIN products p ON s.product = p.code
        FULL OUTER JOIN (SELECT code FROM products WHERE name IS NULL) q ON q.code = s.product
        ORDER BY s.id NULLS FIRST, q.code NULLS FIRST""",
    "windows": """
        SELECT id, row_number() OVER (PARTITION BY product ORDER BY moment, id) AS n,
               sum(quantity) OVER (PARTITION BY product ORDER BY moment, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS last_three,
               lag(price, 2) OVER (ORDER BY id) AS before, dense_rank() OVER (ORDER BY day) AS of_day
        FROM sales ORDER BY id""",
    "nested": """
        SELECT shop.city AS city, min(shop.geo.lat) AS south, max(shop.geo.lon) AS east, count(shop) AS shops, count(*) AS sales
        FROM sales GROUP BY shop.city ORDER BY city NULLS FIRST""",
    "arrays": """
        SELECT tag, count(*) AS n, min(id) AS first FROM (SELECT id, unnest(tags) AS tag FROM sales) t
        GROUP BY tag ORDER BY tag NULLS FIRST""",
    "maps": """
        SELECT id, cardinality(sizes) AS n, sizes['a'] AS a, array_sort(map_keys(sizes)) AS names FROM sales ORDER BY id""",
    "decimals": """
        SELECT product, sum(price) AS total, max(price * CAST(2.5 AS DECIMAL(3, 1))) AS most, min(-price) AS least,
               sum(CAST(price AS DECIMAL(20, 4))) AS exact FROM sales GROUP BY product ORDER BY product NULLS FIRST""",
    "dates and time zones": """
        SELECT id, moment, day, year(day) AS y, date_trunc('hour', moment) AS of_hour, NEW_YORK AS there, day - DATE '2024-02-29' AS since
        FROM sales WHERE moment >= CLOCKS_CHANGE - INTERVAL 30 MINUTES ORDER BY id""",
    "nulls": """
        SELECT id, quantity IS NULL AS unknown, coalesce(quantity, -1) AS given, quantity > 3 AS many,
               product IS DISTINCT FROM quantity AS other FROM sales
        WHERE NOT (quantity > 5) OR product NOT IN (1, 2) ORDER BY id""",
    "groups": """
        SELECT product, day, grouping(product) AS g, count(quantity) AS n, count(DISTINCT shop.city) AS cities FROM sales
        GROUP BY ROLLUP (product, day) ORDER BY g, product NULLS FIRST, day NULLS FIRST""",
    "large texts, bytes and unions": """
        SELECT id, length(note) AS letters, md5(note) AS mark, substring(note, 3, 5) AS part, octet_length(scan) AS size,
               hex(scan) AS digits, paid.string AS card, paid.long AS cents FROM sales
        WHERE paid IS NULL OR paid.string <> '' OR paid.long < 50 ORDER BY id""",
}
OF_SPARK: Final = {
    "unnest(": "explode(",
    "NEW_YORK": "from_utc_timestamp(moment, 'America/New_York')",
    "CLOCKS_CHANGE": "TIMESTAMP '2024-03-10 02:00:00-05:00'",
    "day - DATE '2024-02-29'": "datediff(day, DATE '2024-02-29')",
}
OF_DUCKDB: Final = {  # whose time zones are an extension that is downloaded: times are UTC without saying so
    "NEW_YORK": "moment - INTERVAL (CASE WHEN moment < CLOCKS_CHANGE THEN 5 ELSE 4 END) HOURS",
    "CLOCKS_CHANGE": "TIMESTAMP '2024-03-10 07:00:00'",
}


def made_sales(count: int = 300) -> list[dict[str, Any]]:
    """Rows with nulls at each level, the hours around a change of clocks, and a text of 700 kB."""
    chance = random.Random(23)
    begin = dt.datetime(2024, 3, 9, 12, tzinfo=dt.UTC)

    def or_none(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    def sale(n: int) -> dict[str, Any]:
        at = begin + dt.timedelta(minutes=7 * n, microseconds=chance.randrange(1_000_000))
        geo = {"lat": chance.uniform(-90, 90), "lon": chance.randrange(-180, 180) / 2}
        return {
            "id": n, "product": or_none(chance.randrange(1, 7)), "quantity": or_none(chance.randrange(10)),
            "price": decimal.Decimal(chance.randrange(-(10**11), 10**12)).scaleb(-2), "day": at.date(), "moment": at,
            "shop": or_none({"city": or_none(chance.choice(["Ås", "東京", ""])), "geo": or_none(geo)}),
            "tags": [or_none(chance.choice("abc")) for _ in range(chance.randrange(4))],
            "sizes": {name: or_none(chance.random()) for name in "abc"[: chance.randrange(4)]},
            "note": "é\u0000😀" * (100_000 if n == 7 else chance.randrange(5)), "scan": chance.randbytes(chance.randrange(40)),
            "paid": chance.choice([None, "visa", "", chance.randrange(100)]),
        }  # fmt: skip

    return [sale(n) for n in range(count)]


def as_columns(sale: dict[str, Any]) -> dict[str, Any]:
    """A union is a struct with a field for each of its types."""
    paid = sale["paid"]
    text, number = (paid, None) if isinstance(paid, str) else (None, paid)
    return sale | {"paid": None if paid is None else {"string": text, "long": number}}


@pytest.fixture(scope="module")
def tables(broker: BrokerThread, registry: RegistryThread) -> tuple[dict[str, Topic], duckdb.DuckDBPyConnection]:
    sales = made_sales()
    products = [{"code": n, "name": None if n == 4 else f"product {n}"} for n in range(3, 10)]
    topics = {name: Topic(broker, registry) for name in ("sales", "products")}
    for partition in (0, 1):
        topics["sales"].write(SALE, sales[partition::2], partition)
    topics["products"].write(PRODUCT, products)
    database = duckdb.connect()
    database.register("sales", pa.Table.from_pylist([as_columns(sale) for sale in sales], SALES))
    database.register("products", pa.Table.from_pylist(products))
    return topics, database


def replaced(sql: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        sql = sql.replace(word, other)
    return sql


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Times of UTC don't say so."""
    moments = [(n, f.name) for n, f in enumerate(table.schema) if pa.types.is_timestamp(f.type)]
    for n, name in moments:
        table = table.set_column(n, name, table[name].cast(pa.timestamp("us")))
    return table.to_pylist()


def test_ten_queries_over_topics_give_the_rows_of_duckdb(
    spark: SparkSession, tables: tuple[dict[str, Topic], duckdb.DuckDBPyConnection]
) -> None:
    topics, database = tables
    for name, topic in topics.items():
        reader(spark, topic).load().select("value.*").cache().createOrReplaceTempView(name)  # each topic is read once
    different = {}
    for name, sql in QUERIES.items():
        there = rows(spark.sql(replaced(sql, OF_SPARK)).toArrow())
        here = rows(database.sql(replaced(sql, OF_DUCKDB)).to_arrow_table())
        assert len(here) > 3, name
        if there != here:
            at = next((n for n, (row, other) in enumerate(zip(there, here, strict=False)) if row != other), len(here))
            different[name] = (len(there), len(here), there[at : at + 1], here[at : at + 1])
    assert not different
