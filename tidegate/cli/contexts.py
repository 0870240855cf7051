"""Named contexts: the platform that commands connect to, and the login, as in kubectl and rpk.

They are stored in one file of the user (``TIDEGATE_CONTEXTS``, else below the configuration folder). Only its owner can
read it, because it contains passwords.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tidegate.kit.config import HIDDEN, Password
from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole

__all__ = ["ADDRESSES", "Context", "Contexts", "contexts_file", "read_contexts"]

ADDRESSES: Final = ("broker", "registry", "connect", "events", "pubsub")
"""The services whose addresses a context may have."""


@dataclass(frozen=True, slots=True)
class Context:
    """Either the data folder of a platform on this machine, whose owner needs no login, or addresses and a login."""

    data: str = ""
    addresses: Mapping[str, str] = field(default_factory=dict)
    ca: str = ""
    user: str = ""
    password: Password = field(default_factory=Password)

    @property
    def shown(self) -> dict[str, Any]:
        told = {"data": self.data, **self.addresses, "ca": self.ca, "user": self.user}
        return {name: value for name, value in told.items() if value} | ({"password": HIDDEN} if self.password else {})


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts, and the current one."""

    by_name: Mapping[str, Context] = field(default_factory=dict)
    current: str = ""

    def named(self, name: str) -> Context:
        """Raises UsageError."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none yet"
            raise UsageError(f"there is no context {name!r}; there are: {known}")
        return self.by_name[name]

    def having(self, name: str, context: Context) -> Contexts:
        return replace(self, by_name={**self.by_name, name: context})

    def without(self, name: str) -> Contexts:
        self.named(name)
        left = {other: context for other, context in self.by_name.items() if other != name}
        return Contexts(left, "" if self.current == name else self.current)

    def using(self, name: str) -> Contexts:
        self.named(name)
        return replace(self, current=name)

    def free_name(self, wish: str, data: str) -> str:
        """The requested name, with a number if another platform's context has it."""
        names = [wish, *(f"{wish}-{number}" for number in range(2, len(self.by_name) + 3))]
        return next(name for name in names if self.by_name.get(name, Context(data=data)).data == data)

    def write(self) -> None:
        """Raises UsageError if the file can't be written."""
        path = contexts_file()
        entries = {
            name: {
                "data": context.data,
                "addresses": dict(context.addresses),
                "ca": context.ca,
                "user": context.user,
                "password": context.password.reveal(),
            }
            for name, context in sorted(self.by_name.items())
        }
        text = json.dumps({"current": self.current, "contexts": entries}, indent=2) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, text, mode=0o600)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; TIDEGATE_CONTEXTS names another file") from error


def contexts_file() -> Path:
    if said := os.environ.get("TIDEGATE_CONTEXTS"):
        return Path(said)
    import click

    return Path(click.get_app_dir("tidegate", force_posix=False)) / "contexts.json"


def read_contexts() -> Contexts:
    """The contexts; none if there is no file. Raises UsageError for an unreadable file."""
    path = contexts_file()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = {
            str(name): Context(
                str(entry["data"]),
                {str(face): str(address) for face, address in entry["addresses"].items()},
                str(entry["ca"]),
                str(entry["user"]),
                Password(entry["password"]),
            )
            for name, entry in document["contexts"].items()
        }
        return Contexts(entries, str(document["current"]))
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no file of contexts: {error!r}; move it away, `tidegate use` makes another"
        ) from error
