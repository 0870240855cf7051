"""Keys of a configuration that nobody reads: most often misspelt, and never an error, since Kafka Connect takes any."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from connect.validation.validation import ConfigInfos

__all__ = ["unknown_keys"]

_LIKENESS = 0.8


def unknown_keys(infos: ConfigInfos, names_: Iterable[str]) -> Mapping[str, str | None]:
    """Those of the given keys that the configuration's plugins do not have, with the nearest of theirs, if one is near.

    ``infos`` is the judgement of that configuration.
    """
    known = dict.fromkeys(name for entry in infos.entries.values() for name in (entry.key.name, *entry.key.aliases))
    names = list(known)
    unknown: dict[str, str | None] = {}
    for name in names_:
        if name not in known and not name.startswith(tuple(infos.families)):
            near = difflib.get_close_matches(name, names, 1, _LIKENESS)
            unknown[name] = near[0] if near else None
    return unknown
