"""Half an hour in the city, always the same: ``drive.py 1`` writes riders-1.jsonl (who looks for a taxi) and drivers-1.jsonl
(where free taxis are, each once a minute).
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

AREAS = [(40.715, -74.005), (40.735, -73.995), (40.755, -73.985), (40.775, -73.975)]
"""Their middles; an area is a hundredth of a degree wide."""
RIDERS, DRIVERS = 400, 60

half_hour = int(sys.argv[1])
chance = random.Random(half_hour)
began = datetime(2026, 1, 1, 18, tzinfo=UTC) + (half_hour - 1) * timedelta(minutes=30)


def near(area):
    return tuple(round(middle + chance.uniform(-0.004, 0.004), 6) for middle in AREAS[area])


def area_by(weights):
    return chance.choices(range(len(AREAS)), weights)[0]


def drive():
    """A driver stays in an area for a while."""
    for number in range(DRIVERS):
        area = area_by([3, 3, 4, 0])
        for minute in range(30):
            if chance.random() < 0.02:
                area = area_by([3, 3, 4, 0])
            yield moment(minute), f"driver-{number}", near(area)


def write(kind, rows):
    """In the order of time, as they would come."""
    lines = [
        json.dumps({kind: name, "latitude": place[0], "longitude": place[1], "at": f"{at:%Y-%m-%d %H:%M:%S}+00:00"})
        for at, name, place in sorted(rows)
    ]
    Path(f"{kind}s-{half_hour}.jsonl").write_text("\n".join(lines) + "\n")


def moment(minute):
    return began + timedelta(minutes=minute, seconds=chance.randrange(60))


write("rider", ((moment(chance.randrange(30)), f"rider-{n}", near(area_by([8, 3, 2, 1]))) for n in range(RIDERS)))
write("driver", drive())
