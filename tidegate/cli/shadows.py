"""Our packages have plain names; another package of such a name would be imported in their place. Say so at the start."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from tidegate.kit.errors import UsageError

__all__ = ["refuse_shadowed_packages"]

_PACKAGES: Final = ("broker", "registry", "connect", "connectors", "events")


def refuse_shadowed_packages() -> None:
    """Raise UsageError that names what would be imported instead of one of our packages."""
    import tidegate

    assert tidegate.__file__ is not None
    home = Path(tidegate.__file__).resolve().parent.parent
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if found != home / name / "__init__.py":
            raise UsageError(
                f"the package {name!r} of Tidegate is shadowed by {found or 'nothing'}: "
                "run tidegate from another folder, or in an environment of its own (pipx install tidegate)"
            )
