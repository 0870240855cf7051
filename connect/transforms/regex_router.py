"""RegexRouter: another topic by regular expression; and Java's regular expressions in Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from connect.api import Problem, RecordBatch, Transformation, config, key

__all__ = ["RegexRouter", "RegexRouterConfig", "java_regex", "java_replacement"]


def java_regex(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression written for Java; raises re.error."""
    return re.compile(re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", pattern).replace("\\p{Alnum}", "[A-Za-z0-9]"))


def java_replacement(replacement: str) -> str:
    """Java's ``$1`` and ``${name}`` as Python's; ``\\$`` is a plain dollar."""
    parts = re.split(r"(\\.|\$\d|\$\{[A-Za-z]\w*\})", replacement)
    made = []
    for part in parts:
        if part.startswith("${"):
            made.append(f"\\g<{part[2:-1]}>")
        elif part.startswith("$") and len(part) == 2:
            made.append(f"\\g<{part[1]}>")
        elif part.startswith("\\") and len(part) == 2:
            made.append("\\\\" if part[1] == "\\" else part[1])
        else:
            made.append(part)
    return "".join(made)


@config
class RegexRouterConfig:
    """Keys of RegexRouter."""

    regex: str = key(
        "regex", importance="high", doc="Regular expression to use for matching; it must match the whole topic."
    )
    replacement: str = key("replacement", importance="high", doc="Replacement string; $1 is the first group.")

    def problems(self) -> Iterable[Problem]:
        try:
            pattern = java_regex(self.regex)
        except re.error as error:
            yield Problem("regex", f"Invalid value {self.regex} for configuration regex: Invalid regex: {error}")
            return
        try:
            pattern.sub(java_replacement(self.replacement), "")
            re.compile(f"(?:{pattern.pattern})|").sub(java_replacement(self.replacement), "")
        except (re.error, IndexError) as error:
            text = f"Invalid value {self.replacement} for configuration replacement: {error}"
            yield Problem("replacement", text)


class RegexRouter(Transformation):
    """A topic that the expression does not match whole stays as it is."""

    config_class = RegexRouterConfig
    config: RegexRouterConfig

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return java_regex(self.config.regex)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if not self._pattern.fullmatch(batch.topic):
            return [batch]
        return [batch.replace(topic=self._pattern.sub(java_replacement(self.config.replacement), batch.topic, count=1))]
