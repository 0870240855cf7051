"""The settings of cloud-kafka.md are taken, and its program writes the token that they name."""

from __future__ import annotations

import sys
import time
import types

import pytest

from tests.support.pages import ROOT, blocks
from tidegate.kit.properties import read_properties
from tidegate.platform import make_plan

PAGE = ROOT / "docs/how-to/cloud-kafka.md"


def test_a_platform_takes_the_tables(tmp_path):
    tables = [block.text for block in blocks(PAGE, "toml")]
    assert len(tables) == 2
    for table in tables:
        (tmp_path / "tidegate.toml").write_text(table)
        plan = make_plan(tmp_path, listen={}, config_file=tmp_path / "tidegate.toml", bootstrap_servers="127.0.0.1:9")
        assert plan.properties["connect"]["security.protocol"] == "SASL_SSL"
        assert plan.properties["connect"]["sasl.mechanism"] in table


def test_the_program_writes_the_token_that_the_settings_name(tmp_path, monkeypatch):
    """With a signer of ours: AWS's is not installed, and would ask AWS."""
    given = iter(("first", "second"))
    signer = types.ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = types.SimpleNamespace(generate_auth_token=lambda region: (next(given), 0))
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    (program,) = blocks(PAGE, "python")
    with pytest.raises(StopIteration):
        exec(program.text.replace("/run/tidegate", str(tmp_path / "run")), {})
    (settings,) = blocks(PAGE, "properties")
    (tmp_path / "client.properties").write_text(settings.text)
    url = read_properties(tmp_path / "client.properties")["sasl.oauthbearer.token.endpoint.url"]
    assert (tmp_path / url.removeprefix("file:").replace("/run/tidegate", "run")).read_text() == "second"
