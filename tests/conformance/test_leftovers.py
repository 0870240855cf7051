"""Errors in a log that a test leaves behind are reported, and a correct log gets no report."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from broker.log.directory import LogDirectory
from broker.protocol.records import Record, encode_batch
from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.support.leftovers import complaints

pytestmark = pytest.mark.servers

NOW = 1_700_000_000_000


def test_a_changed_byte_and_a_gap_are_found(tmp_path: Path) -> None:
    or_skip(lambda: require("kafka"))
    directory = LogDirectory(tmp_path)
    directory.open()
    for topic in ("right", "changed", "gapped"):
        log = directory.create(topic, 0, uuid.uuid4())
        for number in range(3):
            log.append(encode_batch([Record(b"k", b"v%d" % number, (), NOW)] * 2), now_ms=NOW)
    directory.close()
    path = tmp_path / "changed-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    path = tmp_path / "gapped-0" / "00000000000000000000.log"
    data, size = path.read_bytes(), path.stat().st_size // 3
    path.write_bytes(data[:size] + data[2 * size :])
    lines = complaints(sorted(tmp_path.glob("*-0")))
    assert any("changed-0" in line and "isvalid: false" in line for line in lines), lines
    assert any("gapped-0" in line and "offset 4 at position" in line for line in lines), lines
    assert not any("right-0" in line for line in lines), lines
