"""``machines.py 1`` sends what the machines of a shop say in an hour, always the same: messages by syslog, numbers by statsd, and what
was sold by OTLP. Each is also a line of sent.jsonl, for DuckDB.
"""

import json
import logging
import os
import random
import socket
import sys
from datetime import UTC, datetime, timedelta
from logging.handlers import SysLogHandler
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Counter, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from statsd import StatsClient

HOST = "127.0.0.1"
SYSLOG, STATSD, OTLP = (int(os.environ[f"{name}_PORT"]) for name in ("SYSLOG", "STATSD", "OTLP"))
APPS = ["till", "stock", "login"]

hour = int(sys.argv[1])
chance = random.Random(hour)
began = datetime(2026, 1, 1, 8 + hour, tzinfo=UTC)
trouble = hour * 5 % 12
"""The five minutes in which the stock has many errors."""

syslog = SysLogHandler((HOST, SYSLOG), socktype=socket.SOCK_STREAM)
syslog.setFormatter(logging.Formatter("1 %(time)s %(host)s %(app)s %(process)d - - %(message)s"))  # RFC 5424
statsd = StatsClient(HOST, STATSD)
exporter = OTLPMetricExporter(
    f"http://{HOST}:{OTLP}/v1/metrics", preferred_temporality={Counter: AggregationTemporality.DELTA}
)
meters = MeterProvider([PeriodicExportingMetricReader(exporter)], Resource.create({"service.name": "shop"}))
sold = meters.get_meter("machines").create_counter("sold", "1")

with Path("sent.jsonl").open("a") as sent:

    def note(kind, **fields):
        print(json.dumps({"kind": kind, **fields}), file=sent)

    for second in range(0, 3600, 2):
        time = f"{began + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}Z"
        app, host = chance.choice(APPS), f"machine-{chance.randrange(4)}"
        likely = 0.5 if app == "stock" and second // 300 == trouble else 0.03
        level = logging.ERROR if chance.random() < likely else logging.INFO
        about = {"time": time, "host": host, "app": app}
        record = logging.makeLogRecord(
            {**about, "levelno": level, "levelname": logging.getLevelName(level), "msg": "done"}
        )
        syslog.handle(record)
        note("syslog", **about, severity=3 if level == logging.ERROR else 6)
        if app == "till":
            wait, item, count = chance.randrange(20, 400), chance.choice(["tea", "rice"]), chance.randrange(1, 4)
            statsd.timing("till.wait", wait)
            sold.add(count, {"item": item})
            note("statsd", name="till.wait", value=wait)
            note("otlp", item=item, value=count)
syslog.close()
statsd.close()
meters.shutdown()  # sends what is left
