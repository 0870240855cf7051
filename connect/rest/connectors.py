"""Connectors and their tasks."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from connect.errors import BadRequest, NotFound
from connect.herder.offset_changes import as_changes
from connect.herder.operations import Operations
from connect.rest.requests import base_url, flag, json_value, string_map, string_map_of
from connect.rest.rights import owner_of, require_right, sees
from connect.stores import TargetState
from tidegate.kit.http import json_response

__all__ = ["ConnectorRoutes"]

_INITIAL = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}


class ConnectorRoutes:
    """Translates requests to operations and back; ``topic_tracking`` off disables the routes about topics."""

    def __init__(self, operations: Operations, *, topic_tracking: bool) -> None:
        self._operations, self._topic_tracking = operations, topic_tracking

    async def list(self, request: Request) -> Response:
        kinds = request.query_params.getlist("expand")
        if kinds:
            shown = self._operations.expanded(kinds)
            return json_response({name: entry for name, entry in shown.items() if sees(request, name)})
        return json_response([name for name in self._operations.names() if sees(request, name)])

    async def create(self, request: Request) -> Response:
        body = await json_value(request)
        if not isinstance(body, dict):
            raise BadRequest('The request body must be an object: {"name": ..., "config": {...}}')
        unknown = sorted(set(body) - {"name", "config", "initial_state"})
        if unknown:
            raise BadRequest(f'Unrecognized field "{unknown[0]}"; known properties: "name", "config", "initial_state"')
        config = string_map_of(body.get("config") or {})
        name = body.get("name") or ""
        if not isinstance(name, str):
            raise BadRequest(f'"name" must be text, not {name}')
        initial = body.get("initial_state")
        if initial is not None and str(initial).upper() not in _INITIAL:
            raise BadRequest(f"Cannot deserialize initial_state from {initial}: must be RUNNING, PAUSED or STOPPED")
        target = _INITIAL[initial.upper()] if initial is not None else None
        require_right(request, "manage", name.strip())
        info = await self._operations.create(name.strip(), config, target, owner=owner_of(request))
        return _created(request, info)

    async def show(self, request: Request) -> Response:
        return json_response(self._operations.info(_name(request)))

    async def delete(self, request: Request) -> Response:
        await self._operations.delete(_name(request))
        return Response(status_code=204)

    async def show_config(self, request: Request) -> Response:
        return json_response(self._operations.config(_name(request)))

    async def put_config(self, request: Request) -> Response:
        config = await string_map(request)
        created, info = await self._operations.put(_name(request), config, owner=owner_of(request))
        return _created(request, info) if created else json_response(info)

    async def patch_config(self, request: Request) -> Response:
        changes = await string_map(request)
        return json_response(await self._operations.patch(_name(request), changes, owner=owner_of(request)))

    async def status(self, request: Request) -> Response:
        return json_response(self._operations.status(_name(request)))

    async def pause(self, request: Request) -> Response:
        await self._operations.set_target(_name(request), TargetState.PAUSED)
        return Response(status_code=202)

    async def resume(self, request: Request) -> Response:
        await self._operations.set_target(_name(request), TargetState.STARTED)
        return Response(status_code=202)

    async def stop(self, request: Request) -> Response:
        await self._operations.set_target(_name(request), TargetState.STOPPED)
        return Response(status_code=204)

    async def restart(self, request: Request) -> Response:
        shown = await self._operations.restart(
            _name(request), include_tasks=flag(request, "includeTasks"), only_failed=flag(request, "onlyFailed")
        )
        return Response(status_code=204) if shown is None else json_response(shown, 202)

    async def run_job(self, request: Request) -> Response:
        await self._operations.run_job(_name(request))
        return Response(status_code=202)

    async def cancel_job(self, request: Request) -> Response:
        await self._operations.cancel_job(_name(request))
        return Response(status_code=202)

    async def tasks(self, request: Request) -> Response:
        return json_response(self._operations.tasks(_name(request)))

    async def task_status(self, request: Request) -> Response:
        return json_response(self._operations.task_status(_name(request), request.path_params["task"]))

    async def restart_task(self, request: Request) -> Response:
        await self._operations.restart_task(_name(request), request.path_params["task"])
        return Response(status_code=204)

    async def offsets(self, request: Request) -> Response:
        return json_response(await self._operations.offsets(_name(request)))

    async def alter_offsets(self, request: Request) -> Response:
        changes = as_changes(await json_value(request))
        return json_response(await self._operations.change_offsets(_name(request), changes))

    async def reset_offsets(self, request: Request) -> Response:
        return json_response(await self._operations.change_offsets(_name(request), None))

    async def topics(self, request: Request) -> Response:
        self._require_tracking()
        return json_response(self._operations.topics(_name(request)))

    async def reset_topics(self, request: Request) -> Response:
        self._require_tracking()
        await self._operations.reset_topics(_name(request))
        return Response(status_code=202)

    def _require_tracking(self) -> None:
        if not self._topic_tracking:
            raise _Forbidden("Topic tracking is disabled.")

    async def progress(self, request: Request) -> Response:
        return json_response(self._operations.progress(_name(request)))

    async def preview(self, request: Request) -> Response:
        body = await json_value(request)
        if not isinstance(body, dict) or body.keys() != {"records"}:
            raise BadRequest('The request body must be an object: {"records": [...]}')
        shown = await self._operations.preview_of_records(_name(request), body["records"], owner=owner_of(request))
        return json_response(shown)

    async def lineage(self, request: Request) -> Response:
        """The flows of one connector, or of all that the user may see."""
        only = request.path_params.get("name")
        names = [only] if only is not None else [name for name in self._operations.names() if sees(request, name)]
        flows = [flow for name in names for flow in self._operations.lineage(name)]
        return json_response({"kafka": self._operations.kafka_namespace, "flows": flows})

    async def statistics(self, request: Request) -> Response:
        shown = self._operations.statistics()
        shown["connectors"] = {name: tasks for name, tasks in shown["connectors"].items() if sees(request, name)}
        return json_response(shown)


class _Forbidden(NotFound):
    http_status = 403


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _created(request: Request, info: dict[str, object]) -> Response:
    """``Location`` in JAX-RS's form: absolute, with slashes in the name unescaped."""
    path = quote(str(info["name"]), safe="/!$&'()*+,;=:@")
    return json_response(info, 201, Location=f"{base_url(request)}/connectors/{path}")
