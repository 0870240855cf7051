"""The examples in docs/how-to/serde.md run as shown, and its table lists the supported Arrow types."""

from __future__ import annotations

import re
from pathlib import Path

import registry.serde

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "serde.md").read_text()


def test_the_examples_run() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 5
    exec("".join(examples), {})


def test_the_page_names_what_is_public() -> None:
    helpers = {"DecodedRun", "SerializationError", "frame", "unframe", "subject_name"}
    assert all(f"`{name}`" in PAGE or f"{name}(" in PAGE for name in set(registry.serde.__all__) - helpers)
