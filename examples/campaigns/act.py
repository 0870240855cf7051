"""An hour of people who like and comment: ``act.py 1`` writes posts, likes and comments of the first hour as JSON lines to the folder hour-1.

Nothing is ever changed: who takes a like back adds an event that says so.
"""

import json
import random
import sys
from pathlib import Path

HOUR_MS = 3_600_000
BEGAN_MS = 1_767_261_600_000  # 2026-01-01 10:00 UTC
INTEREST = {"spring": (6, 4, 2), "summer": (2, 4, 6), "autumn": (3, 3, 3)}
"""How much people like each campaign, hour by hour."""

hour = int(sys.argv[1])
folder = Path(f"hour-{hour}")
folder.mkdir()
chance = random.Random(hour)
campaigns = list(INTEREST)
interest = [INTEREST[campaign][(hour - 1) % 3] for campaign in campaigns]


def times(count):
    return sorted(BEGAN_MS + (hour - 1) * HOUR_MS + chance.randrange(HOUR_MS) for _ in range(count))


def add(kind, events):
    folder.joinpath(f"{kind}.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))


def reaction(kind, number, at, **fields):
    campaign = chance.choices(campaigns, interest)[0]
    post = f"post-{campaign}-{chance.randint(1, hour)}"
    who = f"person-{chance.randrange(500)}"
    return {"id": f"{kind}-{hour}-{number}", "campaign": campaign, "post": post, "person": who, **fields, "at_ms": at}


add(
    "posts",
    ({"id": f"post-{c}-{hour}", "campaign": c, "text": f"News of {c}", "at_ms": times(1)[0]} for c in campaigns),
)
add("likes", (reaction("like", n, at, liked=chance.random() < 0.9) for n, at in enumerate(times(3000))))
add("comments", (reaction("comment", n, at, text="I see.") for n, at in enumerate(times(400))))
