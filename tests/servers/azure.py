"""A server with Azure's Blob API over a folder: Azurite, Microsoft's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import urllib.parse
import urllib.request
from email.utils import formatdate
from pathlib import Path
from xml.etree import ElementTree

from tests.servers.fetch import ServerMissing, require
from tests.servers.process import ServerProcess, free_ports

__all__ = ["AzureServer"]


class AzureServer:
    """One server on loopback, with the account and key that Azurite documents. Its containers may be read without a login."""

    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self, directory: Path) -> None:
        program = require("azurite") / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        node = shutil.which("node")
        if node is None:
            raise ServerMissing("azurite needs Node: install Node.js 18 or later")
        directory.mkdir(parents=True, exist_ok=True)
        (self.port,) = free_ports(1)
        self.endpoint_url = f"http://127.0.0.1:{self.port}/{self.account}"
        self.process = ServerProcess(
            "azurite",
            [node, str(program), "--location", str(directory / "store"), "--blobHost", "127.0.0.1", "--blobPort",
             str(self.port), "--skipApiVersionCheck", "--disableTelemetry", "--silent"],
            log=directory / "server.log",
            ready=self._answers,
        )  # fmt: skip

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def create_container(self, name: str) -> None:
        headers = {
            "x-ms-blob-public-access": "container",
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": "2021-12-02",
        }
        canonical = "".join(f"{header}:{headers[header]}\n" for header in sorted(headers))
        resource = f"/{self.account}/{self.account}/{name}\nrestype:container"
        unused_headers = "\n" * 12
        signed = f"PUT{unused_headers}{canonical}{resource}".encode()
        signature = base64.b64encode(hmac.new(base64.b64decode(self.key), signed, hashlib.sha256).digest()).decode()
        headers |= {"Authorization": f"SharedKey {self.account}:{signature}", "Content-Length": "0"}
        url = f"{self.endpoint_url}/{name}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)):
            pass

    def blobs(self, container: str) -> dict[str, bytes]:
        """All blobs of a container, asked without a client of Azure."""
        with urllib.request.urlopen(f"{self.endpoint_url}/{container}?restype=container&comp=list") as response:
            names = [each.text or "" for each in ElementTree.fromstring(response.read()).iter("Name")]
        return {name: self._blob(container, name) for name in names}

    def _blob(self, container: str, name: str) -> bytes:
        with urllib.request.urlopen(f"{self.endpoint_url}/{container}/{urllib.parse.quote(name)}") as response:
            return bytes(response.read())

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except OSError:
            return False
        finally:
            connection.close()
