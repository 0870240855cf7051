"""The private parts of aiokafka and uvicorn that Tidegate uses still exist.

Both are pinned narrowly in pyproject.toml. When a pin is raised, these tests name each part that has moved and the file
that uses it, before any test of behaviour fails.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pickle
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
USERS = {
    "aiokafka": sorted((ROOT / "broker/client").rglob("*.py")),
    "uvicorn": sorted((ROOT / "tidegate/kit").glob("http*.py")),
}
"""Our files that use each library."""

HOOKS = {
    "aiokafka.client:AIOKafkaClient": (
        "_bootstrap_servers _client_id _connections_max_idle_ms _conns _get_conn _loop _maybe_wait_metadata _md_synchronizer "
        "_on_connection_closed _request_timeout_ms _retry_backoff _sasl_kerberos_domain_name _sasl_kerberos_service_name "
        "_sasl_mechanism _sasl_oauth_token_provider _sasl_plain_password _sasl_plain_username _security_protocol _ssl_context "
        "_sync_task _topics _wait_on_metadata"
    ),
    "aiokafka.conn:AIOKafkaConnection": (
        "_client_id _closed_fut _handle_frame _last_action _loop _next_correlation_id _protocol _request_timeout _requests _versions _writer"
    ),
    "aiokafka.consumer.consumer:AIOKafkaConsumer": (
        "_auto_offset_reset _check_crcs _client _client_rack _consumer_timeout _coordinator _fetch_max_bytes _fetch_max_wait_ms "
        "_fetch_min_bytes _fetcher _isolation_level _max_partition_fetch_bytes _retry_backoff_ms _subscription"
    ),
    "aiokafka.consumer.fetcher:Fetcher": (
        "_client _default_reset_strategy _fetch_task _get_actions_per_node _invalidate_preferred_read_replica_for_node "
        "_pending_tasks _preferred_read_replica _prefetch_backoff _proc_offset_request _records _set_error "
        "_update_fetch_positions _update_preferred_read_replica"
    ),
    "aiokafka.consumer.fetcher:FetchResult": "_partition_records",
    "aiokafka.consumer.group_coordinator:GroupCoordinator": (
        "_assignors _coordination_task _stop_commit_offsets_refresh_task _stop_heartbeat_task"
    ),
    "aiokafka.protocol.metadata:MetadataRequest": "_allow_auto_topic_creation",
    "aiokafka.producer.message_accumulator:BatchBuilder": "_build _builder",
    "aiokafka.producer.message_accumulator:MessageAccumulator": (
        "_append_batch _batch_size _batches _cluster _compression_type _linger_time _pending_batches _txn_manager _waiter_future"
    ),
    "aiokafka.producer.message_accumulator:MessageBatch": "_builder _ctime _drain_waiter",
    "aiokafka.producer.producer:AIOKafkaProducer": (
        "_message_accumulator _metadata _partitioner _sender _txn_manager"
    ),
    "aiokafka.producer.sender:SendProduceReqHandler": "_batches _client _to_reenqueue",
    "aiokafka.producer.sender:Sender": "_acks _fail_all _in_flight _message_accumulator _muted_partitions _request_timeout_ms _txn_manager",
    "aiokafka.producer.transaction_manager:TransactionManager": "_pid_and_epoch _pid_waiter _sequence_numbers _transaction_waiter _txn_partitions",
    "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol": (
        "_start_asgi_task _unset_keepalive_if_required app_state connection_lost cycle flow loop on_body on_headers_complete "
        "on_message_begin on_message_complete on_response_complete pipeline scope shutdown transport"
    ),
    "uvicorn.protocols.http.httptools_impl:RequestResponseCycle": (
        "body default_headers disconnected keep_alive message_event more_body response_complete response_started scope "
        "waiting_for_100_continue"
    ),
    "uvicorn.server:Server": "capture_signals startup",
}  # fmt: skip
"""Class by class, the private methods and attributes that ours call, replace or read. uvicorn's protocol documents none of its parts."""


@cache
def parts(module: str) -> dict[str, set[str]]:
    """The methods and attributes of each class of a module, read from its source."""
    source = Path(str(importlib.import_module(module).__file__)).read_text()
    return {node.name: set(_members(node)) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}


def _members(cls: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(cls):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_name(node.value, "self"):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_name(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in HOOKS.items() for name in names.split()])
def test_a_private_part_is_where_it_is_used(owner: str, name: str) -> None:
    module, _, cls = owner.partition(":")
    library = module.partition(".")[0]
    users = [str(path.relative_to(ROOT)) for path in USERS[library] if name in path.read_text()]
    assert name in parts(module).get(cls, set()), (
        f"{library} {importlib.metadata.version(library)} has no {cls}.{name} in {module}; {', '.join(users)} use it"
    )
    assert users, f"nothing uses {cls}.{name} any more: take it out of HOOKS"


@pytest.mark.parametrize("library", USERS)
def test_every_private_part_that_is_used_is_listed(library: str) -> None:
    """A private name of the library that our files use through another object, through super(), or on self without defining it."""
    listed = {name for names in HOOKS.values() for name in names.split()}
    package = importlib.import_module(library)
    theirs = {
        name
        for path in Path(str(package.__file__)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for name in _members(node)
        if _private(name)
    }
    trees = [ast.parse(path.read_text()) for path in USERS[library]]
    ours = {
        name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in _members(node)
    }
    used = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _private(node.attr) and node.attr in theirs:
                on_super = isinstance(node.value, ast.Call) and _is_name(node.value.func, "super")
                if on_super or node.attr not in ours:
                    used.add(node.attr)
    assert used - listed == set(), "add them to HOOKS"


@pytest.mark.parametrize("library", USERS)
def test_a_library_whose_private_parts_are_used_is_pinned_to_a_minor_version(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (requirement,) = [r for r in map(Requirement, project["dependencies"]) if r.name == library]
    installed = importlib.metadata.version(library)
    major, minor = map(int, installed.split(".")[:2])
    assert requirement.specifier.contains(installed)
    assert not requirement.specifier.contains(f"{major}.{minor + 1}.0")
    assert not requirement.specifier.contains(f"{major}.{minor - 1}.99")


def test_the_part_of_python_that_task_hosts_replace_is_what_imports_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """``connect.worker.host.imports`` has imports take turns there: also those of C, of Cython, and of importlib."""
    bootstrap = sys.modules["_frozen_importlib"]
    find_and_load = bootstrap._find_and_load  # type: ignore[attr-defined]
    asked = list[str]()

    def noted(name: str, import_: object) -> object:
        asked.append(name)
        return find_and_load(name, import_)

    monkeypatch.setattr(bootstrap, "_find_and_load", noted)
    with pytest.raises(ModuleNotFoundError):
        import hooks_first  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("hooks_second")
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(b"chooks_third\nname\n.")  # which imports in C
    assert asked == ["hooks_first", "hooks_second", "hooks_third"]
