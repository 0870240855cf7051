"""The configuration in docs/how-to/registry-security.md is valid as shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from registry.server.config import RegistryConfig
from registry.server.security.authfile import AuthFile
from tests.support.pages import ROOT, blocks
from tidegate.kit.config import families_of, keys_of, unknown_keys, validate
from tidegate.kit.jaas import login_contexts
from tidegate.kit.passwords import LoggedIn
from tidegate.kit.properties import read_properties

PAGE = ROOT / "docs" / "how-to" / "registry-security.md"


def test_the_properties_are_right(tmp_path: Path) -> None:
    shown = list(blocks(PAGE, "properties"))
    assert len(shown) == 2
    prefixes = [prefix for prefix, _ in families_of(RegistryConfig)]
    for block in shown:
        (tmp_path / "registry.properties").write_text(block.text)
        properties = read_properties(tmp_path / "registry.properties")
        assert unknown_keys(properties, keys_of(RegistryConfig), prefixes) == []
        assert [error for judged in validate(RegistryConfig, properties) for error in judged.errors] == []


def test_the_files_of_users_are_right(tmp_path: Path) -> None:
    (json_file,) = blocks(PAGE, "json")
    (tmp_path / "auth.json").write_text(json_file.text)
    file = AuthFile(tmp_path / "auth.json")
    assert asyncio.run(file.login("orders", "opensesame")) == LoggedIn("orders")
    assert file.rights.allows("orders", "Write", "Subject:orders-value")
    assert not file.rights.allows("orders", "Write", "Config:")
    jaas = PAGE.read_text().partition("```\nSchemaRegistry-Props")[2].partition("```")[0]
    assert login_contexts("SchemaRegistry-Props" + jaas)["SchemaRegistry-Props"][0].options == {
        "file": "/etc/registry/passwords"
    }
