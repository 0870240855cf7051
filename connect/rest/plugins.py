"""Plugins: lists them and their keys, validates and previews configurations."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from connect.errors import BadRequest
from connect.herder.operations import Operations
from connect.rest.requests import string_map
from connect.rest.rights import owner_of
from tidegate.kit.http import json_response

__all__ = ["PluginRoutes"]

_MOST_ROWS: Final = 100


class PluginRoutes:
    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def list(self, request: Request) -> Response:
        only = request.query_params.get("connectorsOnly", "true").lower() != "false"
        return json_response(self._operations.plugins(connectors_only=only))

    async def keys(self, request: Request) -> Response:
        return json_response(await self._operations.plugin_keys(request.path_params["plugin"]))

    async def validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        return json_response(
            await self._operations.validate(plugin, await string_map(request), owner=owner_of(request))
        )

    async def unknown_keys(self, request: Request) -> Response:
        return json_response(await self._operations.unknown_keys(await string_map(request), owner=owner_of(request)))

    async def preview(self, request: Request) -> Response:
        text = request.query_params.get("rows", "10")
        if not text.isdecimal() or not 1 <= int(text) <= _MOST_ROWS:
            raise BadRequest(f"rows is {text!r}: give a number from 1 to {_MOST_ROWS}")
        plugin = request.path_params["plugin"]
        return json_response(
            await self._operations.preview(plugin, await string_map(request), int(text), owner=owner_of(request))
        )
