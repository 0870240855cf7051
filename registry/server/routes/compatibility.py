"""``/compatibility``: whether a schema would be accepted."""

from __future__ import annotations

from typing import Any, Final

from registry.errors import InvalidSchema
from registry.server.routes import answers
from registry.server.routes.bodies import definition
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import NORMALIZE, VERBOSE

__all__ = ["ENDPOINTS"]


async def test_version_compatibility(call: Call) -> Any:
    """Check a schema against one version of the subject, by the effective level.

    Reasons are returned only with ``verbose``.
    """
    return await _check(call, call.version)


async def test_subject_compatibility(call: Call) -> Any:
    """Check a schema against the versions that a registration would check, by the effective level."""
    return await _check(call, None)


async def _check(call: Call, number: int | None) -> Any:
    sent, verbose, normalize = definition(call.json()), call.flag(VERBOSE), call.flag(NORMALIZE)
    await call.registry.catalog.understand(call.subject, sent, normalize=normalize, strict=(None,), versions=True)
    try:
        problems = call.registry.catalog.check(call.subject, sent, number, normalize=normalize)
    except InvalidSchema as error:
        if not verbose:
            raise
        problems = [error.message]
    return answers.compatibility(problems, verbose=verbose)


_VERSIONS: Final = "/compatibility/subjects/{subject}/versions"
_REQUEST: Final = "SchemaRequest"
_ANSWER: Final = "CompatibilityCheckResponse"

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        _VERSIONS + "/{version}",
        test_version_compatibility,
        _ANSWER,
        (NORMALIZE, VERBOSE),
        body=_REQUEST,
        cached=True,
    ),
    Endpoint("POST", _VERSIONS, test_subject_compatibility, _ANSWER, (NORMALIZE, VERBOSE), body=_REQUEST, cached=True),
)
