from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tidegate.kit.certificates as made_certificates
from tidegate.kit.certificates import CA_FILE, TlsFiles, certificates


def shake_hands(files: TlsFiles, ca: Path, name: str) -> None:
    """A TLS handshake between two ends of a pair, the client checking certificate and name."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.private_key)
    client = ssl.create_default_context(cafile=ca)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        serving = threading.Thread(target=lambda: server.wrap_socket(ours, server_side=True).close())
        serving.start()
        client.wrap_socket(theirs, server_hostname=name).close()
        serving.join(60)


def test_clients_that_trust_the_authority_trust_the_server(tmp_path: Path) -> None:
    files = certificates(tmp_path, ["events.test", "10.1.2.3"])
    for name in ("localhost", "127.0.0.1", "::1", "events.test", "10.1.2.3"):
        shake_hands(files, tmp_path / CA_FILE, name)


def test_the_same_certificate_serves_until_a_host_is_new(tmp_path: Path) -> None:
    first = certificates(tmp_path, ["127.0.0.1"]).certificate.read_bytes()
    authority = (tmp_path / CA_FILE).read_bytes()
    assert certificates(tmp_path, ["127.0.0.1"]).certificate.read_bytes() == first
    files = certificates(tmp_path, ["other.test"])
    assert files.certificate.read_bytes() != first
    assert (tmp_path / CA_FILE).read_bytes() == authority
    shake_hands(files, tmp_path / CA_FILE, "other.test")


def test_keys_are_the_owners_alone(tmp_path: Path) -> None:
    certificates(tmp_path, [])
    for name in ("ca.key", "server.key"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["ca.key", CA_FILE, "server.key", "server.pem"])
@pytest.mark.parametrize("content", ["nothing", "half", "another's"])
def test_files_left_by_a_kill_are_recreated(tmp_path: Path, name: str, content: str) -> None:
    certificates(tmp_path / "other", [])
    certificates(tmp_path / "tls", [])
    file = tmp_path / "tls" / name
    if content == "nothing":
        file.unlink()
    elif content == "half":
        file.write_bytes(file.read_bytes()[:60])
    else:
        file.write_bytes((tmp_path / "other" / name).read_bytes())
    files = certificates(tmp_path / "tls", [])
    shake_hands(files, tmp_path / "tls" / CA_FILE, "localhost")


def test_servers_that_start_at_once_on_one_folder_have_one_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_make_one, made = threading.Barrier(2), []
    authority = made_certificates._authority

    def slowly(directory: Path) -> Any:
        made.append(directory)
        with suppress(threading.BrokenBarrierError):  # the other one waits for the lock
            both_make_one.wait(1)
        return authority(directory)

    monkeypatch.setattr(made_certificates, "_authority", slowly)
    servers = [threading.Thread(target=certificates, args=(tmp_path, [])) for _ in range(2)]
    for server in servers:
        server.start()
    for server in servers:
        server.join(60)
    assert made == [tmp_path]
    shake_hands(certificates(tmp_path, []), tmp_path / CA_FILE, "localhost")
