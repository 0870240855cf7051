"""The captured tables, and the order in which they are read."""

from __future__ import annotations

from connectors.debezium.filters import Filters
from connectors.postgres.config import PostgresConfig
from connectors.postgres.tables import captured
from tidegate.kit.config import parse

GIVEN = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
TABLES = [(1, "public", "a"), (2, "public", "b"), (3, "public", "c"), (4, "shop", "a"), (5, "shop", "orders_1")]


def read(include: str) -> list[int]:
    config = parse(PostgresConfig, {**GIVEN, "table.include.list": include})
    return captured(TABLES, Filters(config), config)


def test_tables_are_read_in_the_order_of_the_include_list() -> None:
    assert read("public.c,public.a") == [3, 1]
    assert read("shop.*,public.b,public.*") == [4, 5, 2, 1, 3]


def test_expressions_may_have_javas_named_groups() -> None:
    assert read(r"shop\.(?<kind>orders|clients)_\d+") == [5]
    assert read(r"(?<schema>public|shop)\.a") == [1, 4]
