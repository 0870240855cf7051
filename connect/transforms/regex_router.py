"""RegexRouter: changes the topic with a regular expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from connect.api import JavaRegex, Problem, RecordBatch, Transformation, config, key

__all__ = ["RegexRouter", "RegexRouterConfig"]


@config
class RegexRouterConfig:
    """Keys of RegexRouter."""

    regex: str = key(
        "regex", importance="high", doc="Regular expression to use for matching; it must match the whole topic."
    )
    replacement: str = key("replacement", importance="high", doc="Replacement string; $1 is the first group.")

    def problems(self) -> Iterable[Problem]:
        try:
            pattern = JavaRegex(self.regex)
        except ValueError as error:
            yield Problem("regex", f"Invalid value {self.regex} for configuration regex: Invalid regex: {error}")
            return
        try:
            pattern.check_replacement(self.replacement)
        except ValueError as error:
            text = f"Invalid value {self.replacement} for configuration replacement: {error}"
            yield Problem("replacement", text)


class RegexRouter(Transformation):
    """A topic that the expression does not match completely stays unchanged."""

    config_class = RegexRouterConfig
    config: RegexRouterConfig
    traces_fields = True

    @cached_property
    def _pattern(self) -> JavaRegex:
        return JavaRegex(self.config.regex)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        topic = self._pattern.replace_whole(batch.topic, self.config.replacement)
        return [batch if topic is None else batch.replace(topic=topic)]
