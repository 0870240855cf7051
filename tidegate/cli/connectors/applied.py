"""The record of what was applied from a folder: the connectors that ``apply DIR --prune`` may delete.

It is a file in the folder (``.tidegate-applied.json``), to be committed with the others. For each Kafka cluster it has
the names of connectors and a hash of the configuration that the worker took: a connector that somebody changed since, or
that was created in another way, is not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole

__all__ = ["Applied", "fingerprint", "read_applied"]

RECORD: Final = ".tidegate-applied.json"


@dataclass(slots=True)
class Applied:
    """The record of one folder for one cluster."""

    path: Path
    cluster: str
    clusters: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def connectors(self) -> dict[str, str]:
        """The fingerprints by name."""
        return self.clusters.setdefault(self.cluster, {})

    def write(self) -> None:
        """Raises UsageError."""
        document = {"clusters": {c: dict(sorted(names.items())) for c, names in sorted(self.clusters.items()) if names}}
        try:
            write_whole(self.path, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise UsageError(f"cannot write {self.path}, which says what was applied: {error.strerror}") from error


def fingerprint(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def read_applied(folder: Path, cluster: str) -> Applied:
    """The record of a folder; an empty one if it has none. Raises UsageError for a file that is none."""
    path = folder / RECORD
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        clusters = {str(c): {str(n): str(f) for n, f in names.items()} for c, names in document["clusters"].items()}
    except FileNotFoundError:
        return Applied(path, cluster)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no record of what was applied: {error!r}; remove it, and apply writes another"
        ) from error
    return Applied(path, cluster, clusters)
