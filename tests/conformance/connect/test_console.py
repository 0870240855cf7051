"""The console over Apache Kafka and Kafka Connect: made by a form, failed, corrected, a dead letter sent back, deleted."""

import asyncio
import re
import time

import httpx

from tidegate.console.application import application
from tidegate.console.config import ConsoleConfig
from tidegate.console.console import Console
from tidegate.console.sessions import Sessions
from tidegate.kit.config import parse
from tidegate.kit.metrics import Metrics

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_pages_work_over_the_originals(apache_kafka, apache_connect, tmp_path):
    properties = {
        "connect.url": apache_connect.url,
        "bootstrap.servers": apache_kafka.bootstrap_servers,
        "schema.registry.url": "",
        "events.url": "",
    }
    app = application(Console(parse(ConsoleConfig, properties), Sessions(60)), Metrics())
    (tmp_path / "in.txt").write_text('{"id": 1}\nno json\n')
    source = {
        "key:connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "key:file": str(tmp_path / "in.txt"),
        "key:topic": "console-original",
        "key:value.converter": STRINGS,
    }
    sink = {
        "key:connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "key:file": str(tmp_path / "out.txt"),
        "key:topics": "console-original",
        "key:value.converter": JSON,
        "others": "value.converter.schemas.enable=false",
    }
    queue = {
        "key:errors.tolerance": "all",
        "key:errors.deadletterqueue.topic.name": "console-original-dlq",
        "key:errors.deadletterqueue.topic.replication.factor": "1",
        "key:errors.deadletterqueue.context.headers.enable": "true",
    }

    async def run():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080") as client:

            async def page(path, *texts):
                """Load a page until it shows these texts."""
                deadline = time.monotonic() + 60
                while True:
                    answer = await client.get(path)
                    if answer.status_code == 200 and all(text in answer.text for text in texts):
                        return answer.text
                    shown = " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())
                    assert time.monotonic() < deadline, (texts, answer.status_code, shown)
                    await asyncio.sleep(0.2)

            token = re.search(r'"X-CSRF-Token": "([^"]+)"', await page("/", "Nothing is wrong"))[1]

            async def post(path, status=200, **form):
                answer = await client.post(path, data={"csrf": token, **form})
                assert answer.status_code == status, answer.text
                return answer.text

            async def apply(base, **form):
                review = await post(f"{base}/review", mode="form", **form)
                draft = re.search(r'name="draft" value="([^"]+)"', review)
                assert draft, review
                await post(f"{base}/apply", 303, draft=draft[1])

            await page("/new-connector", "FileStreamSourceConnector")
            refused = await post("/new-connector/verdict", mode="form", **{**source, "key:tasks.max": "many"})
            assert "tasks.max" in refused and "to correct" in refused
            await apply("/new-connector", name="console-source", **source)
            await apply("/new-connector", name="console-sink", **sink)
            await page("/", "Connector console-sink has failed: 1 of 1 task", "Use the converter")
            await page("/connectors?state=failed", "console-sink", "Unrecognized token")
            await page("/connectors/console-sink", "Restart what has failed", "console-original")
            await page("/connectors/console-sink/config", "FileStreamSinkConnector", "value.converter.schemas.enable")
            await apply("/connectors/console-sink/config", **sink, **queue)
            await page("/connectors/console-sink", '<span class="state running">running</span>')
            await page("/dead-letters/console-sink", "1 letter in", "DataException", "no json")
            await page("/dead-letters", "console-original-dlq")
            await page("/dead-letters/console-sink/0/0", "6e 6f 20 6a 73 6f 6e")
            review = await post("/dead-letters/console-sink/review", letters="0:0", key="null", value='{"id": 2}')
            draft = re.search(r'name="draft" value="([^"]+)"', review)[1]
            assert "1 letter is sent" in await post("/dead-letters/console-sink/send", draft=draft)
            await page("/dead-letters/console-sink", "No letter in")
            await post("/connectors/console-sink/do/stop", 303)
            await page("/connectors/console-sink", '<span class="state stopped">stopped</span>')
            await page("/connectors/console-sink/offsets", "kafka_offset", "Change the offsets")
            for name in ("console-source", "console-sink"):
                await post(f"/connectors/{name}/delete", 303, confirmed="yes")
            await page("/connectors", "There is no connector")

    asyncio.run(run())
    assert (tmp_path / "out.txt").read_text().count("id=2") == 1
