"""The arguments of every page: the console, and a visit to it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tidegate.clients.credentials import Credentials
from tidegate.console.config import ConsoleConfig
from tidegate.console.drafts import Drafts
from tidegate.console.faces import Faces
from tidegate.console.group_samples import GroupSampler
from tidegate.console.queries import Queries
from tidegate.console.rendering import Renderer
from tidegate.console.samples import Sampler
from tidegate.console.sessions import Session, Sessions
from tidegate.kit.errors import UsageError
from tidegate.kit.logs import get_logger
from tidegate.kit.users import UsersFile

__all__ = ["SESSION", "Console", "NavigationEntry", "Visit", "form_of"]

SESSION: Final = "console.session"
"""The key of the session in a request's scope."""
_KEPT_USERS: Final = 200
_AUDIT: Final = get_logger("console.audit")
_FORM: Final = "console.form"


@dataclass(frozen=True)
class NavigationEntry:
    """A page in the navigation."""

    title: str
    path: str


@dataclass
class Console:
    """The parts that all pages share."""

    config: ConsoleConfig
    sessions: Sessions
    renderer: Renderer = field(default_factory=Renderer)
    users: UsersFile | None = None
    sampler: Sampler | None = None
    groups: GroupSampler | None = None
    drafts: Drafts = field(default_factory=Drafts)
    queries: Queries = field(default_factory=Queries)
    navigation: Sequence[NavigationEntry] = ()
    _faces: OrderedDict[Credentials | None, Faces] = field(default_factory=OrderedDict)

    @property
    def data(self) -> Path | None:
        """The folder of the platform on this machine."""
        return Path(self.config.data_dir) if self.config.data_dir else None

    def faces(self, credentials: Credentials | None) -> Faces:
        """The clients of one user; the same for each request."""
        if (known := self._faces.get(credentials)) is None:
            known = self._faces[credentials] = Faces(self.config, credentials)
            while len(self._faces) > _KEPT_USERS:
                self._faces.popitem(last=False)
        user = self.users.last_read.named(credentials.user) if self.users is not None and credentials else None
        known.is_admin = self.users is None or (user is not None and user.is_admin)
        self._faces.move_to_end(credentials)
        return known

    def has_page(self, path: str) -> bool:
        """Whether the navigation has a page, so that others may link to what is below it."""
        return any(entry.path == path for entry in self.navigation)

    def route(
        self, path: str, handler: Callable[[Visit], Awaitable[Response]], methods: Sequence[str] = ("GET",)
    ) -> Route:
        """A route whose handler gets a Visit. The edge has checked login, site and token before."""

        async def endpoint(request: Request) -> Response:
            return await handler(Visit(self, request, request.scope[SESSION]))

        return Route(path, endpoint, methods=list(methods))


@dataclass
class Visit:
    """One request of one user."""

    console: Console
    request: Request
    session: Session

    @property
    def faces(self) -> Faces:
        return self.console.faces(self.session.credentials)

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the path."""
        return self.request.path_params

    @property
    def is_partial(self) -> bool:
        """Whether htmx wants a part of the page and not the page."""
        return "hx-request" in self.request.headers and "hx-boosted" not in self.request.headers

    async def form(self) -> dict[str, str]:
        """The fields of a POST. Raises UsageError if the body is no form."""
        return await form_of(self.request)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page from ``templates``, which extends ``layout.html``, or a part of one."""
        return self.console.renderer.html(
            template,
            status,
            visit=self,
            navigation=self.console.navigation,
            path=self.request.scope["path"],
            now_ms=int(time.time() * 1000),
            **values,
        )

    def may(self, verb: str, kind: str, name: str) -> bool:
        """Whether a page shows what needs a right. Where the users are not known here, the faces refuse what one may not do."""
        users = self.console.users
        user = users.last_read.named(self.session.user) if users is not None else None
        return users is None or (user is not None and user.may(verb, kind, name))

    def may_some(self, verb: str, kind: str) -> bool:
        """Whether there may be a thing of that kind with which the user may do this."""
        users = self.console.users
        user = users.last_read.named(self.session.user) if users is not None else None
        return users is None or (user is not None and user.may_some(verb, kind))

    def redirect(self, path: str) -> Response:
        """To the page that shows the result of a change."""
        return RedirectResponse(path, 303)

    def audit(self, action: str, **what: Any) -> None:
        """Write a line about a change that was made, with the user, to the audit log; never with secrets."""
        client = self.request.client
        _AUDIT.info(action, user=self.session.user or None, client=client.host if client else None, **what)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a urlencoded body; of a name that comes more than once, the last."""
    if (known := request.scope.get(_FORM)) is None:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if body and kind != "application/x-www-form-urlencoded":
            raise UsageError(f"The body is {kind or 'of no type'}; pages send application/x-www-form-urlencoded")
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=5000)
        except (ValueError, UnicodeDecodeError) as error:
            raise UsageError(f"The body is no form: {error}") from error
        known = request.scope[_FORM] = dict(pairs)
    form: dict[str, str] = known
    return form
