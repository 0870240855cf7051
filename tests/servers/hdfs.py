"""HDFS: one NameNode and one DataNode, RPC and WebHDFS, no permissions."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.servers.fetch import require
from tests.servers.java import QUICK, java
from tests.servers.process import ServerFailed, ServerProcess, free_ports

__all__ = ["HdfsServer", "xml"]

_OPENED: Final = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch")
_LOGGING: Final = """\
log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class HdfsServer:
    """A file system at ``url`` (RPC) and ``http_url`` (WebHDFS) with everything under ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._conf = directory / "conf"
        self.rpc_port, self.http_port, *data_ports = free_ports(5)
        self.url = f"hdfs://127.0.0.1:{self.rpc_port}"
        self.http_url = f"http://127.0.0.1:{self.http_port}"
        self._write_conf(data_ports)
        self.name_node = self._node("NameNode", "namenode.NameNode", self._name_node_answers)
        self.data_node = self._node("DataNode", "datanode.DataNode", self._has_data_node)

    def _write_conf(self, data_ports: list[int]) -> None:
        for pages in ("hdfs", "datanode"):  # the jars have no web pages; the HTTP servers want a folder for them
            (self._conf / "webapps" / pages / "WEB-INF").mkdir(parents=True, exist_ok=True)
        address = "127.0.0.1:{}".format
        core = {"fs.defaultFS": self.url, "hadoop.tmp.dir": str(self._directory / "tmp")}
        hdfs = {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": f"file://{self._directory}/name",
            "dfs.datanode.data.dir": f"file://{self._directory}/data",
            "dfs.namenode.rpc-address": address(self.rpc_port),
            "dfs.namenode.http-address": address(self.http_port),
            "dfs.datanode.address": address(data_ports[0]),
            "dfs.datanode.ipc.address": address(data_ports[1]),
            "dfs.datanode.http.address": address(data_ports[2]),
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.client.use.datanode.hostname": "true",
        }
        (self._conf / "core-site.xml").write_text(xml(core))
        (self._conf / "hdfs-site.xml").write_text(xml(hdfs))
        (self._conf / "log4j.properties").write_text(_LOGGING)

    def _command(self, main: str) -> list[str]:
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        classes = f"{self._conf}:{require('hdfs') / 'libs'}/*"
        return [java(), "-Xmx256m", *QUICK, *opened, "-cp", classes, f"org.apache.hadoop.hdfs.server.{main}"]

    def _node(self, name: str, main: str, ready: Callable[[], bool]) -> ServerProcess:
        return ServerProcess(f"HDFS {name}", self._command(main), log=self._directory / f"{name}.log", ready=ready)

    def start(self) -> None:
        if not (self._directory / "name" / "current").exists():
            format_command = [*self._command("namenode.NameNode"), "-format", "-nonInteractive"]
            made = subprocess.run(format_command, capture_output=True, text=True)
            if made.returncode:
                raise ServerFailed(f"formatting HDFS ended with status {made.returncode}:\n{made.stderr[-2000:]}")
        self.name_node.start()
        try:
            self.data_node.start()
        except ServerFailed:
            self.name_node.kill()
            raise

    def stop(self) -> None:
        self.data_node.stop()
        self.name_node.stop()

    def _state(self) -> Mapping[str, object]:
        query = f"{self.http_url}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            with urllib.request.urlopen(query, timeout=2) as response:
                beans = json.load(response)["beans"]
        except (OSError, ValueError):
            return {}
        return dict(beans[0]) if beans else {}

    def _name_node_answers(self) -> bool:
        return bool(self._state())

    def _has_data_node(self) -> bool:
        return self._state().get("NumLiveDataNodes") == 1


def xml(properties: Mapping[str, str]) -> str:
    """A configuration file of Hadoop."""
    entries = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    return f"<configuration>{entries}</configuration>\n"
