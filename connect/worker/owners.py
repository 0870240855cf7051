"""With whose rights connectors run: the worker's, or those of their owner, the user who changed the configuration last.

A task host serves one owner. It has the logins of that owner only, at the log and at the registry (``Users.delegate_password``), and
may open only files that the owner has a right to (``tidegate.kit.file_access``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from connect.config.worker import WorkerConfig
from connect.errors import Forbidden
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError, Problem, UsageError
from tidegate.kit.users import INTERNAL_USER, UsersFile

__all__ = ["WORKER", "HostSetup", "Owners"]

WORKER: Final = ""
"""The owner of what runs with the worker's own rights."""

_SECRETS: Final = re.compile(
    r"(^|\.)(sasl\.jaas\.config|basic\.auth\.user\.info|bearer\.auth\..*|users\.file|ssl\.key\.password)$"
)
_KEY_STORES: Final = re.compile(r"(^|\.)ssl\.keystore\.")
_VARIABLES: Final = re.compile(
    r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|DYLD_\w+|JAVA_HOME|SSL_CERT_FILE|SSL_CERT_DIR|TIDEGATE_LOG_LEVEL|PYTHON\w*|VIRTUAL_ENV|"
    r"(?i:https?_proxy|no_proxy|all_proxy)"
)
_NO_FILES: Final = {
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "PGPASSFILE": "/dev/null",
    "PGSERVICEFILE": "/dev/null",
    "PGSYSCONFDIR": "/dev/null",
}
_TRUST_STORE: Final = "ssl.truststore.location"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class HostSetup:
    """How a task host is set up: worker properties, and the files that it is limited to (see ``TaskHost.setup``), None for no limit."""

    worker: Mapping[str, str]
    files: Mapping[str, Any] | None
    environment: Mapping[str, str] | None = None
    """The variables of the process; None for the worker's."""


class Owners:
    """Of the connectors of one worker, by its properties. Raises ConfigError where the file of users is missing or cannot be read."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker, config = {**worker, "connector.rights": "worker"}, parse(WorkerConfig, worker)
        self._users_file: Path | None = None
        self._users: UsersFile | None = None
        if config.connector_rights != "owner":
            return
        if config.users_file is None:
            text = "connector.rights=owner needs users.file, which says what an owner may do"
            raise ConfigError([Problem("connector.rights", text)])
        self._users_file = Path(config.users_file)
        try:
            self._users = UsersFile(self._users_file)
        except UsageError as error:
            raise ConfigError([Problem("users.file", f"users.file: {error}")]) from error

    def of(self, owner: str) -> str:
        """The user whose rights count for a connector of this owner. Connectors of the platform itself, or without an owner, are the worker's."""
        return WORKER if self._users is None or owner in ("", INTERNAL_USER) else owner

    def require(self, owner: str) -> None:
        """Raises Forbidden where the owner of a connector may not log in (any more)."""
        if self._users is not None and self.of(owner) != WORKER and self._users.users.named(owner) is None:
            raise Forbidden(
                f"the connector belongs to {owner}, who may not log in (any more): put its configuration again as a user "
                "with the rights that it needs"
            )

    def properties(self, owner: str) -> Mapping[str, str]:
        """The worker's properties for clients that act for an owner. Raises Forbidden where there is no such user any more."""
        owner = self.of(owner)
        if owner == WORKER or self._users is None:
            return self._worker
        self.require(owner)
        users = self._users.users
        name, password = users.delegate_name(owner), users.delegate_password(owner)
        kept = {
            key: value
            for key, value in self._worker.items()
            if not _SECRETS.search(key)
            and not _KEY_STORES.search(key)
            and not key.startswith(("listeners.", "admin.listeners."))
        }
        kept |= {
            "connector.rights": "owner",
            "sasl.jaas.config": f'{_SCRAM} required username="{name}" password="{password}";',
        }
        if "basic.auth.credentials.source" in self._worker:
            kept["basic.auth.user.info"] = f"{name}:{password}"
        return kept

    def host_setup(self, owner: str) -> HostSetup:
        """For a host that serves this owner. Raises Forbidden."""
        if owner == WORKER or self._users_file is None:
            return HostSetup(self._worker, None)
        properties = self.properties(owner)
        trusted = [value for key, value in properties.items() if key.endswith(_TRUST_STORE)]
        files = {
            "user": owner,
            "rights": self.file_rights(owner),
            "readable": trusted,
            "hidden": [str(self._hidden(self._users_file))],
        }
        return HostSetup(properties, files, self._environment())

    def _environment(self) -> dict[str, str]:
        """Variables without the worker's secrets, and none that lead client libraries to files of the worker's account.

        Beside those that programs need it has those that the worker's configuration lets connectors read.
        """
        patterns = [
            text
            for key, text in self._worker.items()
            if key.startswith("config.providers.") and key.endswith(".param.allowlist.pattern")
        ]
        kept = {
            name: value
            for name, value in os.environ.items()
            if _VARIABLES.fullmatch(name) or any(re.fullmatch(pattern, name) for pattern in patterns)
        }
        return kept | _NO_FILES

    @staticmethod
    def _hidden(users_file: Path) -> Path:
        """The data folder of the platform, where that is known: passwords are in several of its files."""
        folder = users_file.parent
        return folder.parent if folder.name == "security" else folder

    def file_rights(self, owner: str) -> list[str]:
        """The owner's current rights to files, as text; empty if the user is gone."""
        user = self._users.users.named(owner) if self._users is not None else None
        return [] if user is None else [str(right) for right in user.rights if right.kind in ("file", "*")]
