"""The reference pages are up to date and contain everything that is declared."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import click
import pytest

import connect.converters
import connect.transforms
import connectors
from tests.support.pages import ROOT
from tests.support.reference import api_pages, config_pages, generate
from tidegate.cli import tidegate
from tidegate.kit.config import keys_of

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
    return ((module, node) for module, node in nodes() if isinstance(node, ast.ClassDef))


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    return ((module, node) for module, node in nodes() if isinstance(node, ast.FunctionDef))


def nodes() -> Iterator[tuple[str, ast.stmt]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(path.read_text()).body:
                yield module, node


def config_texts(page) -> list[str]:
    return [page(name) for name in generate.PAGES if name.startswith("config/")]


def test_every_key_of_every_config_class(page):
    """Classes that others include have no section of their own: some page has all their keys."""
    texts, seen = config_texts(page), 0
    of_tasks = {(cls.__module__, cls.__name__) for cls in config_pages.task_only()}
    for module, node in classes():
        if not any(isinstance(d, ast.Name) and d.id == "config" for d in node.decorator_list):
            continue
        if module.startswith("connect.testing.") or (module, node.name) in of_tasks:
            continue  # keys that no user sets
        calls = [n.value for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.value, ast.Call)]
        names = [c.args[0].value for c in calls if isinstance(c.func, ast.Name) and c.func.id == "key"]
        assert any(all(f"| `{name}` |" in text for name in names) for text in texts), f"{module}.{node.name}"
        seen += len(names)
    assert seen > 200


def test_every_connector_class_has_a_page_of_its_keys(page):
    connectors_ = list(config_pages.plugins_of("source", "sink"))
    assert len(connectors_) > 30
    for plugin in connectors_:
        text = page(f"config/connectors/{plugin.name}.md")
        assert f"\n# {plugin.name}\n" in text
        assert [key.name for key in keys_of(plugin.load().config_class) if f"| `{key.name}` |" not in text] == []
        assert f"(connectors/{plugin.name}.md)" in page("config/README.md")


def test_every_public_name_has_a_section(page):
    for name in api_pages.PUBLIC_MODULES:
        headings = page(f"api/{name}.md").splitlines()
        missing = [member for member in importlib.import_module(name).__all__ if f"## {member}" not in headings]
        assert missing == [], name


def test_every_hook_is_described(page):
    named = {node.name for module, node in functions() if any(_is_hookspec(d) for d in node.decorator_list)}
    assert {"register_plugins", "register_triggers"} <= named
    assert [name for name in named if f"\n## {name}\n" not in page("hooks.md")] == []


def _is_hookspec(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "hookspec"


def test_a_page_of_a_connector_that_is_gone_is_stale(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "REFERENCE", tmp_path)
    monkeypatch.setattr(generate, "PAGES", {"kept.md": lambda: generate.heading("Kept", "here")})
    (tmp_path / "gone.md").write_text(generate.heading("Gone", "there"))
    (tmp_path / "by-hand.md").write_text("# Written\n")
    assert generate.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by-hand.md", "kept.md"]
    (tmp_path / "gone.md").write_text(generate.heading("Gone", "there"))
    assert generate.main(["--check"]) == 1
    assert "gone.md" in capsys.readouterr().err


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
