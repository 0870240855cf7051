"""The daily commands on a secured platform: for the owner of its folder, and for a user of a context, over TLS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.platform import running_platform, tidegate, until

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.mark.proof
@pytest.mark.long
def test_daily_commands_over_tls_and_with_a_login(tmp_path: Path) -> None:
    environment = {"TIDEGATE_CONTEXTS": str(tmp_path / "contexts.json")}
    data = tmp_path / "data"
    tidegate("secure", "init", "--password", "correct-horse", "--data", data, environment=environment)
    (tmp_path / "lines.txt").write_text("a\nb\n")
    (tmp_path / "lines.json").write_text(
        json.dumps({"connector.class": SOURCE, "topic": "lines", "file": str(tmp_path / "lines.txt")})
    )
    with running_platform(tmp_path, "--without", "events") as platform:
        tidegate("connectors", "apply", tmp_path / "lines.json", "--wait", "--data", data)
        told = json.loads(tidegate("top", "--json", "--data", data).stdout)
        components = {component["name"]: component for component in told["components"]}
        assert components["broker"]["records_per_s"] is not None, "the broker's metrics ask for a login too"
        assert platform.status()["connectors"][0]["name"] == "lines"
        tidegate("restart", "registry", "--data", data)
        ca, url = data / "security" / "tls" / "ca.pem", platform.addresses["connect"]
        login = ("--user", "admin", "--password", "correct-horse")
        tidegate("use", "far", "--connect", url, "--ca", ca, *login, environment=environment)

        def far(*arguments: str) -> str:
            done = tidegate("--context", "far", *arguments, environment=environment, folder=tmp_path)
            return done.stdout

        until(lambda: json.loads(far("connectors", "offsets", "get", "lines", "--json"))["offsets"], "a position")
        assert json.loads(far("connectors", "show", "lines", "--json"))["tasks"][0]["counts"]["rows"] == 2
        assert json.loads(far("top", "--json"))["connectors"][0]["rows"] == 2
        assert json.loads(far("loggers", "list", "root", "--json")) == {"root": "INFO"}
        assert far("connectors", "restart", "lines") == "lines restarted\n"
        assert far("connectors", "export", "lines", "--output", "out") == "out/lines.json\n"
        assert far("connectors", "diff", "out") == "lines: same\n"
