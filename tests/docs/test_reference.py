"""Everything that is declared has its place in the reference pages as they would be made now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import click
import pytest

import connect.converters
import connect.transforms
import connectors
from tests.support.pages import ROOT
from tests.support.reference import generate
from tidegate.cli import tidegate

PACKAGES = ("broker", "registry", "connect", "connectors", "events", "tidegate")


@pytest.fixture(scope="module")
def page():
    made: dict[str, str] = {}

    def text(name: str) -> str:
        if name not in made:
            made[name] = generate.PAGES[name]()
        return made[name]

    return text


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class in the source as (module, definition): read from the files, not from what the generator finds."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    yield module, node


def test_every_key_of_every_config_class(page):
    text, seen = page("config.md"), 0
    for module, node in classes():
        if not any(isinstance(d, ast.Name) and d.id == "config" for d in node.decorator_list):
            continue
        if module.startswith("connect.testing."):
            continue  # keys of tests, which no user sets
        calls = [n.value for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.value, ast.Call)]
        names = [c.args[0].value for c in calls if isinstance(c.func, ast.Name) and c.func.id == "key"]
        section = text.partition(f"## {module}.{node.name}\n")[2].partition("\n## ")[0]
        missing = [name for name in names if f"| `{name}` |" not in section]
        assert not missing, f"{module}.{node.name}: {missing}"
        seen += len(names)
    assert seen > 200


def test_every_error_class(page):
    bases = {node.name: {b.id for b in node.bases if isinstance(b, ast.Name)} for _, node in classes()}

    def is_error(name: str) -> bool:
        return name == "TidegateError" or any(is_error(base) for base in bases.get(name, ()))

    errors = [
        (module, node.name) for module, node in classes() if is_error(node.name) and not node.name.startswith("_")
    ]
    assert len(errors) > 100
    assert [e for e in errors if f"| `{e[0]}` | `{e[1]}` |" not in page("errors.md")] == []


def test_every_command_and_option(page):
    def walk(command: click.Command, path: str) -> None:
        section = page("cli.md").partition(f"## {path}\n")[2].partition("\n## ")[0]
        assert section, path
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[0] in section, f"{path} {parameter.opts[0]}"
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                walk(command.get_command(click.Context(command), name), f"{path} {name}")

    walk(tidegate, "tidegate")


def test_every_plugin_by_all_its_names(page):
    for owner in (connectors, connect.converters, connect.transforms):
        for plugin in owner.register_plugins():
            for name in (*plugin.names, *plugin.short_names):
                assert f"`{name}`" in page("plugins.md")
