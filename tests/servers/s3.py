"""An S3 server over a folder: versitygw, which verifies signatures and responds like Amazon."""

from __future__ import annotations

import http.client
from pathlib import Path

from tests.servers.fetch import require
from tests.servers.process import ServerProcess, free_ports

__all__ = ["S3Server"]


class S3Server:
    """One gateway, on loopback unless another ``address`` is given; path-style addresses, the keys below, region us-east-1."""

    access_key = "tidegate"
    secret_key = "tidegate-secret"
    region = "us-east-1"

    def __init__(self, directory: Path, address: str = "127.0.0.1") -> None:
        program = require("s3") / "bin" / "versitygw"
        self.store, sidecar = directory / "store", directory / "sidecar"
        self.store.mkdir(parents=True, exist_ok=True)
        sidecar.mkdir(exist_ok=True)
        (self.port,) = free_ports(1)
        self._address = address
        self.endpoint_url = f"http://{address}:{self.port}"
        self.log = directory / "server.log"
        """A line for each request."""
        self.process = ServerProcess(
            "versitygw",
            [str(program), "--port", f"{address}:{self.port}", "posix", "--sidecar", str(sidecar), str(self.store)],
            log=self.log,
            ready=self._answers,
            environment={"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key},
        )

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._address, self.port, timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except OSError:
            return False
        finally:
            connection.close()
