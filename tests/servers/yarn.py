"""YARN on loopback: one ResourceManager and one NodeManager, whose containers are plain processes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.servers.fetch import require
from tests.servers.hdfs import xml
from tests.servers.java import QUICK, java
from tests.servers.process import ServerProcess, free_ports

__all__ = ["Yarn"]

_OPENED: Final = ("java.base/java.lang", "java.base/java.nio", "java.base/java.util", "java.base/sun.nio.ch")
_LOGGING: Final = """\
log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class Yarn:
    """``conf`` is its configuration folder, which clients get as HADOOP_CONF_DIR."""

    def __init__(self, directory: Path, memory_mb: int = 2560) -> None:
        self._directory, self.conf = directory, directory / "conf"
        self.conf.mkdir(parents=True)
        manager, scheduler, tracker, admin, self._web, node, localizer, node_web = free_ports(8)
        address = "127.0.0.1:{}".format
        yarn = {
            "yarn.resourcemanager.address": address(manager),
            "yarn.resourcemanager.scheduler.address": address(scheduler),
            "yarn.resourcemanager.resource-tracker.address": address(tracker),
            "yarn.resourcemanager.admin.address": address(admin),
            "yarn.resourcemanager.webapp.address": address(self._web),
            "yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.address": address(node),
            "yarn.nodemanager.localizer.address": address(localizer),
            "yarn.nodemanager.webapp.address": address(node_web),
            "yarn.nodemanager.local-dirs": str(directory / "local"),
            "yarn.nodemanager.log-dirs": str(directory / "logs"),
            "yarn.nodemanager.resource.memory-mb": str(memory_mb),
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        }
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(directory / "tmp")}
        (self.conf / "core-site.xml").write_text(xml(core))
        (self.conf / "yarn-site.xml").write_text(xml(yarn))
        (self.conf / "log4j.properties").write_text(_LOGGING)
        self._manager = self._process("ResourceManager", "resourcemanager.ResourceManager")
        self._node = self._process("NodeManager", "nodemanager.NodeManager")

    def _process(self, name: str, main: str) -> ServerProcess:
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        classes = f"{self.conf}:{require('yarn') / 'libs'}/*"
        ready = self._answers if name == "ResourceManager" else self._has_node
        return ServerProcess(
            f"YARN's {name}",
            [java(), "-Xmx256m", *QUICK, *opened, "-cp", classes, f"org.apache.hadoop.yarn.server.{main}"],
            log=self._directory / f"{name}.log",
            ready=ready,
            environment={"JAVA_HOME": str(Path(java()).resolve().parents[1]), "PYTHONPATH": ""},
        )

    def start(self) -> None:
        self._manager.start()
        self._node.start()

    def stop(self) -> None:
        self._node.stop()
        self._manager.stop()

    @property
    def node_pid(self) -> int:
        """The process whose children are the containers."""
        return self._node.pid

    def applications(self) -> list[dict[str, Any]]:
        """Those that there were, as the ResourceManager tells of them."""
        return list((self._ask("apps").get("apps") or {}).get("app", []))

    def _answers(self) -> bool:
        return bool(self._ask("info"))

    def _has_node(self) -> bool:
        nodes = (self._ask("nodes").get("nodes") or {}).get("node", [])
        return any(node["state"] == "RUNNING" for node in nodes)

    def _ask(self, what: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/ws/v1/cluster/{what}", timeout=2) as response:
                return dict(json.load(response))
        except (OSError, ValueError):
            return {}
