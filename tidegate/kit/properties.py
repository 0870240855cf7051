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
            text = _whole_lines(file.read())
        return {name: value.strip() for name, value in javaproperties.loads(text).items()}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (javaproperties.InvalidUEscapeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a properties file: {error}") from error


def _whole_lines(text: str) -> str:
    """The text with continued lines joined; the library would join them in time that grows with the square of their number."""
    lines: list[str] = []
    parts: list[str] = []
    for line in text.split("\n"):
        content = line.lstrip(" \t\f")
        if not parts and content.startswith(("#", "!")):
            continue
        if (len(content) - len(content.rstrip("\\"))) % 2:
            parts.append(content[:-1])
        else:
            lines.append(_whole([*parts, content]))
            parts.clear()
    return "\n".join([*lines, _whole(parts)])


def _whole(parts: list[str]) -> str:
    line = "".join(parts)
    # Only a line's first part can make a comment of it, or have blanks before the key.
    return f"\\{line}" if parts[1:] and line.startswith(("#", "!", " ", "\t", "\f")) else line
