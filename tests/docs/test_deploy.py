"""The files of the page about deploying name what exists: components, keys, ports, addresses, versions; and they run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from broker.kafka_keys import KAFKA_KEYS
from tests.docs.test_configuration import config_class
from tests.servers.process import ServerProcess, free_ports
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.pages import ROOT
from tidegate.components import COMPONENTS
from tidegate.kit.config import families_of, keys_of, unknown_keys, validate
from tidegate.kit.properties import read_properties

FOLDER = ROOT / "docs/how-to/deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = tomllib.loads((ROOT / "tests/servers/pins.toml").read_text())
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
KUBERNETES = FOLDER / "kubernetes"
LISTEN_KEYS = ("listeners", "http.listen", "https.listen", "pubsub.listen", "pubsub.plain.listen")


@dataclass
class Run:
    """A component that a file runs: its properties, the ports it declares and where its health is asked."""

    where: str
    component: str
    properties: dict[str, str]
    ports: set[int]
    health: set[tuple[int, str]]
    environment: Mapping[str, str] = field(default_factory=dict)

    def listens(self) -> dict[str, int]:
        return {key: int(self.properties[key].rpartition(":")[2]) for key in LISTEN_KEYS if key in self.properties}


def _from_arguments(arguments: list[str]) -> tuple[str, dict[str, str]]:
    serve, component, *rest = arguments
    assert serve == "serve"
    properties: dict[str, str] = {}
    for argument in rest:
        if argument.startswith("--set="):
            key, _, value = argument.removeprefix("--set=").partition("=")
            properties[key] = re.sub(r"\$[({].*?[)}]", "example", value)
        else:
            properties |= read_properties(KUBERNETES / "config" / Path(argument).name)
    return component, properties


def _composed() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())  # type: ignore[no-any-return]


def runs() -> Iterator[Run]:
    for name, service in _composed()["services"].items():
        if name == "kafka":
            continue
        component, properties = _from_arguments(service["command"])
        url = service.get("environment", {}).get("HEALTH_URL") or re.findall(r"HEALTH_URL=(\S+)", DOCKERFILE)[0]
        port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", url).groups()  # type: ignore[union-attr]
        published = [re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in service["ports"]]
        yield Run(
            f"compose {name}",
            component,
            properties,
            {int(match[1]) for match in published if match},
            {(int(port), path)},
        )
    for path in sorted(KUBERNETES.glob("*.yaml")):
        for resource in yaml.safe_load_all(path.read_text()):
            if resource["kind"] != "Deployment":
                continue
            (container,) = resource["spec"]["template"]["spec"]["containers"]
            component, properties = _from_arguments(container["args"])
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            probes = [container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")]
            asked = {(ports[probe["port"]], probe["path"]) for probe in probes}
            yield Run(f"kubernetes {component}", component, properties, set(ports.values()), asked)


RUNS = list(runs())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.where)
def test_a_component_is_run_with_keys_and_ports_of_its_own(run: Run) -> None:
    assert run.component in COMPONENTS
    cls = config_class(run.component)
    assert [error for judged in validate(cls, run.properties) for error in judged.errors] == []
    assert unknown_keys(run.properties, keys_of(cls), [prefix for prefix, _ in families_of(cls)]) == []
    listens = run.listens()
    assert set(listens.values()) == run.ports
    defaults = {int(face.default.rpartition(":")[2]) for face in COMPONENTS[run.component].faces}
    assert run.ports <= defaults and {port for port, _ in run.health} <= run.ports


def test_every_component_but_the_broker_and_triggers_is_run_by_both() -> None:
    named = {run.where for run in RUNS}
    wanted = COMPONENTS.keys() - {"broker", "triggers"}
    assert named == {f"{file} {component}" for file in ("compose", "kubernetes") for component in wanted}


def test_versions_are_those_of_the_project() -> None:
    version = PROJECT["version"]
    assert set(re.findall(r"tidegate[-:](\d+\.\d+\.\d+)", DOCKERFILE)) == {version}
    compose = _composed()
    assert compose["x-tidegate"]["image"] == f"tidegate:{version}"
    assert compose["services"]["kafka"]["image"] == f"apache/kafka:{PINS['kafka']['version']}"
    (image,) = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["images"]
    assert image["newTag"] == version
    (extras,) = re.findall(r"ARG EXTRAS=(\S+)", DOCKERFILE)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert set(re.findall(r"FROM python:([\d.]+)-slim", DOCKERFILE)) <= {
        entry.rpartition(" ")[2] for entry in PROJECT["classifiers"]
    }


def test_settings_of_apache_kafka_are_keys_of_it() -> None:
    environment = _composed()["services"]["kafka"]["environment"]
    kafka, *_ = [
        doc for doc in yaml.safe_load_all((FOLDER / "strimzi/kafka.yaml").read_text()) if doc["kind"] == "Kafka"
    ]
    named = {key.removeprefix("KAFKA_").lower().replace("_", ".") for key in environment} | kafka["spec"]["kafka"][
        "config"
    ].keys()
    assert named - KAFKA_KEYS.keys() == set()
    addresses = {run.properties.get("bootstrap.servers") for run in RUNS} - {None}
    (listener,) = kafka["spec"]["kafka"]["listeners"]
    strimzi = f"{kafka['metadata']['name']}-kafka-bootstrap:{listener['port']}"
    assert addresses == {strimzi, environment["KAFKA_ADVERTISED_LISTENERS"].removeprefix("PLAINTEXT://")}


def test_kustomize_builds_both_folders() -> None:
    """Where the machine has kubectl; its names and references are looked at without it, too."""
    resources = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in KUBERNETES.glob("*.yaml")} == {"kustomization.yaml", *resources}
    if (kubectl := shutil.which("kubectl")) is None:
        return
    for folder in (KUBERNETES, FOLDER / "strimzi"):
        said = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, timeout=60, check=True)
        built = list(yaml.safe_load_all(said.stdout))
        services = {resource["metadata"]["name"] for resource in built if resource["kind"] == "Service"}
        deployments = {resource["metadata"]["name"] for resource in built if resource["kind"] == "Deployment"}
        assert services == deployments == COMPONENTS.keys() - {"broker", "triggers"}
        called = {
            host for run in RUNS for value in run.properties.values() for host in re.findall(r"http://([a-z]+):", value)
        }
        assert called <= services


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["compose", pytest.param("kubernetes", marks=pytest.mark.long)])
def test_the_components_start_and_their_health_is_asked_where_it_is(kind: str, tmp_path: Path) -> None:
    """Each command on a broker of ours; only hosts, ports and folders differ. Health by the command of the image."""
    (check,) = re.findall(r"HEALTHCHECK[^\[]*CMD (\[.*\])", DOCKERFILE)
    _, _, program = yaml.safe_load(check)
    broker = TidegateBroker(tmp_path / "broker")
    wanted = [run for run in RUNS if run.where.startswith(kind)]
    ports = dict(zip({port for run in wanted for port in run.listens().values()}, free_ports(9), strict=False))
    with ExitStack() as stack:
        broker.start()
        stack.callback(broker.stop)
        for run in sorted(wanted, key=lambda run: ("registry", "connect", "events", "console").index(run.component)):
            ready = tmp_path / f"{run.component}.ready"
            settings = {
                key: _here(value, broker.bootstrap_servers, ports, tmp_path) for key, value in run.properties.items()
            }
            if run.component == "connect":  # one broker takes no replicas; three are the default of workers
                settings |= {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}
            if run.component == "registry":
                settings |= {"host.name": "127.0.0.1", "kafkastore.topic.replication.factor": "1"}
            if run.component == "events":
                settings |= {key: "127.0.0.1:0" for key in LISTEN_KEYS[1:] if key not in settings}
            sets = [f"--set={key}={value}" for key, value in settings.items()]
            process = ServerProcess(
                run.where,
                [sys.executable, "-m", "tidegate.cli", "serve", run.component, *sets, "--ready-file", str(ready)],
                log=tmp_path / f"{run.component}.log",
                ready=ready.exists,
            )
            process.start()
            stack.callback(process.stop)
            for port, path in run.health:
                url = f"http://127.0.0.1:{ports[port]}{path}"
                assert requests.get(url, timeout=30).status_code == 200
                done = subprocess.run([sys.executable, "-c", program], env={"HEALTH_URL": url}, timeout=60, check=False)
                assert done.returncode == 0
        (closed,) = free_ports(1)
        gone = {"HEALTH_URL": f"http://127.0.0.1:{closed}/health"}
        done = subprocess.run([sys.executable, "-c", program], env=gone, capture_output=True, timeout=60, check=False)
        assert done.returncode != 0


def _here(value: str, kafka: str, ports: Mapping[int, int], folder: Path) -> str:
    if value.endswith(":9092"):
        return kafka
    value = value.replace("/var/lib/tidegate", str(folder / "data"))
    host = re.fullmatch(r"(http://)?([a-z0-9.]+):(\d+)", value)
    if host is not None and int(host[3]) in ports:
        return f"{host[1] or ''}127.0.0.1:{ports[int(host[3])]}"
    return value


def test_commands_of_the_page_are_those_of_the_files() -> None:
    """The image that the page builds is the one that compose runs."""
    page = (ROOT / "docs/how-to/deploy.md").read_text()
    builds = [shlex.split(line) for line in page.splitlines() if line.startswith("docker build")]
    assert [build[build.index("--tag") + 1] for build in builds] == [_composed()["x-tidegate"]["image"]]
    for build in builds:
        assert (ROOT / build[build.index("--file") + 1]).samefile(FOLDER / "Dockerfile")
