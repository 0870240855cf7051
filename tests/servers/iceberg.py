"""A REST catalog of Iceberg: the server of its own tests, over SQLite and a folder of this disk."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.fetch import require
from tests.servers.java import QUICK, java
from tests.servers.process import ServerProcess, free_ports

__all__ = ["IcebergRestServer"]


def _variable(name: str) -> str:
    """The name by which the server takes a setting of its catalog."""
    return "CATALOG_" + name.upper().replace("-", "__").replace(".", "_")


class IcebergRestServer:
    """The catalog at ``url``, with its tables' files under ``directory``, unless ``settings`` of the catalog say otherwise: those of
    ``jars`` may be needed for that."""

    def __init__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, jars: Sequence[Path] = ()
    ) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        classes = ":".join(
            [f"{require('iceberg-rest') / 'libs'}/*", f"{require('hdfs') / 'libs'}/*", *(str(jar) for jar in jars)]
        )
        main = "org.apache.iceberg.rest.RESTCatalogServer"
        self.process = ServerProcess(
            "Iceberg's REST catalog",
            [java(), "-Xmx256m", *QUICK, "-cp", classes, main],
            log=directory / "server.log",
            ready=self._answers,
            environment={
                # SQLite lets one connection write at a time, and the server waits for minutes where two want to.
                "CATALOG_URI": f"jdbc:sqlite:{directory}/catalog.db?busy_timeout=20000",
                "CATALOG_CLIENTS": "1",
                "CATALOG_WAREHOUSE": f"file://{directory}/warehouse",
                "CATALOG_REST_PORT": str(self.port),
                **{_variable(name): value for name, value in (settings or {}).items()},
            },
        )

    @property
    def catalog(self) -> dict[str, str]:
        """The keys of a connector that reach it."""
        return {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": self.url}

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/config", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False
