"""The configuration keys of the authorizer, under Kafka's names."""

from __future__ import annotations

from typing import Final

from broker.security.acls import Acls, AclSource, check_principal
from broker.security.authorizer import StandardAuthorizer
from tidegate.kit.config import config, key
from tidegate.kit.users import UsersFile

__all__ = ["AccessConfig"]

_STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _authorizer(name: str) -> str | None:
    return None if name in ("", _STANDARD) else f"the only authorizer is {_STANDARD}; without one everything is allowed"


def _principals(text: str) -> str | None:
    for name in _split(text):
        try:
            check_principal(name)
        except ValueError as error:
            return str(error)
    return None


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(";") if name.strip()]


@config
class AccessConfig:
    """Keys for authorization by access control entries."""

    authorizer_class_name: str = key(
        "authorizer.class.name",
        default="",
        check=_authorizer,
        doc=f"`{_STANDARD}` lets access control entries (ACLs) decide what clients may do; empty: everything is allowed.",
    )
    super_users: str = key(
        "super.users",
        default="",
        check=_principals,
        doc="Who may do everything, as `User:name`, with `;` between them.",
    )
    allow_everyone_if_no_acl_is_found: bool = key(
        "allow.everyone.if.no.acl.found",
        default=False,
        doc="Let everyone use what no ACL at all is for; otherwise only super users may.",
    )

    users_file: str | None = key(
        "users.file",
        default=None,
        doc="A key of Tidegate's own: the file of the platform's users (`tidegate users`), who log in by SCRAM and whose rights decide "
        "beside ACLs. Read again when it changes.",
    )

    def authorizer(self, acls: Acls, users: UsersFile | None) -> StandardAuthorizer | None:
        """The authorizer for these entries and the users' rights; None if authorization is off."""
        if not self.authorizer_class_name and users is None:
            return None
        source: AclSource = acls
        if users is not None:
            from broker.security.platform_users import AclsOfUsers

            source = AclsOfUsers(acls, users)
        return StandardAuthorizer(
            source, super_users=_split(self.super_users), allow_if_no_acl=self.allow_everyone_if_no_acl_is_found
        )
