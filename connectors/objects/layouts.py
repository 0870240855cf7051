"""Which objects a source reads, which topics they go to, and the form of the offsets."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connect.api import JavaRegex

__all__ = ["Backup", "Item", "Layout", "Listed", "Objects", "Template", "template_pattern"]


class Listed(Protocol):
    """An object of a listing; ``modified_ms`` is since the epoch."""

    @property
    def name(self) -> str: ...
    @property
    def modified_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Item:
    """An object to read.

    Objects of one source partition are read in order of ``first``. ``rank`` sorts all objects found at the same time.
    Objects of one ``share`` go to one task.
    """

    name: str
    topic: str
    source_partition: Mapping[str, Any]
    rank: tuple[Any, ...]
    share: str
    partition: int | None = None
    first: int | None = None
    """The offset of its first record, where that is its position in the source partition."""
    key: bytes | None = None
    """The key of all its records."""
    stem: str = ""
    """Its name without the extension of the format, where the sink wrote it."""


class Layout(ABC):
    """The layout of a bucket or container. ``prefix`` is the beginning of its objects' names; source partitions begin with
    ``bucket``, such as ``{"bucket": "lake"}``.
    """

    def __init__(self, bucket: Mapping[str, str], prefix: str) -> None:
        self.bucket, self.prefix = bucket, prefix

    @abstractmethod
    def item(self, listed: Listed) -> Item | None:
        """The item for an object; None for one that is not read."""


class Backup(Layout):
    """Objects written by the S3 sink: ``<folders>/<topic>+<partition>+<first offset><extension>``.

    Within a folder the offsets of a topic partition increase, so one offset per folder is enough.
    """

    def __init__(
        self, bucket: Mapping[str, str], prefix: str, *, folder_delim: str, file_delim: str, extensions: Sequence[str]
    ) -> None:
        super().__init__(bucket, prefix)
        delim, ends = re.escape(file_delim), "|".join(map(re.escape, extensions))
        self._folder_delim = folder_delim
        name = rf"([a-zA-Z0-9._-]+){delim}(\d+){delim}(\d+)"
        self._name = re.compile(rf"({name})(?:\.(?!keys\.|headers\.)\w+)?(?:{ends})")

    def item(self, listed: Listed) -> Item | None:
        folder, _, name = listed.name.rpartition(self._folder_delim)
        match = self._name.fullmatch(name)
        if match is None:
            return None
        topic, partition, first = match[2], int(match[3]), int(match[4])
        return Item(
            name=listed.name,
            topic=topic,
            source_partition={**self.bucket, "folder": folder, "topic": topic, "partition": partition},
            rank=(topic, partition, first, listed.name),
            share=f"{topic}-{partition}",
            partition=partition,
            first=first,
            stem=listed.name.removesuffix(name) + match[1],
        )


class Objects(Layout):
    """Any objects: the topic is that of the first pattern that matches the whole name."""

    def __init__(
        self, bucket: Mapping[str, str], prefix: str, topics: Sequence[tuple[str, str]], since_ms: int = 0
    ) -> None:
        super().__init__(bucket, prefix)
        self._topics = [(topic, JavaRegex(pattern)) for topic, pattern in topics]
        self._since_ms = since_ms

    def item(self, listed: Listed) -> Item | None:
        topic = next((topic for topic, pattern in self._topics if pattern.fullmatch(listed.name)), None)
        if topic is None or listed.modified_ms < self._since_ms:
            return None
        return Item(
            name=listed.name,
            topic=topic,
            source_partition={**self.bucket, "object": listed.name},
            rank=(listed.modified_ms, listed.name),
            share=listed.name,
        )


class Template(Layout):
    """Aiven's ``file.name.template``, which may contain topic and partition, and is searched for in names.

    Offsets are those of Aiven's connector, which uses an object's name as the key of all its records.
    """

    def __init__(
        self,
        bucket: Mapping[str, str],
        prefix: str,
        template: str,
        *,
        topic: str | None,
        by_partition: bool,
        after: str | None,
    ) -> None:
        super().__init__(bucket, prefix)
        self._pattern = template_pattern(template)
        self._topic, self._by_partition, self._after = topic, by_partition, after

    def item(self, listed: Listed) -> Item | None:
        match = self._pattern.search(listed.name)
        if match is None or (self._after is not None and listed.name <= self._after):
            return None
        parts = match.groupdict()
        topic = self._topic or parts.get("topic")
        partition = int(parts["partition"]) if parts.get("partition") else None
        if topic is None or (self._by_partition and partition is None):
            return None
        return Item(
            name=listed.name,
            topic=topic,
            source_partition={**self.bucket, "objectKey": listed.name},
            rank=(listed.name,),
            share=str(partition) if self._by_partition else listed.name,
            partition=partition,
            key=listed.name.encode(),
        )


def template_pattern(template: str) -> re.Pattern[str]:
    """The regular expression for a template with ``{{topic}}`` and so on. Raises re.error."""
    for name, pattern in _PLACEHOLDERS.items():
        template = template.replace(f"{{{{{name}}}}}", pattern)
    return re.compile(template)


_PLACEHOLDERS = {
    "topic": r"(?P<topic>[a-zA-Z0-9\-_.]+)",
    "partition": r"(?P<partition>\d+)",
    "start_offset": r"(?:\d+)",
    "timestamp": r"(?:\d+)",
}
