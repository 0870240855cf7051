"""``make_changes.py 1`` writes changes-1.jsonl: ten minutes of changes of four wikis, always the same ones.

They are invented. Their form is that of Wikimedia's public schema mediawiki/recentchange, without the fields that are not used here.
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

WIKIS = {
    "wikidatawiki": ("www.wikidata.org", 0.8),
    "enwiki": ("en.wikipedia.org", 0.2),
    "dewiki": ("de.wikipedia.org", 0.1),
}
"""The domain of each, and the share of changes that bots make."""

part = int(sys.argv[1])
chance = random.Random(part)
began = datetime(2026, 1, 1, 12, tzinfo=UTC) + (part - 1) * timedelta(minutes=10)
with Path(f"changes-{part}.jsonl").open("w") as file:
    for number, second in enumerate(sorted(chance.randrange(600) for _ in range(900))):
        wiki = chance.choices(list(WIKIS), [5, 3, 1])[0]
        domain, bots = WIKIS[wiki]
        bot = chance.random() < bots
        vandal = not bot and chance.random() < 0.1
        anonymous = vandal or (not bot and chance.random() < 0.1)
        old = chance.randrange(500, 20_000)
        new = chance.randrange(0, old // 3) if vandal else old + chance.randrange(-100, 400)
        user = (
            f"203.0.113.{chance.randrange(256)}" if anonymous else f"{'Bot' if bot else 'User'}{chance.randrange(40)}"
        )
        at = began + timedelta(seconds=second)
        change = {
            "$schema": "/mediawiki/recentchange/1.0.0",
            "meta": {"domain": domain, "dt": f"{at:%Y-%m-%dT%H:%M:%SZ}", "id": f"{part}-{number}"},
            "id": part * 10_000 + number,
            "type": chance.choices(["edit", "new", "categorize"], [8, 1, 1])[0],
            "namespace": chance.choice([0, 0, 0, 1]),
            "title": f"Page {chance.randrange(300)}",
            "comment": "" if vandal else chance.choice(["typo", "sources", ""]),
            "timestamp": int(at.timestamp()),
            "user": user,
            "bot": bot,
            "length": {"old": old, "new": new},
            "wiki": wiki,
        }
        print(json.dumps(change), file=file)
