"""From a table through Avro topics to files, over the whole platform, while processes are killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects import read_file
from tests.support.platform import running_platform, until

ROWS = 5000


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running_platform(tmp_path_factory.mktemp("files")) as running:
        yield running


def stored(root: Path) -> list[Any]:
    """The rows of all files, by their ids."""
    names = [path for path in root.rglob("*events+*") if not path.name.endswith("_tmp")]
    return sorted((each for path in names for each in read_file(path)), key=lambda each: each["id"])


@pytest.mark.proof
@pytest.mark.parametrize(
    "format_class, folder", [("ParquetFormat", "parquet"), pytest.param("AvroFormat", "avro", marks=pytest.mark.long)]
)
def test_files_hold_what_the_topic_holds_though_the_worker_was_killed(
    platform: Any, tmp_path: Path, format_class: str, folder: str
) -> None:
    database = sqlite3.connect(tmp_path / "shop.db")
    database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, price DECIMAL(9,2), at TIMESTAMP NOT NULL)")
    database.executemany(
        "INSERT INTO events VALUES (?, ?, '2024-01-01 00:00:00.250')", [(n, n / 4) for n in range(1, ROWS + 1)]
    )
    database.commit()
    topic = f"{folder}_events"
    platform.create(
        f"{folder}-source",
        connector__class="JdbcSource",
        connection__url=f"jdbc:sqlite:{tmp_path / 'shop.db'}",
        mode="incrementing",
        topic__prefix=f"{folder}_",
        poll__interval__ms="100",
    )
    platform.create(
        f"{folder}-files",
        connector__class="LocalSink",
        topics=topic,
        store__url=f"file://{tmp_path / folder}",
        format__class=format_class,
        flush__size="700",
        rotate__schedule__interval__ms="1000",
        timezone="UTC",
        consumer__override__max__poll__records="200",
    )
    until(lambda: len(stored(tmp_path / folder)) >= 500)
    platform.kill("connect")
    database.execute(f"INSERT INTO events SELECT id + {ROWS}, price, at FROM events")
    database.commit()
    database.close()
    until(lambda: len({each["id"] for each in stored(tmp_path / folder)}) == 2 * ROWS)
    in_topic = sorted(
        record["value"]["id"] for record in platform.consume(topic)
    )  # the source may repeat, the sink not
    until(lambda: len(stored(tmp_path / folder)) >= len(in_topic))
    contents = stored(tmp_path / folder)
    assert [each["id"] for each in contents] == in_topic
    assert set(in_topic) == set(range(1, 2 * ROWS + 1))
    eighth = next(each for each in contents if each["id"] == 8)
    assert float(eighth["price"]) == 2.0 and eighth["at"] == datetime(2024, 1, 1, microsecond=250_000, tzinfo=UTC)
