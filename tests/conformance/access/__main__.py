"""``python -m tests.conformance.access``: record Apache Kafka's responses to clients with few rights."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.conformance.access.brokers import apache, walked
from tests.conformance.access.walk import RECORDED


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, apache(Path(directory)) as ports:
        RECORDED.write_text(json.dumps(walked(ports), indent=1) + "\n")


main()
