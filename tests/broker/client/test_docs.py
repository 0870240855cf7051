"""The example in docs/how-to/kafka-client.md runs as shown, and the page's tables are complete and correct."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import broker.client
from broker.client.columns import encode_batches

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "kafka-client.md").read_text()


async def test_the_example_runs(
    bootstrap_servers: str, name: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    topic, group = name(), name()
    example = example.replace("127.0.0.1:9092", bootstrap_servers)
    example = example.replace('"orders"', f'"{topic}"').replace('"readers"', f'"{group}"')
    space = {entry: getattr(broker.client, entry) for entry in broker.client.__all__}
    space |= {"pa": pa, "encode_batches": encode_batches}
    exec(f"async def example():\n{textwrap.indent(example, '    ')}", space)
    await space["example"]()
    assert "b'key' b'value' 0" in capsys.readouterr().out


def test_the_page_names_the_public_classes() -> None:
    for entry in ("Admin", "BatchConsumer", "BatchProducer", "ClientConfig", "GroupBehaviour", "GroupMember"):
        assert f"`{entry}`" in PAGE
        assert entry in broker.client.__all__
