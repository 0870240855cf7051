"""The quickstarts of ksqlDB's tutorials: users, page views, orders, a web shop's logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connectors.datagen.quickstarts.shapes import CITIES, Quickstart, between, count, of, one_of, record, text

__all__ = ["BASICS"]

_TIME: Final = between("long", 1_487_715_775_521, 1_519_273_364_600)
_USER: Final = {
    "registertime": _TIME,
    "userid": text("User_[1-9]"),
    "regionid": text("Region_[1-9]"),
    "gender": one_of("MALE", "FEMALE", "OTHER"),
}

BASICS: Final[Mapping[str, Quickstart]] = {
    "clickstream": Quickstart(
        record(
            "clickstream.events",
            {
                "ip": text(r"(111|122|222|233)\.1[0-4][0-9]\.[1-9][0-9]\.[1-9]"),
                "userid": between("int", -1, 40),
                "remote_user": one_of("-"),
                "time": count("string", 1, 10),
                "_time": count("long", 1, 10),
                "request": text(r"GET /(index|orders|tides|login)\.html HTTP/1\.1"),
                "status": one_of("200", "302", "404", "405", "406", "407"),
                "bytes": text("[1-9][0-9]{2,4}"),
                "referrer": one_of("-"),
                "agent": one_of("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (compatible; TideBot/1.0)"),
            },
        ),
        "ip",
    ),
    "clickstream_codes": Quickstart(
        record(
            "clickstream.codes",
            {"code": "int", "definition": "string"},
            [
                {"code": 200, "definition": "Successful"},
                {"code": 302, "definition": "Redirect"},
                {"code": 404, "definition": "Page not found"},
                {"code": 405, "definition": "Method not allowed"},
                {"code": 406, "definition": "Not acceptable"},
                {"code": 407, "definition": "Proxy authentication required"},
            ],
        ),
        "code",
    ),
    "clickstream_users": Quickstart(
        record(
            "clickstream.users",
            {
                "user_id": count("int", 1),
                "username": text("[a-z]{4,8}_[0-9]{2}"),
                "registered_at": between("long", 1_407_645_330_000, 1_502_339_792_000),
                "first_name": one_of("Ada", "Bela", "Chidi", "Dora", "Emil"),
                "last_name": one_of("Abe", "Brandt", "Costa", "Dahl", "Eze"),
                "city": one_of(*CITIES),
                "level": one_of("Gold", "Silver", "Platinum"),
            },
        ),
        "user_id",
    ),
    "credit_cards": Quickstart(
        record(
            "datagen.example.users",
            {
                "card_id": of("int", iteration={"start": 1, "restart": 25}),
                "card_number": between("long", 4_000_000_000_000_000, 5_000_000_000_000_000),
                "cvv": between("int", 100, 1000),
                "expiration_date": text("(0[1-9]|1[0-2])/2[6-9]"),
            },
        ),
        "card_id",
    ),
    "inventory": Quickstart(
        record("ksql.inventory", {"id": count("long"), "quantity": count("long"), "productid": count("long")}), "id"
    ),
    "orders": Quickstart(
        record(
            "ksql.orders",
            {
                "ordertime": _TIME,
                "orderid": count("int"),
                "itemid": text("Item_[1-9][0-9]{0,2}"),
                "orderunits": between("double", 0.1, 10.0),
                "address": record(
                    "ksql.address",
                    {
                        "city": text("City_[1-9]{0,2}"),
                        "state": text("State_[1-9]{0,2}"),
                        "zipcode": between("long", 10_000, 99_999),
                    },
                ),
            },
        ),
        "orderid",
    ),
    "pageviews": Quickstart(
        record(
            "ksql.pageviews",
            {"viewtime": count("long", 1, 10), "userid": text("User_[1-9]"), "pageid": text("Page_[1-9][0-9]")},
        ),
        "viewtime",
    ),
    "product": Quickstart(
        record(
            "ksql.product",
            {
                "id": count("long"),
                "name": count("string"),
                "description": count("string"),
                "price": count("double"),
            },
        ),
        "id",
    ),
    "purchases": Quickstart(
        record(
            "datagen.example.purchase",
            {
                "id": count("long"),
                "item_type": one_of("anchor", "buoy", "chart", "compass", "lantern", "oar", "rope", "sail"),
                "quantity": between("long", 1, 10),
                "price_per_unit": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": 4,
                    "scale": 2,
                    "arg.properties": {"range": {"min": 10.0, "max": 50.0}},
                },
            },
        ),
        "id",
    ),
    "ratings": Quickstart(
        record(
            "ksql.ratings",
            {
                "rating_id": count("long", 1),
                "user_id": between("int", -1, 20),
                "stars": between("int", 1, 6),
                "route_id": between("int", 1, 9999),
                "rating_time": count("long", 1, 12),
                "channel": one_of("web", "iOS", "ios", "iOS-test", "android"),
                "message": one_of("on time", "late again", "friendly crew", "cold coffee", "smooth crossing"),
            },
        ),
        "rating_id",
    ),
    "stock_trades": Quickstart(
        record(
            "ksql.StockTrade",
            {
                "side": one_of("BUY", "SELL"),
                "quantity": between("int", 1, 5000),
                "symbol": one_of("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
                "price": between("int", 5, 1000),
                "account": text("[A-Z]{3}[1-9]{3}"),
                "userid": text("User_[1-9]"),
            },
        ),
        "symbol",
    ),
    "stores": Quickstart(
        record(
            "datagen.example.stores",
            {"store_id": "int", "city": "string", "state": "string"},
            [{"store_id": n, "city": city, "state": city[:2].upper()} for n, city in enumerate(CITIES, 1)],
        ),
        "store_id",
    ),
    "transactions": Quickstart(
        record(
            "datagen.example.transactions",
            {
                "transaction_id": count("long", 1),
                "card_id": between("long", 1, 25),
                "user_id": text("User_[1-9]{0,1}"),
                "purchase_id": count("long"),
                "store_id": between("int", 1, 8),
            },
        ),
        "transaction_id",
    ),
    "users": Quickstart(record("ksql.users", _USER), "userid"),
    "users_": Quickstart(
        record(
            "ksql.users",
            _USER
            | {
                "interests": {
                    "type": "array",
                    "items": "string",
                    "arg.properties": {
                        "options": [["Game", "News"], ["Game", "Sport"], ["News", "Movies"], ["News", "Travel"]]
                    },
                },
                "contactinfo": {
                    "type": "map",
                    "values": "string",
                    "arg.properties": {
                        "options": [
                            {"phone": f"555010{n}", "city": city, "state": city[:2].upper(), "zipcode": f"1000{n}"}
                            for n, city in enumerate(CITIES)
                        ]
                    },
                },
            },
        ),
        "userid",
    ),
}
