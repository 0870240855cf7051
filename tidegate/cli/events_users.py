"""``tidegate events users`` and ``apps``: users and connected apps of the events service, in its accounts file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.options import done, done_option, folder_option, json_option, print_json, print_table

if TYPE_CHECKING:
    from events.access.editing import AccountsFile

__all__ = ["apps", "users"]

F = TypeVar("F", bound=Callable[..., Any])


def _file_options(function: F) -> F:
    """The option for the accounts file."""
    function = click.option(
        "--file",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The accounts file, where events.accounts.file names one.  [default: DATA/events/accounts.json]",
    )(function)
    return folder_option(function)


def _rights_options(function: F) -> F:
    """The options for a user's rights; patterns have ``*`` and ``?``."""
    for option, words in (
        ("--create", "May publish events of this name; may be repeated, also as a pattern (Order_*__e)."),
        ("--read", "May subscribe to events and channels of this name; the same."),
        ("--permission", "ViewSetup or CustomizeApplication."),
    ):
        function = click.option(option, multiple=True, metavar="NAME", help=words)(function)
    return function


def _password_option(name: str, words: str) -> Callable[[F], F]:
    return click.option(name, envvar="TIDEGATE_NEW_PASSWORD", show_envvar=True, help=words)


def _accounts(data: Path, path: Path | None) -> AccountsFile:
    from events.access.editing import AccountsFile
    from events.config import ACCOUNTS_FILE

    return AccountsFile(path or data / "events" / ACCOUNTS_FILE)


def _entered_password(password: str | None) -> str:
    return password or str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


@click.group()
def users() -> None:
    """Add, change and remove users of the events service. A running service notices at once."""


@users.command("list")
@_file_options
@json_option
def list_users(data: Path, path: Path | None, as_json: bool) -> None:
    """List the users of the accounts file; the one of the configuration is not among them."""
    accounts = _accounts(data, path).users()
    if as_json:
        print_json(accounts)
        return
    rows = [
        [
            account["name"],
            "yes" if account.get("active", True) else "frozen",
            *(" ".join(account.get(right, ())) or "-" for right in ("create", "read", "permissions")),
        ]
        for account in accounts
    ]
    print_table(["user", "active", "create", "read", "permissions"], rows)


@users.command("add")
@click.argument("name")
@_rights_options
@_password_option("--password", "Asked for when it is not given.")
@_file_options
@done_option
def add_user(
    name: str,
    create: tuple[str, ...],
    read: tuple[str, ...],
    permission: tuple[str, ...],
    password: str | None,
    data: Path,
    path: Path | None,
) -> None:
    """Add a user, with only the given rights."""
    accounts = _accounts(data, path)
    accounts.add_user(
        name, _entered_password(password), create=list(create), read=list(read), permissions=list(permission)
    )
    done(f"{name} may log in", user=name, action="added")


@users.command("change")
@click.argument("name")
@_rights_options
@click.option("--active/--frozen", default=None, help="A frozen user cannot log in, and has no sessions.")
@_file_options
@done_option
def change_user(
    name: str,
    create: tuple[str, ...],
    read: tuple[str, ...],
    permission: tuple[str, ...],
    active: bool | None,
    data: Path,
    path: Path | None,
) -> None:
    """Replace a user's rights. Kinds that are not given stay; an empty text removes all of a kind."""
    rights = {"create": create, "read": read, "permissions": permission}
    changes = {kind: [name_ for name_ in names if name_] if names else None for kind, names in rights.items()}
    _accounts(data, path).change_user(name, active=active, **changes)
    done(f"{name} is changed", user=name, action="changed")


@users.command("password")
@click.argument("name")
@_password_option("--password", "Asked for when it is not given.")
@_file_options
@done_option
def set_password(name: str, password: str | None, data: Path, path: Path | None) -> None:
    """Set a new password, which ends the user's sessions."""
    _accounts(data, path).set_password(name, _entered_password(password))
    done(f"{name} has another password; all sessions are ended", user=name, action="password set")


@users.command("token")
@click.argument("name")
@click.option("--drop", is_flag=True, help="Let the password do without a token again.")
@_file_options
@done_option
def security_token(name: str, drop: bool, data: Path, path: Path | None) -> None:
    """Create a new security token, which clients append to the password as with Salesforce. It is shown only once."""
    accounts = _accounts(data, path)
    if drop:
        accounts.drop_token(name)
        done(f"{name} logs in without a security token", user=name, action="token dropped")
    else:
        token = accounts.make_token(name)
        done(token, user=name, action="token made", token=token)


@users.command("logout")
@click.argument("name")
@_file_options
@done_option
def end_sessions(name: str, data: Path, path: Path | None) -> None:
    """End all sessions and refresh tokens of a user."""
    _accounts(data, path).end_sessions(name)
    done(f"all sessions of {name} are ended", user=name, action="sessions ended")


@users.command("remove")
@click.argument("name")
@_file_options
@done_option
def remove_user(name: str, data: Path, path: Path | None) -> None:
    """Remove a user; the user's sessions end."""
    _accounts(data, path).remove_user(name)
    done(f"{name} is removed", user=name, action="removed")


@click.group()
def apps() -> None:
    """Add and remove connected apps: programs that log in by OAuth."""


@apps.command("list")
@_file_options
@json_option
def list_apps(data: Path, path: Path | None, as_json: bool) -> None:
    """List the connected apps of the accounts file."""
    apps_ = _accounts(data, path).apps()
    if as_json:
        print_json(apps_)
        return
    rows = [
        [
            app["clientId"],
            *(app.get(member, "-") for member in ("runAs", "certificate")),
            *(" ".join(app.get(member, default)) for member, default in (("users", ["*"]), ("callbackUrls", ["-"]))),
        ]
        for app in apps_
    ]
    print_table(["client id", "runs as", "certificate", "users", "callback URLs"], rows)


@apps.command("add")
@click.argument("client_id")
@_password_option("--secret", "Its client secret; asked for when it is not given.")
@click.option("--no-secret", is_flag=True, help="It can keep none (a page, a desktop program); it logs in with PKCE.")
@click.option("--run-as", metavar="USER", help="The user as whom it acts by its own credentials.")
@click.option(
    "--certificate", metavar="PEM", help="Certificate or public key of its JWTs; beside the accounts file, or absolute."
)
@click.option("--user", "admitted", multiple=True, metavar="NAME", help="Who may use it, also as a pattern; all do.")
@click.option("--callback", "callbacks", multiple=True, metavar="URL", help="Where it may be sent a code.")
@_file_options
@done_option
def add_app(
    client_id: str,
    secret: str | None,
    no_secret: bool,
    run_as: str | None,
    certificate: str | None,
    admitted: tuple[str, ...],
    callbacks: tuple[str, ...],
    data: Path,
    path: Path | None,
) -> None:
    """Add a connected app."""
    _accounts(data, path).add_app(
        client_id,
        None if no_secret else _entered_password(secret),
        runAs=run_as,
        certificate=certificate,
        users=list(admitted),
        callbackUrls=list(callbacks),
    )
    done(f"{client_id} may ask for tokens", app=client_id, action="added")


@apps.command("remove")
@click.argument("client_id")
@_file_options
@done_option
def remove_app(client_id: str, data: Path, path: Path | None) -> None:
    """Remove a connected app; its tokens end."""
    _accounts(data, path).remove_app(client_id)
    done(f"{client_id} is removed", app=client_id, action="removed")
