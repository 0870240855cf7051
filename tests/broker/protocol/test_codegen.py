"""The generated messages are up to date with the generator."""

from __future__ import annotations

from pathlib import Path

import pytest

import broker.protocol.messages
from broker.protocol import codegen


def test_the_committed_messages_are_fresh() -> None:
    pytest.importorskip("kio")
    folder = Path(broker.protocol.messages.__path__[0])
    committed = {path.name: path.read_text() for path in folder.glob("*.py")}
    assert committed == codegen.generate(), "run: python -m broker.protocol.codegen"
