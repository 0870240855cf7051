"""Configuration shown on pages is valid."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.support.pages import ROOT, Block, blocks, id_of, pages
from tidegate.components import COMPONENTS
from tidegate.kit.config import families_of, keys_of, unknown_keys, validate
from tidegate.platform import make_plan

CONFIGS = {
    "broker": "broker.config:BrokerConfig",
    "registry": "registry.server.config:RegistryConfig",
    "connect": "connect.config.worker:WorkerConfig",
    "events": "events.config:EventsConfig",
    "console": "tidegate.console.config:ConsoleConfig",
}


def config_class(component: str) -> type:
    module, _, name = (COMPONENTS[component].config or CONFIGS[component]).partition(":")
    return getattr(importlib.import_module(module), name)


def platform_files() -> list[Block]:
    """The TOML blocks that are a tidegate.toml."""
    tables = {f"[{name}]" for name in (*CONFIGS, "kafka")}
    return [block for page in pages() for block in blocks(page, "toml") if tables & set(block.text.splitlines())]


@pytest.mark.parametrize("block", platform_files(), ids=id_of)
@pytest.mark.parametrize("component", CONFIGS)
def test_a_tidegate_toml_is_right_for_every_component(block: Block, component: str, tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text(block.text)
    elsewhere = "127.0.0.1:9" if "[kafka]" in block.text else None
    plan = make_plan(tmp_path / "data", listen={}, config_file=tmp_path / "tidegate.toml", bootstrap_servers=elsewhere)
    if elsewhere is not None and component == "broker":
        assert "broker" not in plan.properties
        return
    properties, cls = plan.properties[component], config_class(component)
    assert [error for judged in validate(cls, properties) for error in judged.errors] == []
    if component in ("broker", "events", "console"):
        assert unknown_keys(properties, keys_of(cls), [prefix for prefix, _ in families_of(cls)]) == []


def test_the_guide_shows_platform_files() -> None:
    assert len(platform_files()) >= 2


def test_keys_given_to_a_component_alone_are_its_own() -> None:
    shown = [
        (page, component, key)
        for page in pages()
        for component, options in re.findall(r"tidegate serve (\w+)((?: +--set +\S+)+)", page.read_text())
        for key in re.findall(r"--set +([^=\s]+)=", options)
    ]
    assert len(shown) >= 4
    for page, component, key in shown:
        cls = config_class(component)
        prefixes = [prefix for prefix, _ in families_of(cls)]
        assert unknown_keys([key], keys_of(cls), prefixes) == [], f"{page.relative_to(ROOT)}: {component} has no {key}"
