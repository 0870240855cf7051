"""Every page in a real browser, on a real platform with real failures: cause and remedy in at most three clicks."""

import json
import re
import sqlite3

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.servers.chromium import AXE, running_chromium
from tests.servers.fixtures import or_skip
from tests.support.console import Visitor
from tests.support.platform import running_platform, tidegate, until

pytestmark = [pytest.mark.proof, pytest.mark.servers]

HOSTILE = "<script>document.title='broken'</script>/x"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with running_platform(tmp_path_factory.mktemp("console"), "--without", "triggers", console=True) as platform:
        yield platform


@pytest.fixture(scope="module")
def chromium():
    context = running_chromium()
    browser, folder = or_skip(context.__enter__)
    try:
        yield browser, (folder / AXE).read_text()
    finally:
        context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def page(chromium, platform):
    """A page that fails the test at its end if a script of it failed, or the browser refused something."""
    browser, _ = chromium
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=platform.addresses["console"])
    page, complaints = context.new_page(), []
    page.set_default_timeout(30_000)
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []


@pytest.fixture(scope="module")
def troubles(platform, mariadb_server, tmp_path_factory):
    """Three connectors in trouble: a password that was changed, a table that is missing, a record that is no JSON."""
    folder = tmp_path_factory.mktemp("troubles")
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE console_shop")
        cursor.execute("CREATE TABLE console_shop.orders (id int primary key auto_increment, what text)")
        cursor.execute("INSERT INTO console_shop.orders (what) VALUES ('a')")
        cursor.execute("CREATE USER 'shop'@'127.0.0.1' IDENTIFIED BY 'pw-before'")
        cursor.execute("GRANT ALL ON console_shop.* TO 'shop'@'127.0.0.1'")
    platform.create(
        "shop-source",
        connector__class="io.confluent.connect.jdbc.JdbcSourceConnector",
        connection__url=f"jdbc:mariadb://127.0.0.1:{mariadb_server.port}/console_shop",
        connection__user="shop",
        connection__password="pw-before",
        mode="incrementing",
        incrementing__column__name="id",
        table__whitelist="orders",
        topic__prefix="console-shop-",
    )
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("ALTER USER 'shop'@'127.0.0.1' IDENTIFIED BY 'pw-after'")
    connect = platform.addresses["connect"]
    requests.post(f"{connect}/connectors/shop-source/restart?includeTasks=true", timeout=60)

    lines = folder / "lines.txt"
    lines.write_text('{"id": 1}\nno json\n{"id": 3}\n')
    file_source = {"connector__class": "FileStreamSource", "value__converter": STRINGS}
    platform.create("lines", file=lines, topic="console-lines", **file_source)
    config = {"connector.class": "FileStreamSource", "file": str(folder / "none.txt"), "topic": "console-none"}
    hostile = {"name": HOSTILE, "config": config | {"value.converter": STRINGS}}
    requests.post(f"{connect}/connectors", json=hostile, timeout=60).raise_for_status()
    platform.create(
        "lines-sink",
        connector__class="FileStreamSink",
        topics="console-lines",
        file=folder / "out.txt",
        value__converter="org.apache.kafka.connect.json.JsonConverter",
        value__converter__schemas__enable="false",
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="console-dlq",
        errors__deadletterqueue__topic__replication__factor="1",
        errors__deadletterqueue__context__headers__enable="true",
    )
    sink = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": "console-shop-orders",
        "connection.url": f"jdbc:sqlite:{folder}/shop.db",
        "table.name.format": "orders",
        "auto.create": "false",
    }
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (id integer, what text)")
        made = {"name": "shop-sink", "config": sink, "initial_state": "STOPPED"}
        answer = requests.post(f"{connect}/connectors", json=made, timeout=60)
        assert answer.status_code == 201, answer.text
        database.execute("DROP TABLE orders")
    requests.put(f"{connect}/connectors/shop-sink/resume", timeout=60).raise_for_status()

    def all_there():
        status = requests.get(f"{connect}/connectors?expand=status", timeout=60).json()
        states = {n: [t["state"] for t in s["status"]["tasks"]] for n, s in status.items()}
        counts = requests.get(f"{connect}/tidegate/v1/connectors", timeout=60).json()["connectors"]
        left_out = counts.get("lines-sink", [{}])[0].get("task-error-metrics", {}).get("total-records-skipped")
        return states["shop-source"] == states.get("shop-sink") == ["FAILED"] and left_out

    until(all_there, "three connectors in trouble")
    return folder


def wait_for(page, text):
    """Load the page until it shows a text: worker and console keep states for a moment."""

    def shows():
        page.reload()
        return text in page.inner_text("main")

    if text not in page.inner_text("main"):
        until(shows, f"{text!r} on {page.url}")


def follow(page, selector):
    """Click what leads to another page, and wait for that page: what is asked next must not ask the one before."""
    with page.expect_navigation():
        page.click(selector)


def test_a_wrong_password_is_told_corrected_and_gone(page, troubles, mariadb_server):
    page.goto("/")
    wait_for(page, "Access denied")
    trouble = page.locator(".trouble", has_text="shop-source")
    assert "Correct the user or the password" in trouble.inner_text()
    trouble.get_by_role("link").click()
    page.wait_for_selector("h1:has-text('shop-source')")
    page.click("summary:has-text('Trace')")
    assert "Access denied" in page.inner_text("pre")
    follow(page, "text=Edit the configuration")
    password = page.get_by_label("Password", exact=False).locator("visible=true").first
    assert password.input_value() == "" and "pw-before" not in page.content()
    password.fill("pw-wrong")
    page.wait_for_selector("#verdict:has-text('to correct')")
    assert page.locator(".field-error:has-text('Access denied')").count() >= 1
    password.fill("pw-after")
    page.wait_for_selector("#verdict:has-text('accepts this configuration')")
    follow(page, "text=Review the change")
    page.wait_for_selector("h1:has-text('What changes in shop-source')")
    assert page.inner_text("ins").split() == ["after:", "connection.password", "=", "[hidden]"]
    follow(page, "text=Apply: the connector restarts")
    page.wait_for_selector("h1:has-text('shop-source')")
    until(lambda: page.reload() and page.locator(".head .state").inner_text() == "running", "the source running")


def test_a_missing_table_is_told_and_the_task_started_again(page, troubles):
    page.goto("/connectors?state=failed")
    row = page.locator("tr", has_text="shop-sink")
    assert "orders" in row.locator(".error-text").inner_text()
    row.get_by_role("link").first.click()
    page.wait_for_selector("h1:has-text('shop-sink')")
    assert "Create what the message names" in page.inner_text("main"), page.inner_text("main")
    with sqlite3.connect(troubles / "shop.db") as database:
        database.execute("CREATE TABLE orders (id integer, what text)")
    follow(page, "text=Restart what has failed")
    until(lambda: page.reload() and page.locator(".head .state").inner_text() == "running", "the sink running")
    follow(page, "button:has-text('Stop')")
    until(lambda: page.reload() and page.locator(".head .state").inner_text() == "stopped", "the sink stopped")
    follow(page, "section:has(#offsets) >> text=Change")
    document = json.loads(page.input_value("textarea"))
    document["offsets"] = [{**entry, "offset": {"kafka_offset": 0}} for entry in document["offsets"]]
    page.fill("textarea", json.dumps(document))
    follow(page, "button:has-text('Change the offsets')")
    page.wait_for_selector("button:has-text('Start')")
    follow(page, "button:has-text('Start')")
    until(lambda: page.reload() and page.locator(".head .state").inner_text() == "running", "the sink running again")
    page.goto("/connectors/shop-sink/config?as=json")
    config = json.loads(page.input_value("textarea")) | {"table.name.format": "orders_anew", "auto.create": "true"}
    page.fill("textarea", json.dumps(config))
    follow(page, "text=Review the change")
    page.click("text=Show what it would do")
    page.wait_for_selector("#preview ins:has-text('CREATE TABLE')")
    assert "orders_anew" in page.inner_text("#preview ins") and page.locator("#preview del").count()


def test_a_bad_record_is_looked_at_edited_and_sent_back(page, troubles):
    page.goto("/")
    wait_for(page, "1 dead letter of connector lines-sink")
    follow(page, "text=Open the dead letters")
    assert "is not JSON" in page.inner_text("main")
    follow(page, "a:has-text('0:0')")
    page.wait_for_selector("h1:has-text('Letter 0:0')")
    assert "6e 6f 20 6a 73 6f 6e" in page.inner_text("main") and page.input_value("[name=value]") == '"no json"'
    page.fill("[name=value]", "{")
    follow(page, "text=Review and send back")
    assert "The value is not JSON" in page.inner_text("main")
    page.go_back()
    page.fill("[name=value]", '"no json"')
    follow(page, "text=Review and send back")
    page.wait_for_selector("text=1 letter would fail again")
    assert "VALUE_CONVERTER" in page.inner_text("main .errors")
    page.go_back()
    page.fill("[name=value]", '{"id": 2}')
    follow(page, "text=Review and send back")
    assert "1 letter would be sent to console-lines" in page.inner_text("main")
    page.wait_for_selector("text=No error: 1 record would reach the sink's task")
    follow(page, "button:has-text('Send back')")
    page.wait_for_selector("text=1 letter is sent to console-lines")
    until(lambda: len((troubles / "out.txt").read_text().splitlines()) == 3, "the record in the file")
    page.goto("/dead-letters/lines-sink")
    assert "No letter in console-dlq" in page.inner_text("main")
    page.goto("/")
    until(lambda: page.reload() and "of connector lines-sink" not in page.inner_text("main"), "no trouble any more")


def test_a_connector_is_created_filtered_and_deleted(page, troubles):
    page.goto("/new-connector")
    follow(page, "a:has-text('FileStreamSource')")
    page.fill("[name=name]", "made-here")
    page.locator("[name='key:topic']").fill("console-made")
    page.locator("[name='key:tasks.max']").fill("many")
    page.wait_for_selector("#verdict:has-text('tasks.max')")
    page.locator("[name='key:tasks.max']").fill("1")
    (troubles / "made.txt").write_text("first line\n")
    page.locator("[name='key:file']").fill(str(troubles / "made.txt"))
    page.locator("[name='key:value.converter']").fill(STRINGS)
    page.locator("[name='key:value.converter']").press("Tab")
    page.wait_for_selector("#verdict:has-text('accepts this configuration')")
    follow(page, "text=Review the change")
    page.click("text=Show what it would do")
    page.wait_for_selector("#preview:has-text('console-made'):has-text('first line')")
    follow(page, "text=Create the connector")
    page.wait_for_selector("h1:has-text('made-here')")
    page.goto("/connectors")
    page.keyboard.press("/")
    page.keyboard.type("made-h")
    page.wait_for_selector("tbody tr:only-child:has-text('made-here')")
    assert re.search(r"[?&]q=made-h", page.url)
    page.click("tbody a:has-text('made-here')")
    page.click("summary:has-text('Delete this connector')")
    page.check("[name=confirmed]")
    page.click("button:has-text('Delete')")
    page.wait_for_url("**/connectors")
    wait_for(page, HOSTILE)
    assert "made-here" not in page.inner_text("main")


def test_a_topic_is_made_written_searched_and_deleted(page):
    page.goto("/topics")
    page.click("summary:has-text('Create a topic')")
    page.fill("[name=name]", "console-pages")
    page.fill("[name=partitions]", "2")
    page.fill("[name=configs]", "retention.ms=86400000")
    follow(page, "button:has-text('Create')")
    page.goto("/topics/console-pages/produce")
    for city in ("Bergen", "Oslo"):
        page.fill("[name=key]", city)
        page.fill("[name=value]", json.dumps({"city": city}))
        follow(page, "button:has-text('Write')")
        page.wait_for_selector("text=Written:")
    page.goto("/topics/console-pages/records?from=beginning")
    page.wait_for_selector("text=2 hits, 2 of 2 offsets scanned")
    page.fill("[name=text]", "Oslo")
    page.press("[name=text]", "Enter")
    page.wait_for_selector("text=1 hit, 2 of 2 offsets scanned")
    page.goto("/topics/console-pages")
    assert "86400000" in page.inner_text("main")
    page.fill("form[action$='/delete'] [name=name]", "console-pages")
    follow(page, "form[action$='/delete'] button")
    page.wait_for_selector("h1:has-text('Topics')")
    assert "console-pages" not in page.inner_text("main")


def test_a_group_is_seen_over_time_and_moved(page, troubles, platform):
    page.goto("/groups/connect-lines-sink")
    page.wait_for_selector("svg[aria-label='Lag, last hour']", timeout=60_000)
    assert page.locator("svg[aria-label^='Lag of console-lines 0']").count() == 1
    consumer = Consumer({"bootstrap.servers": platform.bootstrap_servers, "group.id": "by-hand"})
    consumer.commit(offsets=[TopicPartition("console-lines", 0, 2)], asynchronous=False)
    consumer.close()
    page.goto("/groups")
    wait_for(page, "by-hand")
    follow(page, "a:has-text('by-hand')")
    page.fill("[name=to]", "beginning")
    page.click("button:has-text('Show what that means')")
    page.wait_for_selector("#preview:has-text('2 offsets would be read again')")
    follow(page, "button:has-text('Move the offsets')")
    assert page.locator("tbody tr:has-text('console-lines') td").nth(1).inner_text() == "0"
    page.once("dialog", lambda dialog: dialog.accept())
    follow(page, "button:has-text('Delete the group')")
    page.wait_for_selector("h1:has-text('Groups')")


def test_a_schema_is_tried_explained_and_registered(page):
    page.goto("/new-schema")
    page.fill("[name=subject]", "console-pages-value")
    fields = [{"name": "id", "type": "long"}]
    page.fill("[name=schema]", json.dumps({"type": "record", "name": "Page", "fields": fields}))
    follow(page, "button:has-text('Register')")
    page.wait_for_selector("h1:has-text('console-pages-value')")
    page.goto("/new-schema")
    page.fill("[name=subject]", "console-pages-value")
    for default, words in (
        ({}, "It may not become the next version"),
        ({"default": 0}, "It may become the next version"),
    ):
        more = [*fields, {"name": "size", "type": "int", **default}]
        page.fill("[name=schema]", json.dumps({"type": "record", "name": "Page", "fields": more}))
        page.click("button:has-text('Only try it')")
        page.wait_for_selector(f"#verdict:has-text('{words}')")
        assert ("size" in page.inner_text("#verdict")) is not default
    follow(page, "button:has-text('Register')")
    page.wait_for_selector("ins:has-text('size'), .diff:has-text('size')")


def test_an_event_is_designed_published_and_followed(page):
    page.goto("/new-event")
    page.fill("[name=label]", "Page Seen")
    page.fill("[name='field.0.label']", "City")
    page.select_option("[name='field.0.type']", "Text")
    page.fill("[name='field.0.length']", "20")
    page.check("[name='field.0.required']")
    follow(page, "button:has-text('Define it')")
    page.wait_for_selector("h1:has-text('Page_Seen__e')")
    page.fill("[name='field.City__c']", "Oslo")
    follow(page, "button:has-text('Publish')")
    page.wait_for_selector("text=Published:")
    follow(page, "text=Follow it live")
    page.wait_for_selector("tbody:has-text('Oslo')")


def test_a_level_of_the_workers_loggers_is_set(page, troubles):
    page.goto("/connectors/shop-sink")
    follow(page, "text=Levels")
    page.fill("[name=name]", "connectors.jdbc")
    page.select_option("[name=level]", "DEBUG")
    follow(page, "button:has-text('Set')")
    levels = page.locator("tbody tr").all_inner_texts()
    assert levels and all(line.startswith("connectors.jdbc") and line.endswith("DEBUG") for line in levels), levels
    page.select_option("[name=level]", "INFO")
    follow(page, "button:has-text('Set')")
    assert all(line.endswith("INFO") for line in page.locator("tbody tr").all_inner_texts())


@pytest.fixture(scope="module")
def snapshot(platform, tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshot")
    with sqlite3.connect(folder / "shop.db") as database:
        for table in ("orders", "customers"):
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name TEXT)")
            database.executemany(f"INSERT INTO {table} VALUES (?, 'x')", [(n,) for n in range(2_000)])
    platform.create(
        "console-snapshot",
        connector__class="SqliteCdcSource",
        database__path=folder / "shop.db",
        topic__prefix="console_shop",
    )
    return folder / "shop.db"


def test_a_snapshot_shows_how_far_it_is_by_table(page, snapshot):
    page.goto("/connectors/console-snapshot")
    wait_for(page, "Progress of task 0")
    progress = page.locator("section", has_text="Progress of task 0")
    wait_for(page, "4,000 rows")
    for table in ("main.orders", "main.customers"):
        assert progress.locator("tr", has_text=table).locator("td").first.inner_text() in ("read", "reading", "waiting")


def test_the_lineage_leads_from_a_topic_to_the_column_of_its_table(page, snapshot):
    page.goto("/topics/console_shop.main.customers")
    page.wait_for_selector(f"text=console-snapshot writes it, from sqlite://{snapshot}/customers")
    page.goto("/schemas/console_shop.main.customers-value")
    page.wait_for_selector(f"text=console-snapshot writes it, from sqlite://{snapshot}/customers")
    follow(page, "text=Its lineage")
    page.wait_for_selector("h1:has-text('Lineage of console_shop.main.customers')")
    page.goto("/lineage")
    wait_for(page, "console_shop.main.customers")
    page.fill("[name=of]", "customers")
    follow(page, "button:has-text('Show')")
    follow(page, "p:has-text('Several are called so') a:has-text('topic console_shop.main.customers')")
    boxes = page.locator(".graph .node title").all_text_contents()
    assert sorted(boxes) == [
        "connector console-snapshot",
        f"table sqlite://{snapshot}/customers",
        "topic console_shop.main.customers",
    ]
    follow(page, "th a:has-text('after.name')")
    assert page.locator("ol li").inner_text() == (
        f"sqlite://{snapshot}/customers . name by console-snapshot to console_shop.main.customers . after.name"
    )
    with page.expect_download() as download:
        page.click("text=Save as OpenLineage")
    events = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    made = next(event for event in events if event["job"]["name"] == "console-snapshot")
    assert {entry["name"] for entry in made["inputs"]} == {"customers", "orders"}


def test_a_query_over_a_topic_shows_its_rows_and_reads_nothing_else(page, platform):
    page.goto("/query")
    producer = Producer({"bootstrap.servers": platform.bootstrap_servers})
    for rain in (2, 3):
        producer.produce("console-query", json.dumps({"city": "Oslo", "rain": rain}))
    producer.produce("console-query", '{"city": ')
    assert producer.flush(60) == 0
    page.fill(
        "[name=sql]",
        "SELECT city, sum(rain) AS rain, max(__offset) AS newest FROM `console-query` WHERE __error IS NULL GROUP BY city",
    )
    follow(page, "button:has-text('Run')")
    page.wait_for_selector("#result table", timeout=120_000)
    assert page.locator("#result tr").all_inner_texts() == ["city\train\tnewest", "Oslo\t5\t1"]
    assert "1 record of console-query can't be decoded" in page.inner_text("#result .warning")
    with page.expect_download() as download:
        page.click("#result >> text=CSV")
    assert download.value.path().read_text().split() == ["city,rain,newest", "Oslo,5,1"]


def test_a_search_is_kept_in_the_browser(page, troubles):
    page.goto("/topics/console-lines/records")
    page.fill("[name=text]", "no json")
    page.once("dialog", lambda dialog: dialog.accept("bad ones"))
    page.click("button:has-text('Keep')")
    page.goto("/topics/console-lines/records")
    follow(page, ".kept a:has-text('bad ones')")
    assert page.input_value("[name=text]") == "no json"
    page.click("[aria-label='Forget bad ones']")
    assert page.locator(".kept a").count() == 0


@pytest.mark.long
def test_a_query_is_stopped_or_refused(page, platform):
    page.goto("/query")
    page.fill("[name=sql]", "SELECT reflect('java.lang.System', 'getenv', 'HOME')")
    follow(page, "button:has-text('Run')")
    page.wait_for_selector("#result .error", timeout=120_000)
    assert "reflect is not taken here" in page.inner_text("#result")
    page.fill("[name=sql]", "SELECT count(*) FROM range(1000000000) a, range(1000000) b")
    follow(page, "button:has-text('Run')")
    page.goto("/query")
    follow(page, "button:has-text('Run')")
    assert "A query of yours is running" in page.inner_text("[role=alert]")
    page.go_back()
    page.go_back()
    follow(page, "button:has-text('Stop')")
    page.wait_for_selector("#result .error", timeout=30_000)
    assert "the query was stopped" in page.inner_text("#result")


def test_letters_of_a_source_and_letters_without_context_have_pages(platform, tmp_path):
    """In the first the value says what was wrong; the others may be of a sink that writes no headers."""
    (tmp_path / "a.csv").write_text("id,name\n1,a\n2\n")
    letters = {"errors__tolerance": "all", "errors__deadletterqueue__topic__name": "console-bad-rows"}
    files = {"input__path": tmp_path, "input__file__pattern": ".*csv", "file__minimum__age__ms": "0"}
    platform.create("bad-rows", connector__class="FileSource", topic="console-rows", **files, **letters)
    visitor = Visitor(platform.addresses["console"])
    until(lambda: "1 letter in" in visitor.get("/dead-letters/bad-rows"), "the letter of the source")
    page = visitor.get("/dead-letters/bad-rows")
    assert "in TASK_POLL" in page and "it has 1 columns, and 2 are expected" in page and "another file" in page
    assert "end back" not in page and "--to TOPIC" not in page
    letter = visitor.get("/dead-letters/bad-rows/0/0")
    assert "it has 1 columns" in letter and "end back" not in letter
    (tmp_path / "bare").write_text("bare\n")
    tidegate("produce", "console-bad-rows", tmp_path / "bare", "--raw", "--data", platform.data)
    assert "a sink writes into later letters" in visitor.get("/dead-letters/bad-rows")
    assert "dlq replay bad-rows --to TOPIC" in visitor.get("/dead-letters/bad-rows")
    letter = visitor.get("/dead-letters/bad-rows/0/1")
    assert "Came from" not in letter and "dlq replay bad-rows --to TOPIC" in letter and "Review and send" not in letter
    requests.delete(f"{platform.addresses['connect']}/connectors/bad-rows", timeout=60).raise_for_status()


PATHS = (
    "/",
    "/connectors",
    "/connectors/shop-sink",
    "/connectors/shop-source/config",
    "/connectors/shop-source/config?as=json",
    "/connectors/lines/offsets",
    f"/connectors/{requests.utils.quote(HOSTILE, safe='')}",
    "/new-connector",
    "/dead-letters",
    "/dead-letters/lines-sink",
    "/dead-letters/lines-sink/0/0",
    "/topics",
    "/topics/console-lines",
    "/topics/console-lines/records",
    "/topics/console-lines/records/0/0",
    "/topics/console-lines/produce",
    "/groups",
    "/groups/connect-lines-sink",
    "/schemas",
    "/jobs",
    "/loggers?q=connectors",
    "/events",
    "/new-event",
    "/new-schema",
    "/query",
    "/lineage",
    "/lineage?of=topic:console_shop.main.customers&column=after.name",
    "/nothing-here",
)


def test_every_page_is_accessible_and_fits_in_both_themes(chromium, platform, troubles, snapshot):
    browser, axe = chromium
    for theme, width in (("light", 1280), ("dark", 390)):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=theme, base_url=platform.addresses["console"]
        )
        page = context.new_page()
        for path in PATHS:
            page.goto(path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} wide"
            assert page.title() not in ("", "broken")
            page.evaluate(f"{axe}; undefined")
            rules = {} if theme == "light" else {"runOnly": ["color-contrast"]}  # all else is the same
            violations = page.evaluate(f"axe.run({json.dumps(rules)}).then(result => result.violations)")
            told = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in violations]
            assert told == [], f"{path} in {theme}"
        context.close()
