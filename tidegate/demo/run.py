"""The demo, step by step. Every printed count is checked against a second source; a mismatch fails the demo."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress, TaskID

from tidegate.demo.database import TABLES, Database, late_flights
from tidegate.demo.faces import Connect, DemoFailed, Publisher, connector_json, records_held, until
from tidegate.demo.progress import add_bar, bars
from tidegate.demo.report import Ledger, show_airlines, show_routes
from tidegate.kit.errors import UsageError
from tidegate.security import connect_token
from tidegate.state import State, read_state

__all__ = ["Demo", "run"]

EVENT: Final = "Flight_Delayed__e"
LATE_MINUTES: Final = 120
_SMALL_TABLES: Final = tuple(table for table in TABLES if table != "flights")


@dataclass
class Demo:
    """The state shared by the steps."""

    folder: Path
    database: Database
    console: Console
    ledger: Ledger
    state: State
    progress: Progress = field(init=False)

    @property
    def connect(self) -> Connect:
        return Connect(self.state.addresses["connect"], connect_token(self.folder / "platform"))

    @property
    def kafka(self) -> str:
        return self.state.bootstrap_servers

    @property
    def output(self) -> Path:
        return self.folder / "parquet"

    def connector(self, name: str) -> dict[str, Any]:
        return connector_json(name, output=str(self.output), **self.database.connection_properties)


def run(folder: Path, *, database_url: str | None, keep: bool, console: Console) -> None:
    """Run the demo in ``folder``, which is recreated. With ``keep`` the platform stays up. Raises DemoFailed."""
    began = time.monotonic()
    _clear(folder)
    console.rule("[bold]Tidegate: the flights of 2013 from New York, from a database to Parquet")
    console.print("starting the platform")
    database = Database.open(database_url, folder)
    ledger = Ledger()
    with _platform(folder, keep) as state:
        console.print(f"platform up: broker {state.bootstrap_servers}, Connect {state.addresses['connect']}")
        demo = Demo(folder, database, console, ledger, state)
        # Spark starts while the rows are still on their way: its connector waits, paused, for the topics to be complete.
        demo.connect.create(demo.connector("flights-parquet"))
        demo.connect.pause("flights-parquet")
        with bars(console) as demo.progress:
            _load(database, ledger, demo.progress)
            _tables_to_topics(demo)
            _events(demo)
            _topics_to_parquet(demo)
        show_airlines(console, demo.output / "flights")
        show_routes(console, demo.output / "flights")
        console.rule("[bold]A change, end to end")
        with bars(console) as demo.progress:
            _change(demo)
        console.rule("[bold]What moved where")
        ledger.show(console)
        ledger.require_agreement()
        console.print(f"\nevery count agrees; {time.monotonic() - began:.0f} s in all. Parquet: {demo.output}")
        if keep:
            _tell_addresses(demo)


def _clear(folder: Path) -> None:
    """Make an empty folder marked as the demo's. Raises UsageError instead of deleting anything else."""
    marker = folder / ".tidegate-demo"
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise UsageError(f"{folder} is not empty and not from an earlier demo: name another --folder")
    state = read_state(folder / "platform")
    if state is not None and state.running:
        raise UsageError(f"the demo in {folder} is still up: tidegate down --data {folder / 'platform'}")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    marker.touch()


def _load(database: Database, ledger: Ledger, progress: Progress) -> None:
    bar_of: dict[str, TaskID] = {}
    began = time.monotonic()

    def on_rows(table: str, done: int, total: int) -> None:
        if table not in bar_of:
            bar_of[table] = add_bar(progress, f"SQL insert: {table}", total)
        progress.update(bar_of[table], completed=done)

    loaded = database.load(on_rows)
    seconds = time.monotonic() - began
    for table, rows in loaded.items():
        ledger.count(f"database table {table}", rows, {"rows counted by SQL": database.count(table)})
    ledger.moved("CSV files", "database", sum(loaded.values()), seconds)


@contextlib.contextmanager
def _platform(folder: Path, keep: bool) -> Iterator[State]:
    """``tidegate up`` on free ports, with data in the demo's folder; stopped at the end unless ``keep`` is set."""
    data = folder / "platform"
    command = [sys.executable, "-m", "tidegate.cli"]
    up = [*command, "up", "--detach", "--data", str(data), "--broker-listen", "127.0.0.1:0"]
    done = subprocess.run(up, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoFailed(f"the platform did not start: {done.stderr.strip()}")
    finished = False
    try:
        state = read_state(data)
        assert state is not None
        yield state
        finished = True
    finally:
        if not (keep and finished):
            subprocess.run([*command, "down", "--data", str(data)], check=False, capture_output=True)


def _tables_to_topics(demo: Demo) -> None:
    """Post the two JDBC sources and wait until the topics contain everything in the database."""
    expected = {f"nyc_{table}": demo.database.count(table) for table in TABLES}
    bar_of = {topic: add_bar(demo.progress, f"JDBC source: {topic}", rows) for topic, rows in expected.items()}
    began = time.monotonic()
    for name in ("flights-source", "tables-source"):
        demo.connect.create(demo.connector(name))

    def arrived() -> bool:
        ends = records_held(demo.kafka, list(expected))
        for topic, end in ends.items():
            demo.progress.update(bar_of[topic], completed=end)
        return all(ends[topic] >= rows for topic, rows in expected.items())

    def healthy() -> None:
        demo.connect.require_healthy("flights-source")
        demo.connect.require_healthy("tables-source")

    until("all rows in the topics", arrived, check=healthy, every_s=0.05)
    seconds = time.monotonic() - began
    ends = records_held(demo.kafka, list(expected))
    for topic, rows in expected.items():
        counted = {"by offsets": ends[topic]}
        if topic == "nyc_flights":
            until("the source's offset", functools.partial(_read_up_to, demo, rows))
            counted["connector offset"] = _incrementing(demo)
        demo.ledger.count(f"topic {topic}", rows, counted)
    demo.ledger.moved("database", "Avro topics (JDBC source)", sum(expected.values()), seconds)


def _read_up_to(demo: Demo, rows: int) -> bool:
    return _incrementing(demo) == rows


def _incrementing(demo: Demo) -> int:
    return max((entry["offset"].get("incrementing", 0) for entry in demo.connect.offsets("flights-source")), default=0)


def _events(demo: Demo) -> None:
    """Define the event, follow it in a thread, and publish one for each flight over two hours late."""
    from events.client import EventsClient
    from events.config import EventsConfig
    from tidegate.kit.config import parse

    access = parse(EventsConfig, {})
    addresses = demo.state.addresses
    client = EventsClient(
        addresses["events"], user=access.user, password=access.password.reveal(), pubsub=addresses["pubsub-plain"]
    )
    metadata = resources.files("tidegate.demo").joinpath(f"{EVENT}.object-meta.xml").read_bytes()
    client.define_xml(EVENT, metadata)
    rows = late_flights(demo.database, LATE_MINUTES)
    follower = _Follower(demo.progress, client, len(rows))
    publisher = Publisher(addresses["events-tls"], addresses["ca"], access.user, access.password.reveal())
    published = add_bar(demo.progress, f"publish {EVENT}", len(rows))
    began = time.monotonic()
    accepted = publisher.publish(EVENT, rows, lambda n: demo.progress.update(published, completed=n))
    until("all events at the subscriber", lambda: follower.received >= len(rows), check=follower.require_healthy)
    seconds = time.monotonic() - began
    counted = {"received by the subscriber": follower.received, "by offsets": records_held(demo.kafka, [EVENT])[EVENT]}
    demo.ledger.count(f"event {EVENT}", accepted, counted)
    demo.ledger.moved("database", "platform events, to a live subscriber", accepted, seconds)


class _Follower:
    """A subscriber in a separate thread; shows the newest event as it arrives."""

    def __init__(self, progress: Progress, client: Any, total: int) -> None:
        self.received = 0
        self._failure: Exception | None = None
        self._progress, self._client, self._total = progress, client, total
        self._bar = add_bar(progress, f"subscriber of {EVENT}", total)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        try:
            for event in self._client.follow(EVENT, replay_id=-2):
                self.received += 1
                if self.received % 97 == 1 or self.received >= self._total:
                    fields = event.fields
                    note = f"{fields['Flight__c']} {fields['Route__c']} +{fields['Minutes_Late__c']:.0f} min"
                    self._progress.update(self._bar, completed=self.received, note=note)
                if self.received >= self._total:
                    return
        except Exception as error:  # noqa: BLE001 - told by the thread that waits for the events
            self._failure = error

    def require_healthy(self) -> None:
        if self._failure is not None:
            raise DemoFailed(f"the subscriber stopped: {self._failure}")


def _topics_to_parquet(demo: Demo) -> None:
    """Post the object sink for the small tables and resume the Spark job for the flights; wait for both."""
    small = {f"nyc_{table}": demo.database.count(table) for table in _SMALL_TABLES}
    flights = demo.database.count("flights")
    began = time.monotonic()
    demo.connect.resume("flights-parquet")
    demo.connect.create(demo.connector("tables-parquet"))
    tables = add_bar(demo.progress, "Parquet sink: small tables", sum(small.values()))
    spark = add_bar(demo.progress, "Spark job: flights with airlines", None)
    loaded_at: list[float] = []

    def arrived() -> bool:
        position = _sink_position(demo, "tables-parquet")
        demo.progress.update(tables, completed=position)
        _show_job(demo, spark)
        loaded = _sink_position(demo, "flights-parquet")
        if loaded >= flights and not loaded_at:
            loaded_at.append(time.monotonic())
        return position >= sum(small.values()) and bool(loaded_at)

    def healthy() -> None:
        demo.connect.require_healthy("flights-parquet")
        demo.connect.require_healthy("tables-parquet")

    until("all rows in Parquet", arrived, check=healthy, every_s=0.2)
    demo.progress.update(spark, total=flights, completed=flights, note="")
    counted = {
        "Parquet rows": _parquet_rows(demo.output / "flights"),
        "committed offsets": _sink_position(demo, "flights-parquet"),
    }
    demo.ledger.count("Parquet flights, by month", flights, counted)
    for topic, rows in small.items():
        demo.ledger.count(f"Parquet {topic}", rows, {"Parquet rows": _parquet_rows(demo.output / "tables" / topic)})
    demo.ledger.moved("Avro topics", "Parquet (Spark, which started meanwhile)", flights, loaded_at[0] - began)


def _show_job(demo: Demo, bar: TaskID) -> None:
    for task in demo.connect.progress("flights-parquet"):
        steps = f"{task['done']}/{task['total']} {task['unit']} " if task.get("total") else ""
        note = f"{steps}{task.get('note', '')}"
        demo.progress.update(bar, note=note)


def _sink_position(demo: Demo, name: str) -> int:
    return demo.connect.sink_position(name)


def _parquet_rows(folder: Path) -> int:
    import pyarrow.dataset as ds

    return int(ds.dataset(folder, format="parquet", partitioning="hive").count_rows()) if folder.exists() else 0


def _change(demo: Demo) -> None:
    """Insert three flights and update two; wait until all five records are in the topic and in Parquet."""
    before = demo.database.count("flights")
    columns = [c for c in demo.database.column_names("flights") if c not in ("id", "updated_at")]
    names = ", ".join(columns)
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 1)) + ".000000"
    changed = sum(
        demo.database.change(
            f"INSERT INTO flights (id, {names}, updated_at) SELECT :id, {names}, :now FROM flights WHERE id = :copied",
            id=before + n,
            copied=n,
            now=now,
        )
        for n in (1, 2, 3)
    )
    changed += demo.database.change("UPDATE flights SET arr_delay = 0, updated_at = :now WHERE id IN (4, 5)", now=now)
    bar = add_bar(demo.progress, "3 inserts, 2 updates: in the topic", changed)
    began = time.monotonic()

    def in_topic() -> bool:
        arrived = records_held(demo.kafka, ["nyc_flights"])["nyc_flights"] - before
        demo.progress.update(bar, completed=arrived)
        return arrived >= changed

    until(
        "the changes in the topic", in_topic, check=lambda: demo.connect.require_healthy("flights-source"), every_s=0.05
    )
    demo.progress.update(bar, note=f"after {time.monotonic() - began:.1f} s")
    loaded = add_bar(demo.progress, "3 inserts, 2 updates: in Parquet", changed)

    def in_parquet() -> bool:
        arrived = max(0, _sink_position(demo, "flights-parquet") - before)
        _show_job(demo, loaded)
        demo.progress.update(loaded, completed=arrived)
        return arrived >= changed

    until("the changes in Parquet", in_parquet, check=lambda: demo.connect.require_healthy("flights-parquet"))
    demo.progress.update(loaded, note=f"after {time.monotonic() - began:.1f} s")
    counted = {
        "by offsets": records_held(demo.kafka, ["nyc_flights"])["nyc_flights"],
        "Parquet rows": _parquet_rows(demo.output / "flights"),
    }
    demo.ledger.count("flights after the change (records)", before + changed, counted)
    demo.ledger.moved("database", "Parquet (the change, end to end)", changed, time.monotonic() - began)


def _tell_addresses(demo: Demo) -> None:
    demo.console.print("\nThe platform stays up:")
    for name, address in demo.state.addresses.items():
        demo.console.print(f"  {name:<16} {address}")
    demo.console.print(f"Stop it with: tidegate down --data {demo.folder / 'platform'}")
