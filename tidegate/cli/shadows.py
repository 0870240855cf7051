"""Our packages have generic names, which a file in the current folder or another distribution may use too. Each start
checks for that.

``Events`` 0.5, for example, which opensearch-py needs, installs ``events/__init__.py`` too: pip silently overwrites one
file with the other, and removes it with either. The ``RECORD`` of a distribution lists the files it installed (PyPA's
specification "Recording installed projects").
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate.kit.errors import UsageError

__all__ = ["distributions_with", "refuse_shadowed_packages"]

_PACKAGES: Final = ("broker", "registry", "connect", "connectors", "events")
_REMEDY: Final = "install Tidegate in an environment of its own (pipx install tidegate)"


def refuse_shadowed_packages() -> None:
    """Raise UsageError that names the module that is imported instead of one of our packages.

    If our file is intact but another distribution has installed one of the same name, print a warning on standard
    error: the other distribution is broken, and uninstalling it removes our file.
    """
    import tidegate

    assert tidegate.__file__ is not None
    home = Path(tidegate.__file__).resolve().parent.parent
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin != home / name / "__init__.py":
            culprits = distributions_with(origin.parent.parent, [name])[name] if origin is not None else []
            of = f" of {' and '.join(culprits)}" if culprits else ""
            remedy = f"uninstall it, or {_REMEDY}" if culprits else f"run tidegate from another folder, or {_REMEDY}"
            raise UsageError(f"the package {name!r} of Tidegate is shadowed by {origin or 'nothing'}{of}: {remedy}")
    record = next(home.glob("tidegate-*.dist-info/RECORD"), None)
    if record is None:  # an editable install, or a clone: no other distribution writes into its folders
        return
    for name, culprits in distributions_with(home, _PACKAGES).items():
        if not culprits:
            continue
        both = f"{' and '.join(culprits)} installed {name}/__init__.py too"
        if not _intact(home, record, f"{name}/__init__.py"):
            raise UsageError(f"the package {name!r} is not Tidegate's: {both}, over ours; {_REMEDY}")
        print(f"warning: {both}: pip removes it with either of the two; {_REMEDY}", file=sys.stderr)


def distributions_with(folder: Path, packages: list[str] | tuple[str, ...]) -> dict[str, list[str]]:
    """The distributions in ``folder`` other than Tidegate's whose records have a package's ``__init__.py``, as "name
    version".
    """
    by_package: dict[str, list[str]] = {name: [] for name in packages}
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
        if name == "tidegate":
            continue
        text = record.read_bytes()
        for package in packages:
            path = f"{package}/__init__.py,".encode()
            if text.startswith(path) or b"\n" + path in text:
                by_package[package].append(f"{name} {version}")
    return by_package


def _intact(home: Path, record: Path, path: str) -> bool:
    """Whether a file matches our own installation record."""
    digest = hashlib.sha256((home / path).read_bytes()).digest()
    known = "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return any(row[1] == known for row in _rows(record) if row[0] == path)


def _rows(record: Path) -> Iterator[list[str]]:
    with record.open(encoding="utf-8", newline="") as file:
        yield from (row for row in csv.reader(file) if len(row) >= 2)
