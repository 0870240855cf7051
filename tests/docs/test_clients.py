"""The programs on the pages of plain clients run as they are, and on a secured platform with the settings that the pages give.

Java's takes Confluent's serializers, which are in Confluent's repository only: `tests/docs/java` has two classes of their
names over Confluent's registry client, which Flink carries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.fetch import ServerMissing, require
from tests.servers.fixtures import or_skip
from tests.servers.java import java
from tests.support.pages import ROOT, Block, Command, Shell, blocks, commands
from tests.support.platform import running_platform

PAGES = ROOT / "docs" / "how-to" / "clients"
GO = ROOT / "tests" / "docs" / "go"
JAVA = ROOT / "tests" / "docs" / "java"
_LANGUAGES = ("python", "java", "go", "js", "properties")
_NAMED = re.compile(r"^(?://|#) ([\w.]+\.\w+)\n")
OTHERS = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long]


def programs(page: Path) -> dict[str, Block]:
    """The blocks whose first line, a comment, names a file; the first of each name."""
    named: dict[str, Block] = {}
    for block in blocks(page, *_LANGUAGES):
        if name := _NAMED.match(block.text):
            named.setdefault(name[1], block)
    return named


def secured(page: Path) -> str:
    """The settings for a secured platform: the last block of a program."""
    return blocks(page, *_LANGUAGES)[-1].text.replace("kafka.example.org", "127.0.0.1")


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ServerMissing(f"no {name} on the path")
    return path


def for_python(folder: Path) -> dict[str, str]:
    return {}


def for_node(folder: Path) -> dict[str, str]:
    or_skip(lambda: program("node"))
    (folder / "node_modules").symlink_to(or_skip(lambda: require("clients-node").absolute()) / "node_modules")
    return {}


def for_go(folder: Path) -> dict[str, str]:
    or_skip(lambda: program("go"))
    modules = or_skip(lambda: require("clients-go").absolute()) / "modules"
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO / name, folder)
    return {"GOMODCACHE": str(modules), "GOPROXY": "off", "GOFLAGS": "-mod=readonly", "GONOSUMDB": "*"}


def for_java(folder: Path) -> dict[str, str]:
    fetched = or_skip(lambda: [require(name).absolute() / "libs" for name in ("kafka", "avro", "registry-java")])
    program_path, compiler = or_skip(lambda: (java(), program("javac")))
    libraries = folder / "libs"
    libraries.mkdir()
    for jar in (jar for libs in reversed(fetched) for jar in libs.glob("*.jar")):
        (libraries / jar.name).unlink(missing_ok=True)
        (libraries / jar.name).symlink_to(jar)
    classes = folder / "classes"
    sources = [str(path) for path in JAVA.rglob("*.java")]
    subprocess.run([compiler, "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), *sources], check=True)
    with zipfile.ZipFile(libraries / "serializers.jar", "w") as jar:
        for path in classes.rglob("*.class"):
            jar.write(path, path.relative_to(classes))
    return {"PATH": f"{Path(program_path).parent}{os.pathsep}{os.environ['PATH']}"}


CLIENTS: dict[str, Callable[[Path], dict[str, str]]] = {
    "confluent-kafka.md": for_python,
    "kafka-python.md": for_python,
    "java.md": for_java,
    "go.md": for_go,
    "node.md": for_node,
}
EVOLUTION = "../schema-evolution.md"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    without = [word for name in ("connect", "events") for word in ("--without", name)]
    with running_platform(tmp_path_factory.mktemp("clients"), *without) as platform:
        yield platform


@pytest.mark.parametrize(
    "page",
    [
        *(pytest.param(name, marks=[] if prepare is for_python else OTHERS) for name, prepare in CLIENTS.items()),
        pytest.param(EVOLUTION, marks=pytest.mark.proof),
    ],
)
def test_a_page_s_programs_write_and_read(page, platform, tmp_path):
    (tmp_path / "tidegate-data").symlink_to(platform.data)
    prepare = CLIENTS.get(page, for_python)
    shell = Shell(tmp_path, prepare(tmp_path), addresses=platform.addresses)
    for name, block in programs(PAGES / page).items():
        (tmp_path / name).write_text(shell.here(block.text))
    for block in blocks(PAGES / page, "console"):
        for command in commands(block):
            shell.run(command)


def with_login(page: Path, text: str) -> str:
    """A program with the page's settings for a secured platform in place of its addresses."""
    settings = secured(page)
    if page.name == "java.md":
        return text
    if page.name == "go.md":
        more = ["crypto/tls", "crypto/x509", "os", "github.com/twmb/franz-go/pkg/sasl/scram"]
        text = text.replace("import (\n", "import (\n" + "".join(f'"{name}"\n' for name in more), 1)
        text, count = re.subn(r"(?m)^\tkafka := .*\n\tregistry := .*\n", lambda _: settings, text)
    elif page.name == "node.md":
        imports, _, rest = settings.partition("\nconst ca")
        text, count = re.subn(r"(?m)^const kafka = .*\nconst registry = .*\n", lambda _: f"const ca{rest}", text)
        text = text.replace("\nimport", f"\n{imports}\nimport", 1)
    else:
        text, count = re.subn(r"(?m)^KAFKA = .*\nREGISTRY = .*\n", lambda _: settings, text)
    assert count == 1, f"{page.name}: no addresses to replace"
    return text


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
def test_the_settings_for_a_secured_platform(tmp_path):
    platform = tmp_path / "platform"
    platform.mkdir()
    shell = Shell(platform, {"TIDEGATE_CONTEXTS": str(tmp_path / "contexts.json")})
    try:
        for line in (
            "export TIDEGATE_NEW_PASSWORD=correct-horse-battery; tidegate secure init",
            "export TIDEGATE_NEW_PASSWORD=alice-has-her-own; tidegate users add alice --may 'manage topic *' "
            "--may 'read group *' --may 'manage subject *' --may 'write transaction *'",
            "tidegate up --detach --without connect --without events",
        ):
            shell.run(Command(line, ""))
        for page, prepare in CLIENTS.items():
            folder = tmp_path / page
            folder.mkdir()
            shutil.copy(platform / "tidegate-data" / "security" / "tls" / "ca.pem", folder)
            (folder / "tidegate-data").symlink_to(platform / "tidegate-data")
            client = Shell(folder, prepare(folder), replaced=shell._moved)
            for name, block in programs(PAGES / page).items():
                text = secured(PAGES / page) if name.endswith(".properties") else with_login(PAGES / page, block.text)
                (folder / name).write_text(client.here(text))
            for block in blocks(PAGES / page, "console"):
                for command in commands(block):
                    client.run(command)
    finally:
        shell.stop()
