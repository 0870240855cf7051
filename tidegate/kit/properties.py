"""Java properties files, which configure Kafka and its tools."""

from __future__ import annotations

from pathlib import Path

from tidegate.kit.errors import UsageError

__all__ = ["read_properties"]


def read_properties(path: Path) -> dict[str, str]:
    """Read a UTF-8 properties file as text values, trimmed as in Kafka. Raises UsageError with the problem."""
    import javaproperties

    try:
        with path.open(encoding="utf-8") as file:
            return {name: value.strip() for name, value in javaproperties.load(file).items()}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (javaproperties.InvalidUEscapeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a properties file: {error}") from error
