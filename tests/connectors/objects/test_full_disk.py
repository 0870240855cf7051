"""A disk that is full for a while, of the store or of open files: nothing is lost, and no task waits for a person."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connect.api import RetriableConnectError, TopicPartition
from connectors.local.sink import LocalSinkConnector
from tests.support.connect import FakeContext, sink_task
from tests.support.hosts import apart, why_not
from tests.support.objects import batch, files_below, read_file, row

P0, ROWS, A_FILE = TopicPartition("events", 0), 3000, 1000
FORMATS = ("ParquetFormat", "JsonFormat")


def on_a_small_disk(folder: Path, full: str, made: str) -> None:
    """Runs in a namespace, with a disk of 1 MiB that is full at first."""
    disk, other = folder / "disk", folder / "other"
    for each in (disk, other):
        each.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    import tempfile

    tempfile.tempdir, root = (str(other), disk) if full == "store" else (str(disk), other)
    context = FakeContext()
    settings = {"store.url": f"file://{root}", "format.class": made, "flush.size": str(A_FILE)}
    task = sink_task(LocalSinkConnector, settings, context)
    task.open([P0])
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(1024))
    refused, next_offset = 0, 0
    while next_offset < ROWS:
        rows = batch([row(n) for n in range(next_offset, ROWS)], next_offset)
        try:
            task.put([rows])
        except RetriableConnectError as error:
            assert str(disk) in str(error)
            refused += 1
            ballast.unlink(missing_ok=True)
            next_offset = context.rewound.pop(P0, next_offset)
        else:
            next_offset = ROWS
    task.stop()
    assert refused == 1
    got = sorted(each["id"] for name in files_below(root) if "events+" in name for each in read_file(root / name))
    assert got == list(range(ROWS)), f"{len(got)} rows"


@pytest.mark.parametrize("full", ["store", "open files"])
def test_a_full_disk_is_waited_for(tmp_path: Path, full: str) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    runs = [f"m.on_a_small_disk(pathlib.Path({str(tmp_path / made)!r}), {full!r}, {made!r})" for made in FORMATS]
    script = "; ".join(["import tests.connectors.objects.test_full_disk as m, pathlib", *runs])
    done = subprocess.run(apart([sys.executable, "-c", script]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
