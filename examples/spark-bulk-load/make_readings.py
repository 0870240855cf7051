"""Prints 3,000 readings of three weather stations as JSON lines, 30 days of them."""

import json

EPOCH_DAY = 20454  # 2026-01-01, in days since 1970
for n in range(3000):
    station, day = ("JFK", "LGA", "EWR")[n % 3], EPOCH_DAY + n // 100
    print(json.dumps({"station": station, "day": day, "celsius": round(5 + n % 17 / 2, 1)}))
