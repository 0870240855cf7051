"""Properties files: read as the library reads them, whatever their lines are."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.processor_time import processor_time
from tidegate.kit.errors import UsageError
from tidegate.kit.properties import read_properties

PIECES = ("a", "=", ":", " ", "\t", "\n", "\\\n", "\\", "#", "!", "b c", "\\u0041", "\\n", "\r\n", "\f", "\\ ")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("\\\n#a=b")
@example("a=\\\n  \\\n b\n\\\n c")
@example("# a\\\nb=c")
@example("a\\")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_as_the_library_reads_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.properties"
    path.write_bytes(text.encode())
    try:
        expected = javaproperties.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except javaproperties.InvalidUEscapeError:
        with pytest.raises(UsageError, match="is not a properties file"):
            read_properties(path)
    else:
        assert read_properties(path) == {name: value.strip() for name, value in expected.items()}


def test_a_value_of_many_lines_is_soon_read(tmp_path: Path) -> None:
    """Joined line by line, 40,000 took half a minute."""
    path = tmp_path / "x.properties"
    path.write_text("a=" + "x,\\\n" * 40_000 + "y\n")
    with processor_time(1, "40,000 lines"):
        assert read_properties(path) == {"a": "x," * 40_000 + "y"}
