"""Log lines name their subject."""

import json
import subprocess
import sys

SCRIPT = """
import asyncio, logging, threading
from concurrent.futures import ThreadPoolExecutor
from broker.client.blocking import submit
from tidegate.kit import logs

logs.configure(format="json")
logs.threads_inherit()
log, library = logs.get_logger("ours"), logging.getLogger("library")

async def client():
    library.warning("in the loop")

def task():
    with logs.about(connector="c", task=1):
        log.info("in the thread")
        library.warning("in the thread")
        log.info("own words", connector="other")
        other = threading.Thread(target=library.warning, args=("in a thread of its own",))
        other.start(); other.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(library.warning, "in a pool").result()
        submit(client()).result()
    log.info("after")
    async def later(): library.warning("the loop is nobody's")
    submit(later()).result()

one = threading.Thread(target=task)
one.start(); one.join()
library.warning("elsewhere")
logging.getLogger("aiokafka.cluster").error("Topic %s not found in cluster metadata", "t")  # at each look; our clients say it once
"""


def test_libraries_and_threads_name_the_task_that_they_work_for():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    about = [(line["event"], line.get("connector"), line.get("task")) for line in lines]
    assert about == [
        ("in the thread", "c", 1),
        ("in the thread", "c", 1),
        ("own words", "other", 1),
        ("in a thread of its own", "c", 1),
        ("in a pool", "c", 1),
        ("in the loop", "c", 1),
        ("after", None, None),
        ("the loop is nobody's", None, None),
        ("elsewhere", None, None),
    ]


def test_a_process_that_does_not_configure_its_logs_keeps_standard_output_for_results():
    script = """
import logging
from tidegate.kit import logs
log = logs.get_logger("ours")
log.info("nobody asked for this")
log.warning("something", topic="t", partition=0)
print("result")
logging.basicConfig(level="INFO", format="%(levelname)s %(message)s")
with logs.about(connector="c"):
    log.info("asked for")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "result\n"
    assert run.stderr == "something (topic=t, partition=0)\nINFO asked for (connector=c)\n"


def test_commands_show_warnings_on_standard_error_and_no_lines_of_libraries():
    script = """
import logging, sys
import tidegate.cli
from tidegate.kit import logs
sys.argv[1:] = ["--version"]
try:
    tidegate.cli.main()
except SystemExit:
    pass
logs.get_logger("my_connectors").warning("something", topic="t")
logs.get_logger("my_connectors").info("nothing")
logging.getLogger("aiokafka").error("of a library")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.count("\n") == 1 and run.stderr == "warning: something (topic=t)\n"
