"""Quickstarts for single industries: pizzas, shoes, games, insurance, payrolls, vehicles, logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connectors.datagen.quickstarts.shapes import (
    CITIES,
    NAMES,
    Quickstart,
    at,
    between,
    count,
    of,
    one_of,
    record,
    text,
)

__all__ = ["INDUSTRIES"]

_SHOES: Final = [f"{n:08x}-5a1e-4b00-8c00-{n * 7:012x}" for n in range(1, 61)]
_SHOPPERS: Final = [f"{n:08x}-c057-4c00-9d00-{n * 11:012x}" for n in range(1, 61)]
_ADDRESSES: Final = [f"203.0.113.{n}" for n in range(1, 100)]
"""From an address range that is reserved for documentation (RFC 5737)."""
_DAY: Final = at("int", "date", range={"min": 18_000, "max": 19_000})
_YEAR_2021: Final = {"min": 1_609_459_200_000, "max": 1_640_995_199_000}


def _since_2021(step: int, start: int = 1_609_459_200_000) -> dict[str, Any]:
    return at("long", "timestamp-millis", iteration={"start": start, "step": step})


def _mail(name: str) -> str:
    return f"{name.lower().replace(' ', '.')}@example.com"


def _named(name: str) -> dict[str, str]:
    first, _, last = name.partition(" ")
    return {"first_name": first, "last_name": last, "email": _mail(name)}


def _pizza(name: str, first: int, step: int, status: str, **more: Any) -> Quickstart:
    order = {"store_id": between("int", 1, 10), "store_order_id": count("int", first, step)}
    return Quickstart(
        record(f"pizza_orders.{name}", {**order, "date": _DAY, "status": one_of(status), **more}), "store_id"
    )


_LINE: Final = record(
    "pizza_orders.order_line",
    {"product_id": "int", "category": "string", "quantity": "int", "unit_price": "double", "net_price": "double"},
    [
        {
            "product_id": n,
            "category": kind,
            "quantity": n % 4 + 1,
            "unit_price": price,
            "net_price": price * (n % 4 + 1),
        }
        for n, (kind, price) in enumerate(
            (("pizza", 11.5), ("calzone", 13.25), ("salad", 6.5), ("dessert", 5.0)) * 3, 60
        )
    ],
)
_FLEET: Final = {"vehicle_id": between("int", 1000, 9999)}
_PLAYERS: Final = [
    {"player_id": 1001 + n, "player_name": name, "ip": _ADDRESSES[n]} for n, name in enumerate(NAMES * 4) if n < 99
]

INDUSTRIES: Final[Mapping[str, Quickstart]] = {
    "campaign_finance": Quickstart(
        record(
            "datagen.campaign_finance",
            {
                "time": between("long", 1_587_715_775_521, 1_619_273_364_600),
                "candidate_id": text("[A-Z][1-9]{8}"),
                "party_affiliation": one_of("REP", "DEM", "IND"),
                "contribution": between("int", 20, 3500),
            },
        ),
        "candidate_id",
    ),
    "device_information": Quickstart(
        record(
            "device_information.device_information",
            {
                "device_ip": one_of(*_ADDRESSES),
                "mac_address": text("02(-[0-9A-F]{2}){5}"),
                "owner": one_of(*NAMES),
            },
        ),
        "device_ip",
    ),
    "fleet_mgmt_description": Quickstart(
        record(
            "fleet_mgmt.fleet_mgmt_description",
            {**_FLEET, "driver_name": one_of(*NAMES), "license_plate": text(r"[A-Z]{2}\d{6}[A-Z]")},
        ),
        "vehicle_id",
    ),
    "fleet_mgmt_location": Quickstart(
        record(
            "fleet_mgmt.fleet_mgmt_location",
            {
                **_FLEET,
                "location": record(
                    "fleet_mgmt.location",
                    {"latitude": between("double", -90, 90), "longitude": between("double", -180, 180)},
                ),
                "ts": _since_2021(100_000),
            },
        ),
        "vehicle_id",
    ),
    "fleet_mgmt_sensors": Quickstart(
        record(
            "fleet_mgmt.fleet_mgmt_sensors",
            {**_FLEET, "engine_temperature": between("int", 150, 250), "average_rpm": between("int", 1800, 5000)},
        ),
        "vehicle_id",
    ),
    "gaming_games": Quickstart(
        record(
            "gaming.gaming_games",
            {
                "id": between("int", 1000, 5000),
                "room_name": text("(Arcade|Cards|Racing) -- (Rookie|Skilled|Master)"),
                "created_date": _since_2021(100_000),
            },
        ),
        "id",
    ),
    "gaming_player_activity": Quickstart(
        record(
            "gaming.gaming_player_activity",
            {
                "player_id": between("int", 1001, 1101),
                "game_room_id": between("int", 1000, 5000),
                "points": between("int", 10, 500),
                "coordinates": text(r"\[[0-9]{2},[0-9]{2}\]"),
            },
        ),
        "player_id",
    ),
    "gaming_players": Quickstart(
        record("gaming.gaming_players", {"player_id": "int", "player_name": "string", "ip": "string"}, _PLAYERS),
        "player_id",
    ),
    "insurance_customer_activity": Quickstart(
        record(
            "insurance.insurance_customer_activity",
            {
                "activity_id": count("int", 1),
                "customer_id": between("int", 400, 425),
                "activity_type": one_of("web_open", "mobile_open", "new_signup"),
                "propensity_to_churn": between("double", 0.01, 1),
                "ip_address": one_of(*_ADDRESSES),
            },
        ),
        "activity_id",
    ),
    "insurance_customers": Quickstart(
        record(
            "insurance.insurance_customers",
            {
                "customer_id": "int",
                "first_name": "string",
                "last_name": "string",
                "email": "string",
                "gender": "string",
                "income": "int",
                "fico": "int",
                "years_active": "int",
            },
            [
                {
                    "customer_id": 400 + n,
                    **_named(name),
                    "gender": ("Male", "Female")[n % 2],
                    "income": 30_000 + 1_700 * n,
                    "fico": 560 + 9 * n,
                    "years_active": n % 12,
                }
                for n, name in enumerate(NAMES)
            ],
        ),
        "customer_id",
    ),
    "insurance_offers": Quickstart(
        record(
            "insurance.insurance_offers",
            {"offer_id": "int", "offer_name": "string", "offer_url": "string"},
            [
                {"offer_id": n, "offer_name": f"{kind}_policy", "offer_url": f"https://example.com/offers/{kind}"}
                for n, kind in enumerate(("home", "boat", "car", "travel", "life"), 1)
            ],
        ),
        "offer_id",
    ),
    "payroll_bonus": Quickstart(
        record(
            "payroll.payroll_bonus",
            {
                "employee_id": between("int", 1000, 1100),
                "bonus": between("int", 10, 50),
                "ts": at("long", "timestamp-millis", range=_YEAR_2021),
            },
        ),
        "employee_id",
    ),
    "payroll_employee": Quickstart(
        record(
            "payroll.payroll_employee",
            {
                "employee_id": "int",
                "first_name": "string",
                "last_name": "string",
                "age": "int",
                "ssn": "string",
                "hourly_rate": "int",
                "gender": "string",
                "email": "string",
            },
            [
                {
                    "employee_id": 1000 + n,
                    **_named(name),
                    "age": 20 + n % 40,
                    "ssn": f"000-00-{n:04d}",
                    "hourly_rate": 15 + n % 30,
                    "gender": ("Male", "Female")[n % 2],
                }
                for n, name in enumerate(NAMES * 4)
            ],
        ),
        "employee_id",
    ),
    "payroll_employee_location": Quickstart(
        record(
            "payroll.payroll_employee_location",
            {
                "employee_id": between("int", 1000, 1100),
                "lab": text(r"lab-\d"),
                "department_id": between("int", 1, 10),
                "arrival_date": _DAY,
            },
        ),
        "employee_id",
    ),
    "pizza_orders": Quickstart(
        record(
            "pizza_orders.pizza_orders",
            {
                "store_id": between("int", 1, 10),
                "store_order_id": count("int", 1000),
                "coupon_code": between("int", 1000, 2000),
                "date": _DAY,
                "status": one_of("accepted"),
                "order_lines": {"type": "array", "items": _LINE, "arg.properties": {"length": {"min": 1, "max": 5}}},
            },
        ),
        "store_id",
    ),
    "pizza_orders_cancelled": _pizza("pizza_orders_cancelled", 1001, 2, "cancelled"),
    "pizza_orders_completed": _pizza(
        "pizza_orders_completed",
        1000,
        2,
        "completed",
        rack_time_secs=between("int", 130, 230),
        order_delivery_time_secs=between("int", 1100, 2000),
    ),
    "shoe_clickstream": Quickstart(
        record(
            "shoes.shoe_clickstream",
            {
                "product_id": one_of(*_SHOES),
                "user_id": one_of(*_SHOPPERS),
                "view_time": between("int", 10, 120),
                "page_url": text("https://www[.]example[.]com/product/[a-z]{5}"),
                "ip": one_of(*_ADDRESSES),
                "ts": _since_2021(10_000, 1_609_457_200_000),
            },
        ),
        "product_id",
    ),
    "shoe_customers": Quickstart(
        record(
            "shoes.shoe_customers",
            dict.fromkeys(
                (
                    "id",
                    "first_name",
                    "last_name",
                    "email",
                    "phone",
                    "street_address",
                    "state",
                    "zip_code",
                    "country",
                    "country_code",
                ),
                "string",
            ),
            [
                {
                    "id": _SHOPPERS[n],
                    **_named(name),
                    "phone": f"555-01{n:02d}",
                    "street_address": f"{n} Harbour Road",
                    "state": CITIES[n % len(CITIES)],
                    "zip_code": f"{10_000 + n}",
                    "country": "Tideland",
                    "country_code": "TL",
                }
                for n, name in enumerate((NAMES * 3)[: len(_SHOPPERS)])
            ],
        ),
        "id",
    ),
    "shoe_orders": Quickstart(
        record(
            "shoes.shoe_orders",
            {
                "order_id": count("int", 1000),
                "product_id": one_of(*_SHOES),
                "customer_id": one_of(*_SHOPPERS),
                "ts": _since_2021(100_000),
            },
        ),
        "order_id",
    ),
    "shoes": Quickstart(
        record(
            "shoes.shoe_product",
            {"id": "string", "brand": "string", "name": "string", "sale_price": "int", "rating": "double"},
            [
                {
                    "id": shoe,
                    "brand": ("Ebb", "Flow", "Neap")[n % 3],
                    "name": f"Runner {n}",
                    "sale_price": 4_995 + 150 * n,
                    "rating": n % 9 / 2 + 1,
                }
                for n, shoe in enumerate(_SHOES)
            ],
        ),
        "id",
    ),
    "siem_logs": Quickstart(
        record(
            "siem_logs.siem_logs",
            {
                "hostname": one_of(*_ADDRESSES),
                "action": one_of("allow", "deny"),
                "l4": one_of("tcp"),
                "access_group": text("group-[1-5]"),
                "source": record(
                    "siem_logs.source", {"ip": one_of(*_ADDRESSES), "port": between("int", 10_000, 65_536)}
                ),
                "destination": record(
                    "siem_logs.destination", {"ip": one_of(*_ADDRESSES), "port": between("int", 10_000, 65_536)}
                ),
            },
        ),
        "hostname",
    ),
    "syslog_logs": Quickstart(
        record(
            "syslogs.syslog_logs",
            {
                "name": text("[a-zA-Z]{5,8}"),
                "type": one_of("RFC5424", "RFC3164", "CEF", "UNKNOWN"),
                "message": text("[a-z ]{10,15}"),
                "host": one_of(*_ADDRESSES[:10]),
                "version": one_of("3.25.1"),
                "tag": one_of(".source.s_src"),
                "level": between("int", 0, 191),
                "facility": one_of("syslog", "authpriv", "daemon"),
                "severity": between("int", 0, 8),
                "appName": text("[A-Z]{5,8}"),
                "remoteAddress": one_of(*_ADDRESSES[-10:]),
                "rawMessage": text("[a-z ]{10,15}"),
                "processId": text("[1-9][0-9]{6}"),
                "messageId": text("[1-9][0-9]{2}"),
                "deviceVendor": text("[a-z]{5}"),
                "deviceProduct": text("[a-z]{5}"),
                "deviceVersion": text(r"[1-5]\.0"),
                "ts": of("long", iteration={"start": 1_609_459_200_000, "step": 100}),
            },
        ),
        "host",
    ),
}
