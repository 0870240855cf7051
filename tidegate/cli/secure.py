"""``tidegate secure``: TLS and users for all faces at once; ``tidegate users``: who may log in, and do what."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tidegate.cli.contexts import Context, read_contexts
from tidegate.cli.options import done, done_option, folder_option, json_option, print_json, print_table
from tidegate.kit.errors import UsageError
from tidegate.kit.users import INTERNAL_USER, KINDS, Right
from tidegate.security import Security, find_security, init_security

__all__ = ["secure", "users"]

F = TypeVar("F", bound=Callable[..., Any])

_SHORTEST_PASSWORD: Final = 8
_RIGHTS = "VERB KIND NAME (read, write or manage; a name may end in *), or admin. Kinds: " + "; ".join(
    f"{kind} ({words})" for kind, words in KINDS.items()
)


def _security(data: Path) -> Security:
    security = find_security(data)
    if security is None:
        raise UsageError(f"the platform on {data} has no users: `tidegate secure init --data {data}` makes them")
    return security


def _password(password: str | None, name: str) -> str:
    """As given, or as somebody types it. Raises UsageError where it is easy to guess."""
    password = password or str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    if len(password) < _SHORTEST_PASSWORD:
        raise UsageError(
            f"the password of {name!r} has {len(password)} characters: at least {_SHORTEST_PASSWORD} are needed"
        )
    if password.lower() == name.lower():
        raise UsageError(f"the password of {name!r} is the name itself: choose another")
    return password


def _check_new(security: Security, name: str, rights: tuple[str, ...]) -> None:
    """Before somebody is asked for a password in vain."""
    if security.users.find(name) is not None:
        raise UsageError(f"there is a user {name!r}: change the password or the rights, or remove the user first")
    for text in rights:
        try:
            Right.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from error


def _password_option(function: F) -> F:
    return click.option(
        "--password",
        envvar="TIDEGATE_NEW_PASSWORD",
        show_envvar=True,
        help="At least 8 characters. Asked for when it is not given.",
    )(function)


@click.group()
def secure() -> None:
    """TLS, users and rights for all faces of a platform."""


@secure.command()
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name or address by which others reach this machine; may be repeated.",
)
@click.option("--admin", default="admin", show_default=True, help="The first user, who may do everything.")
@click.option(
    "--password",
    envvar="TIDEGATE_NEW_PASSWORD",
    show_envvar=True,
    help="At least 8 characters. Asked for, or made and printed where nobody can be asked.",
)
@click.option(
    "--context", "name", default="local", show_default=True, help="The name of the context that is made for the folder."
)
@folder_option
@done_option
def init(hosts: tuple[str, ...], admin: str, password: str | None, name: str, data: Path) -> None:
    """Make a certificate authority, a certificate and the first user. The next `tidegate up` on the folder uses them."""
    made = None if password or sys.stdin.isatty() else secrets.token_urlsafe(18)
    password = _password(password or made, admin)
    security = init_security(data.absolute(), hosts=hosts, admin=admin, password=password)
    text = f"{security.folder} has the authority, the certificate and the users; the next `tidegate up` uses them"
    done(text, action="made", folder=str(security.folder))
    done(f"clients trust {security.ca}", ca=str(security.ca))
    done(f"{admin} may do everything" + (f"; the password is {made}" if made else ""), user=admin, password=made)
    _make_context(name, str(data.absolute()))


def _make_context(wish: str, data: str) -> None:
    try:
        known = read_contexts()
        name = known.free_name(wish, data)
        known.having(name, Context(data=data)).write()
    except UsageError as error:  # what was asked for is done
        done(f"there is no context for it: {error}", context=None, error=str(error))
        return
    done(f"`tidegate use {name}` has commands go to it from any folder", context=name)


@secure.command()
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A further name or address for the certificate; may be repeated.",
)
@folder_option
@done_option
def renew(hosts: tuple[str, ...], data: Path) -> None:
    """Make the certificate anew where it runs out within a month or has to name more hosts. Running faces notice within a second."""
    changed = _security(data).renew(hosts)
    done("the certificate is new" if changed else "the certificate is good", renewed=changed)


@secure.command()
@folder_option
@json_option
def show(data: Path, as_json: bool) -> None:
    """Show what clients need: the authority, the user names, the hosts of the certificate."""
    security = _security(data)
    names = [user.name for user in security.users if user.name != INTERNAL_USER]
    told = {"ca": str(security.ca), "hosts": list(security.hosts), "users": names}
    if as_json:
        print_json(told)
        return
    print_table(
        ["", ""],
        [["authority", told["ca"]], ["hosts", ", ".join(["localhost", *security.hosts])], ["users", ", ".join(names)]],
    )


@click.group()
def users() -> None:
    """Manage the users that may log in to the platform, and their roles. A running platform notices within a second."""


@users.command("list")
@folder_option
@json_option
def list_users(data: Path, as_json: bool) -> None:
    """List the users with their rights."""
    listed = [user for user in _security(data).users if user.name != INTERNAL_USER]
    if as_json:
        print_json(
            [
                {"name": user.name, "active": user.active, "rights": [str(right) for right in user.rights]}
                for user in listed
            ]
        )
        return
    rows = [[user.name, "yes" if user.active else "frozen", ", ".join(map(str, user.rights)) or "-"] for user in listed]
    print_table(["user", "active", "rights"], rows)


@users.command()
@click.argument("name")
@click.option("--may", "rights", multiple=True, metavar="RIGHT", help=_RIGHTS)
@_password_option
@folder_option
@done_option
def add(name: str, rights: tuple[str, ...], password: str | None, data: Path) -> None:
    """Add a user, who may do nothing but what is said here."""
    security = _security(data)
    _check_new(security, name, rights)
    security.add_user(name, _password(password, name), rights)
    done(f"{name} may log in", user=name, action="added", rights=rights)


@users.command()
@click.argument("name")
@click.option("--may", "rights", multiple=True, metavar="RIGHT", help=f"All rights that the user is to have. {_RIGHTS}")
@folder_option
@done_option
def rights(name: str, rights: tuple[str, ...], data: Path) -> None:
    """Set a user's rights anew."""
    _security(data).set_rights(name, rights)
    done(f"{name} may: {', '.join(rights) or 'nothing'}", user=name, action="rights set", rights=rights)


@users.command()
@click.argument("name")
@click.argument("rights", nargs=-1, required=True, metavar="RIGHT...")
@folder_option
@done_option
def grant(name: str, rights: tuple[str, ...], data: Path) -> None:
    """Give a user further rights, such as "write topic orders"."""
    _change_rights(name, data, lambda had: [*had, *(right for right in rights if right not in had)])


@users.command()
@click.argument("name")
@click.argument("rights", nargs=-1, required=True, metavar="RIGHT...")
@folder_option
@done_option
def revoke(name: str, rights: tuple[str, ...], data: Path) -> None:
    """Take rights from a user, as `users list` shows them."""

    def without(had: list[str]) -> list[str]:
        if missing := [right for right in rights if right not in had]:
            raise UsageError(f"{name} does not have the right {missing[0]!r}; it has: {', '.join(had) or 'none'}")
        return [right for right in had if right not in rights]

    _change_rights(name, data, without)


def _change_rights(name: str, data: Path, change: Callable[[list[str]], list[str]]) -> None:
    security = _security(data)
    user = security.users.find(name)
    if user is None:
        raise UsageError(f"there is no user {name!r}: `tidegate users add` makes one")
    rights = change([str(right) for right in user.rights])
    security.set_rights(name, rights)
    done(f"{name} may: {', '.join(rights) or 'nothing'}", user=name, action="rights set", rights=rights)


@users.command()
@click.argument("name")
@_password_option
@folder_option
@done_option
def password(name: str, password: str | None, data: Path) -> None:
    """Give a user another password. Sessions with the old one end."""
    security = _security(data)
    if security.users.find(name) is None:
        raise UsageError(f"there is no user {name!r}: `tidegate users add` makes one")
    security.set_password(name, _password(password, name))
    done(f"{name} has a new password", user=name, action="password set")


@users.command()
@click.argument("name")
@folder_option
@done_option
def freeze(name: str, data: Path) -> None:
    """Keep a user out, rights and password kept."""
    _security(data).set_active(name, False)
    done(f"{name} is kept out", user=name, action="frozen")


@users.command()
@click.argument("name")
@folder_option
@done_option
def thaw(name: str, data: Path) -> None:
    """Let a frozen user in again."""
    _security(data).set_active(name, True)
    done(f"{name} may log in", user=name, action="thawed")


@users.command()
@click.argument("name")
@folder_option
@done_option
def remove(name: str, data: Path) -> None:
    """Remove a user; sessions end."""
    _security(data).remove_user(name)
    done(f"{name} is gone", user=name, action="removed")
