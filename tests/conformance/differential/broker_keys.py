"""``python -m tests.conformance.differential.broker_keys``: write broker/kafka_keys.py from Apache Kafka's own
description.

Names, types, defaults, and which keys can be changed at run time come from its response to DescribeConfigs of a broker.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.differential.exchange import Peer
from tests.servers.fetch import pins
from tests.servers.kafka import KafkaBroker

TARGET = Path(__file__).parents[3] / "broker" / "kafka_keys.py"
_TYPES = ("", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
_DEFAULT = 5


def keys() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder))
        broker.start()
        try:
            resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
            answer = Peer(broker.port).ask(32, 4, {"resources": [resource], "include_synonyms": True})
        finally:
            broker.stop()
    return sorted(answer["results"][0]["configs"], key=lambda config: config["name"])


def main() -> int:
    lines = []
    for entry in keys():
        default = next((s["value"] for s in entry["synonyms"] if s["source"] == _DEFAULT), None)
        kind = "PASSWORD" if entry["is_sensitive"] else _TYPES[entry["config_type"]]
        lines.append(f"    {entry['name']!r}: BrokerKey(KeyType.{kind}, {default!r}, {not entry['read_only']}),")
    TARGET.write_text(
        f'''"""The broker keys of Apache Kafka {pins()["kafka"]["version"]}, those without effect in one process too.

Generated from its answer to DescribeConfigs by ``python -m tests.conformance.differential.broker_keys``.
"""
# ruff: noqa: S108 - a default is a path in /tmp

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

from tidegate.kit.config import KeyType

__all__ = ["KAFKA_KEYS", "BrokerKey"]


class BrokerKey(NamedTuple):
    type: KeyType
    default: str | None
    dynamic: bool
    """Whether it can be changed while a broker runs."""


KAFKA_KEYS: Final = MappingProxyType(
    {{
{chr(10).join(lines)}
    }}
)
'''
    )
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(TARGET)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
