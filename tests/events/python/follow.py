"""aiosfpubsub or pysfpubsub: log in over SOAP and follow a topic from its beginning, over TLS; prints the value of one
field of each event.

With further arguments, pysfpubsub publishes these first.
"""

import asyncio
import importlib
import json
import os
import sys
import time
from typing import Any

import certifi

module, url, user, password, pubsub, ca, topic, field, count, *published = sys.argv[1:]
certifi.where = lambda: ca  # for gRPC, which no variable of the environment tells: both clients read this file


class Secret(str):
    """A password in the form that pysfpubsub and aiosfpubsub accept."""

    __slots__ = ()

    def get_secret_value(self) -> str:
        return str(self)


host, _, port = pubsub.rpartition(":")
client = importlib.import_module(module).Client(
    url=url, username=user, password=Secret(password), grpc_host=host, grpc_port=int(port)
)
client.auth()
came: list[str] = []


def take(response: Any, client: Any) -> None:
    for event in response.events:
        values = client.decode(client.get_schema_json(event.event.schema_id), event.event.payload)
        came.append(values[field])
    if len(came) >= int(count):
        print(json.dumps(came), flush=True)
        os._exit(0)  # neither has a way to end


for value in published:
    schema_id = client.get_topic(topic).schema_id
    record = {"CreatedDate": time.time_ns() // 1_000_000, "CreatedById": "005000000000000AAA", "Express__c": False}
    empty = dict.fromkeys(("Amount__c", "Shipped_At__c", "Due__c", "Note__c"))
    payload = client.encode(client.get_schema_json(schema_id), {**record, **empty, field: value})
    answer = client.publish(topic, [{"schema_id": schema_id, "payload": payload}])
    assert not answer.results[0].error.msg, answer

following = client.subscribe(topic, "EARLIEST", b"", 10, take)
if following is not None:
    asyncio.run(following)
