"""Keys of a configuration that no plugin reads: usually misspelt, but never an error, because Kafka Connect accepts any
key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.validation.validation import ConfigInfos
from tidegate.kit.config import nearest_name

__all__ = ["unknown_keys"]

_LIKENESS = 0.8


def unknown_keys(infos: ConfigInfos, names_: Iterable[str]) -> Mapping[str, str | None]:
    """The keys that none of the configuration's plugins has, each with the most similar known key, if there is one.

    ``infos`` is the validation result of that configuration.
    """
    known = dict.fromkeys(name for entry in infos.entries.values() for name in (entry.key.name, *entry.key.aliases))
    names = list(known)
    unknown: dict[str, str | None] = {}
    for name in names_:
        if name not in known and not name.startswith(tuple(infos.families)):
            unknown[name] = nearest_name(name, names, likeness=_LIKENESS)
    return unknown
