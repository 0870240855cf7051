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
