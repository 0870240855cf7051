"""Prints records as JSON lines: ``make_records.py sales 3`` prints the sales of the third day, ``shipments 1`` what came on the first."""

import json
import sys

ITEMS = {"tea": (25, 4.5), "rice": (10, 2.0), "salt": (2, 1.0)}
"""Pieces that a day sells, and the price."""

kind, day = sys.argv[1], int(sys.argv[2])
for item, (pieces, price) in ITEMS.items():
    if kind == "shipments":
        print(json.dumps({"item": item, "quantity": 60}))
        continue
    for hour in range(pieces):
        at = f"2026-01-{day:02}T{hour % 24:02}:{hour:02}:00Z"
        print(json.dumps({"item": item, "quantity": 1, "price": price, "at": at}))
