"""Key stores, users and limits change while clients are connected."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.broker.security.conftest import OID, Doors, Issuer, doors_settings
from tests.broker.security.test_sasl_exchange import API_VERSIONS, METADATA, NONE, connect, log_in, plain
from tests.support.broker import BrokerThread
from tests.support.certificates import Authority
from tests.support.wire import exchange


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Doors]:
    authority, issuer = Authority(tmp_path / "authority"), Issuer(tmp_path)
    with BrokerThread(doors_settings(tmp_path / "data", authority, issuer)) as broker:
        yield Doors(broker, authority, issuer, tmp_path)


def alter(doors: Doors, **changes: str) -> None:
    entries = [
        ConfigEntry(name.replace("__", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": doors.address("PLAINTEXT")})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def certificate(doors: Doors) -> dict[str, object]:
    """The certificate that the SSL listener presents."""
    context = ssl.create_default_context(cafile=str(doors.authority.certificate))
    with socket.create_connection(("127.0.0.1", doors.port("SSL"))) as sock:
        with context.wrap_socket(sock, server_hostname="localhost") as tls:
            assert exchange(tls, API_VERSIONS)
            return dict(tls.getpeercert() or {})


def test_a_certificate_is_exchanged_at_run_time(changing: Doors) -> None:
    before = certificate(changing)
    with connect(changing, "PLAINTEXT") as old:
        assert exchange(old, METADATA)
        other = changing.authority.issue((OID.ORGANIZATION_NAME, "renewed"), (OID.COMMON_NAME, "another"))
        alter(changing, listener__name__ssl__ssl__keystore__location=str(other))
        after = certificate(changing)
        assert after["serialNumber"] != before["serialNumber"]
        # The same path again reads the file again, as in Kafka.
        changing.authority.issue((OID.ORGANIZATION_NAME, "renewed again"), (OID.COMMON_NAME, "another"))
        alter(changing, listener__name__ssl__ssl__keystore__location=str(other))
        assert certificate(changing)["serialNumber"] not in (before["serialNumber"], after["serialNumber"])
        assert exchange(old, METADATA)


def test_a_key_store_that_cannot_be_read_changes_nothing(changing: Doors) -> None:
    before = certificate(changing)
    with pytest.raises(KafkaException, match="cannot read /no/such"):
        alter(changing, listener__name__ssl__ssl__keystore__location="/no/such")
    assert certificate(changing) == before


def test_users_of_plain_come_at_run_time_and_stay(tmp_path: Path) -> None:
    authority, issuer = Authority(tmp_path / "authority"), Issuer(tmp_path)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    for start in range(2):
        with BrokerThread(doors_settings(tmp_path / "data", authority, issuer)) as broker:
            doors = Doors(broker, authority, issuer, tmp_path)
            if start == 0:
                alter(doors, listener__name__sasl_plaintext__plain__sasl__jaas__config=f'{module} user_new="come";')
            with connect(doors) as sock:
                assert log_in(sock, "PLAIN", plain("new", "come"))[0] == NONE


def test_limits_change_at_run_time(changing: Doors) -> None:
    with connect(changing, "SSL"):
        alter(changing, max__connections__per__ip="1")
        with connect(changing, "SASL_PLAINTEXT") as sock:
            assert sock.recv(1) == b""
