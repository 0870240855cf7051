"""The S3 sink against a real S3 server; its objects are read with Amazon's client."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from connect.api import ConnectError, RetriableConnectError, TopicPartition
from connectors.s3.client import _classified
from connectors.s3.config import S3SinkConfig
from connectors.s3.sink import S3SinkConnector
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on
from tests.support.connect import sink_task
from tests.support.objects import batch, row
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    with bucket_on(s3_server) as made:
        yield made


def properties(bucket: Bucket, **more: str) -> dict[str, str]:
    properties = {
        **bucket.access,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
    }
    return properties | {key.replace("_", "."): value for key, value in more.items()}


def sink(bucket: Bucket, **more: str) -> Any:
    return sink_task(S3SinkConnector, properties(bucket, **more))


def test_objects_are_named_as_the_original_names_them(bucket: Bucket) -> None:
    task = sink(bucket, s3_compression_type="gzip")
    task.put([batch([row(n) for n in range(7)], 10, partition=2)])
    objects = bucket.objects()
    assert list(objects) == [
        "topics/events/partition=2/events+2+0000000010.json.gz",
        "topics/events/partition=2/events+2+0000000013.json.gz",
    ]
    lines = gzip.decompress(objects["topics/events/partition=2/events+2+0000000013.json.gz"]).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [3, 4, 5]
    assert task.pre_commit({TopicPartition("events", 2): 17}) == {TopicPartition("events", 2): 16}
    task.stop()


def test_a_restart_replaces_objects_by_the_same(bucket: Bucket) -> None:
    rows = [row(n) for n in range(9)]
    task = sink(bucket)
    task.put([batch(rows)])
    task.stop()
    before = bucket.objects()
    again = sink(bucket)  # from the offset committed before the crash, in other batches
    for first in range(0, 9, 2):
        again.put([batch(rows[first : first + 2], first)])
    again.stop()
    assert bucket.objects() == before


def test_a_small_object_is_one_request(bucket: Bucket, s3_server: S3Server) -> None:
    task = sink(bucket)
    task.put([batch([row(n) for n in range(6)])])
    task.stop()
    requests = [line.split("|") for line in s3_server.log.read_text().splitlines() if f"/{bucket.name}/topics/" in line]
    assert [(request[5].strip(), request[6].rpartition("+")[2].strip()) for request in requests] == [
        ("PUT", "0000000000.json"),
        ("PUT", "0000000003.json"),
    ]


def test_a_large_object_arrives_whole(bucket: Bucket) -> None:
    task = sink(bucket, format_class="ByteArrayFormat", flush_size="12", format_bytearray_separator="")
    from connect.api import Schema, SchemaType

    bodies = [bytes([65 + n]) * 2_000_000 for n in range(12)]
    task.put([batch(bodies, schema=Schema(SchemaType.BYTES), times=[0] * 12)])  # type: ignore[arg-type]
    task.stop()
    assert list(bucket.objects().values()) == [b"".join(bodies)]


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"s3_bucket_name": "not-there"}, ConnectError, "cannot write s3://not-there/topics"),
        ({"aws_secret_access_key": "wrong"}, ConnectError, "AWS Error"),
        ({"store_url": "http://127.0.0.1:1"}, RetriableConnectError, "cannot write s3://"),
    ],
)
def test_errors_are_reported(bucket: Bucket, change: dict[str, str], error: type[Exception], message: str) -> None:
    task = sink(bucket, **change)
    with pytest.raises(error, match=message) as raised:
        task.put([batch([row(n) for n in range(3)])])
    assert "wrong" not in str(raised.value)
    task.stop()


@pytest.mark.parametrize(
    "name", ["signatures", "access_denied", "AWS Error NO_SUCH_BUCKET during HeadObject operation"]
)
def test_the_name_of_an_object_says_nothing_about_an_error(bucket: Bucket, name: str) -> None:
    task = sink(bucket, store_url="http://127.0.0.1:1", topics_dir=name)
    with pytest.raises(RetriableConnectError, match="NETWORK_CONNECTION"):
        task.put([batch([row(n) for n in range(3)])])
    task.stop()


@pytest.mark.parametrize(
    ("told", "for_good"),
    [
        ("AWS Error SLOW_DOWN during UploadPart operation: Please reduce your request rate.", False),
        ("AWS Error UNKNOWN (HTTP status 503) during UploadPart operation: 400 403 404", False),
        ("AWS Error UNKNOWN (HTTP status 400) during CreateMultipartUpload operation: InvalidBucketName", True),
        ("AWS Error INTERNAL_FAILURE during UploadPart operation: AccessDenied", False),
        ("AWS Error SIGNATURE_DOES_NOT_MATCH during ListObjectsV2 operation: check your key", True),
        ("no words of a server", False),
    ],
)
def test_errors_are_told_apart_by_their_codes(told: str, for_good: bool) -> None:
    text = f"When uploading a part for key 'topics/NoSuchBucket/x' in bucket 'b': {told} (Request ID: 1)"
    assert _classified(text, "b/topics/NoSuchBucket/x")[1] is for_good


def test_configurations_as_people_write_them_are_valid() -> None:
    config = {
        "topics": "pageviews",
        "store.url": "http://127.0.0.1:4566",
        "s3.region": "us-west-1",
        "s3.bucket.name": "sink-pageviews",
        "s3.part.size": "5242880",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "flush.size": "100",
        "behavior.on.null.values": "ignore",
        "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
        "schema.compatibility": "BACKWARD",
    }
    assert not [judged for judged in validate(S3SinkConfig, config) if judged.errors]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"s3.ssea.name": "aws:kms"}, "s3.ssea.name"),
        ({"s3.sse.kms.key.id": "k"}, "s3.sse.kms.key.id"),
        ({"s3.sse.customer.key": "k"}, "s3.sse.customer.key"),
        ({"s3.object.tagging": "true"}, "s3.object.tagging"),
        ({"s3.schema.partition.affix.type": "SUFFIX"}, "s3.schema.partition.affix.type"),
        ({"s3.wan.mode": "true"}, "s3.wan.mode"),
        ({"s3.credentials.provider.class": "com.shop.Vault"}, "s3.credentials.provider.class"),
        ({"s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider"}, "s3.credentials.provider.sts.role.arn"),
        ({"s3.proxy.url": "proxy:3128"}, "s3.proxy.url"),
    ],
)  # fmt: skip
def test_unsupported_settings_are_refused_at_validation(more: dict[str, str], name: str) -> None:
    config = {"s3.bucket.name": "b", "format.class": "JsonFormat", "flush.size": "1"}
    assert [value.key.name for value in validate(S3SinkConfig, config | more) if value.errors] == [name]


def test_a_role_is_assumed_and_anonymous_is_anonymous() -> None:
    provider = "s3.credentials.provider"
    config = {"s3.bucket.name": "b", "format.class": "JsonFormat", "flush.size": "1"}
    role = config | {
        f"{provider}.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
        f"{provider}.sts.role.arn": "arn:aws:iam::1:role/r",
        f"{provider}.sts.role.session.name": "s",
        f"{provider}.sts.role.external.id": "e",
    }
    assert parse(S3SinkConfig, role).client_options == {
        "role_arn": "arn:aws:iam::1:role/r",
        "session_name": "s",
        "external_id": "e",
    }
    proxied = parse(S3SinkConfig, config | {"s3.proxy.url": "https://me:a%40b@proxy"}).client_options["proxy_options"]
    assert proxied == {"scheme": "https", "host": "proxy", "port": 443, "username": "me", "password": "a@b"}
    anonymous = config | {f"{provider}.class": "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"}
    assert parse(S3SinkConfig, anonymous).client_options == {"anonymous": True}


class _Proxy(socketserver.StreamRequestHandler):
    """Passes one request of a connection on, if it comes with the right password, and counts them."""

    passed = 0

    def handle(self) -> None:
        line = self.rfile.readline().decode()
        head = []
        while (more := self.rfile.readline()) not in (b"\r\n", b""):
            head.append(more)
        expected = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:secret")
        if not any(each.strip().lower() == expected.lower() for each in head):
            self.wfile.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        type(self).passed += 1
        method, address, version = line.split(" ")
        parts = urlsplit(address)
        kept = [each for each in head if not each.lower().startswith((b"proxy-", b"connection:"))]
        with socket.create_connection((parts.hostname or "", parts.port or 80)) as server:
            path = parts._replace(scheme="", netloc="").geturl()
            server.sendall(f"{method} {path} {version}".encode() + b"".join(kept) + b"Connection: close\r\n\r\n")
            bringing = threading.Thread(target=self._bring, args=(server,), daemon=True)
            bringing.start()
            while data := server.recv(65536):
                self.wfile.write(data)
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            bringing.join()

    def _bring(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := self.rfile.read1(65536):  # type: ignore[attr-defined]
                server.sendall(data)


def test_a_proxy_is_gone_through(bucket: Bucket) -> None:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = {
        "s3_proxy_url": f"http://127.0.0.1:{server.server_address[1]}",
        "s3_proxy_user": "me",
        "s3_proxy_password": "secret",
    }
    try:
        task = sink(bucket, **proxy)
        task.put([batch([row(n) for n in range(3)])])
        task.stop()
    finally:
        server.shutdown()
        server.server_close()
    assert len(bucket.objects()) == 1
    assert _Proxy.passed
