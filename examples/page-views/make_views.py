"""``make_views.py 1`` writes the views of a day, always the same ones: app-1.jsonl from an app, and the logs of two web servers,
web-1.jsonl and slow-1.jsonl.
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

SITES = {"news": 5, "shop": 3, "docs": 1}
"""With their shares of the views."""
COUNTS = {"app": 3000, "web": 2000, "slow": 200}

day = int(sys.argv[1])
chance = random.Random(day)
began = datetime(2026, 1, day, tzinfo=UTC)
for source, count in COUNTS.items():
    views = [
        {
            "site": chance.choices(list(SITES), SITES.values())[0],
            "page": f"/{chance.randrange(40)}",
            "visitor": f"visitor-{chance.randrange(500)}",
            "at": f"{began + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}+00:00",
        }
        for second in sorted(chance.randrange(24 * 3600) for _ in range(count))
    ]
    Path(f"{source}-{day}.jsonl").write_text("".join(f"{json.dumps(view)}\n" for view in views))
