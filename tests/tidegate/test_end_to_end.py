"""Connectors through the whole platform: JSON over REST in, records and events out."""

import json
import sqlite3

import pytest
import requests
from confluent_kafka import Producer
from simple_salesforce import Salesforce

from events.config import EventsConfig
from tests.support.platform import running_platform, tidegate, until
from tidegate.kit.config import parse

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
METADATA = """<?xml version="1.0" encoding="UTF-8"?>
<CustomObject xmlns="http://soap.sforce.com/2006/04/metadata"><label>Order</label><eventType>HighVolume</eventType>
<fields><fullName>Number__c</fullName><label>Number</label><type>Text</type><length>20</length><required>true</required></fields>
<fields><fullName>Total__c</fullName><label>Total</label><type>Number</type><precision>9</precision><scale>2</scale></fields>
</CustomObject>"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with running_platform(tmp_path_factory.mktemp("e2e")) as platform:
        yield platform


@pytest.fixture(scope="module")
def org(platform):
    """An unmodified simple-salesforce, logged in at the events service, with an event defined; and the login's properties."""
    file = platform.data.parent / "Order__e.object-meta.xml"
    file.write_text(METADATA)
    tidegate("events", "define", file, "--data", platform.data)
    access, url, ca = parse(EventsConfig, {}), platform.addresses["events-tls"], platform.addresses["ca"]
    login = {
        "salesforce.instance": url,
        "salesforce.username": access.user,
        "salesforce.password": access.password.reveal(),
        "salesforce.consumer.key": access.client_id,
        "salesforce.consumer.secret": access.client_secret.reveal(),
        "salesforce.ca.file": ca,
    }
    session = requests.Session()
    session.trust_env, session.verify = False, ca
    form = {"grant_type": "password", "username": access.user, "password": access.password.reveal()}
    form |= {"client_id": access.client_id, "client_secret": access.client_secret.reveal()}
    token = session.post(f"{url}/services/oauth2/token", data=form, timeout=60).json()["access_token"]
    with session:
        yield Salesforce(session_id=token, instance_url=url, session=session), login


def test_rows_of_a_table_arrive_as_avro_and_changes_follow(platform, tmp_path):
    database = sqlite3.connect(tmp_path / "shop.db")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, price REAL)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(1, "a", 1.5), (2, "b", None)])
    database.commit()
    platform.create(
        "orders",
        connector__class="JdbcSource",
        connection__url=f"jdbc:sqlite:{tmp_path / 'shop.db'}",
        mode="incrementing",
        incrementing__column__name="id",
        topic__prefix="shop_",
        poll__interval__ms="100",
        tasks__max="1",
    )
    until(lambda: len(platform.consume("shop_orders")) == 2)
    database.execute("INSERT INTO orders VALUES (3, 'c', 3.0)")
    database.commit()
    database.close()
    until(lambda: len(platform.consume("shop_orders")) == 3)
    assert [r["value"] for r in platform.consume("shop_orders")] == [
        {"id": 1, "item": "a", "price": 1.5},
        {"id": 2, "item": "b", "price": None},
        {"id": 3, "item": "c", "price": 3.0},
    ]


def test_a_null_stays_one_where_the_column_has_a_default(platform, tmp_path):
    with sqlite3.connect(tmp_path / "defaults.db") as database:
        database.execute("CREATE TABLE guests (id INTEGER PRIMARY KEY, level INT DEFAULT 7)")
        database.execute("INSERT INTO guests VALUES (1, NULL)")
        database.execute("INSERT INTO guests (id) VALUES (2)")
    platform.create(
        "guests", connector__class="SqliteCdcSource", database__path=tmp_path / "defaults.db", topic__prefix="hotel"
    )
    said = tidegate("consume", "hotel.main.guests", "--from-beginning", "-n", "2", "--values", "--data", platform.data)
    assert [json.loads(line)["after"]["level"] for line in said.stdout.splitlines()] == [None, 7]
    requests.delete(f"{platform.addresses['connect']}/connectors/guests", timeout=60).raise_for_status()


def test_sinks_get_no_records_of_aborted_transactions(platform, tmp_path):
    settings = {"bootstrap.servers": platform.bootstrap_servers, "transactional.id": "undone"}
    producer = Producer(settings)
    producer.init_transactions()
    for value, end in (("undone", producer.abort_transaction), ("done", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("undone", value)
        producer.flush()
        end()
    path = tmp_path / "out.txt"
    platform.create("undone", connector__class="FileStreamSink", topics="undone", file=path, value__converter=STRING)
    until(lambda: path.exists() and path.read_text(), "the record that was committed")
    assert path.read_text() == "done\n"
    requests.delete(f"{platform.addresses['connect']}/connectors/undone", timeout=60).raise_for_status()


def test_platform_events_flow_into_a_topic_and_out_of_one(platform, org):
    salesforce, login = org
    properties = {key.replace(".", "__"): value for key, value in login.items()}
    salesforce.Order__e.create({"Number__c": "before", "Total__c": 1})
    platform.create(
        "order-events",
        connector__class="SalesforcePlatformEventSource",
        salesforce__platform__event__name="Order__e",
        salesforce__initial__start="all",
        kafka__topic="orders-from-events",
        tasks__max="1",
        **properties,
    )
    until(lambda: len(platform.consume("orders-from-events")) == 1)
    platform.create(
        "orders-to-events",
        connector__class="SalesforcePlatformEventSink",
        salesforce__platform__event__name="Order__e",
        topics="orders-out",
        value__converter=JSON,
        value__converter__schemas__enable="false",
        key__converter=STRING,
        tasks__max="1",
        **properties,
    )
    lines = platform.data.parent / "orders.jsonl"
    lines.write_text('{"Number__c": "after", "Total__c": 2.5}\n')
    tidegate("produce", "orders-out", lines, "--data", platform.data)
    until(lambda: len(platform.consume("orders-from-events")) == 2)
    values = [record["value"] for record in platform.consume("orders-from-events")]
    assert [(v["Number__c"], v["Total__c"], v["_ObjectType"]) for v in values] == [
        ("before", 1.0, "Order__e"),
        ("after", 2.5, "Order__e"),
    ]


@pytest.mark.proof
def test_a_refused_event_goes_to_the_dead_letter_queue_and_the_rest_go_on(platform, org):
    _, login = org
    properties = {key.replace(".", "__"): value for key, value in login.items()}
    platform.create(
        "strict",
        connector__class="SalesforcePlatformEventSink",
        salesforce__platform__event__name="Order__e",
        topics="orders-strict",
        value__converter=JSON,
        value__converter__schemas__enable="false",
        key__converter=STRING,
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="orders-dead",
        errors__deadletterqueue__topic__replication__factor="1",
        errors__deadletterqueue__context__headers__enable="true",
        tasks__max="1",
        **properties,
    )
    lines = platform.data.parent / "strict.jsonl"
    lines.write_text('{"Number__c": "a number far too long for its field"}\n{"Number__c": "fine"}\n')
    tidegate("produce", "orders-strict", lines, "--data", platform.data)
    until(lambda: any(r["value"]["Number__c"] == "fine" for r in platform.consume("Order__e")))
    until(lambda: "orders-dead" in tidegate("topics", "list", "--data", platform.data).stdout)
    until(lambda: len(platform.consume("orders-dead")) == 1)
    (dead,) = platform.consume("orders-dead")
    assert dead["value"]["Number__c"].startswith("a number far")
    assert "STRING_TOO_LONG" in dead["headers"]["__connect.errors.exception.message"]
