"""Takes the pictures of the console's pages: docs/images/console-*.png, in both themes.

Run by ``make screenshots``, with the browser of ``python -m tests.servers fetch chromium``. It starts a platform with some connectors, of
which one fails and one leaves records out, so that the pages have something to show.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import requests  # noqa: E402

from tests.servers.chromium import running_chromium  # noqa: E402
from tests.support.platform import RunningPlatform, running_platform, until  # noqa: E402

IMAGES: Final = HERE / "images"
_PICTURES: Final = {
    "overview-light": "/",
    "overview-dark": "/",
    "connector-light": "/connectors/invoices-to-file",
    "configuration-dark": "/connectors/orders-to-file/config",
    "dead-letters-light": "/dead-letters/orders-to-file",
    "records-dark": "/topics/users/records?text=region_5",
    "lineage-light": "/lineage",
}
_SIZE: Final = {"width": 1280, "height": 800}
_MOST_BYTES: Final = 120_000
_STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    os.environ["TIDEGATE_CONNECT_TOKEN"] = "never"
    with (
        tempfile.TemporaryDirectory() as data,
        running_platform(Path(data), console=True) as platform,
    ):
        files = Path(tempfile.gettempdir()) / "shop"  # a picture shows the path
        files.mkdir(exist_ok=True)
        _set_up(platform, files)
        _take(platform.addresses["console"])
    return 0


def _set_up(platform: RunningPlatform, folder: Path) -> None:
    lines = folder / "orders.jsonl"
    lines.write_text(
        '{"order": 1, "total": 12.5}\n{"order": 2, "total": 7.25}\n(no order)\n{"order": 4, "total": 90}\n'
    )
    platform.create(
        "orders", connector__class="FileStreamSource", file=lines, topic="orders", value__converter=_STRINGS
    )
    users = {
        "connector__class": "DatagenConnector",
        "kafka__topic": "users",
        "quickstart": "users",
        "max__interval": 20,
    }
    platform.create("users", **users)
    sink = {
        "connector__class": "FileStreamSink",
        "topics": "orders",
        "value__converter": _JSON,
        "value__converter__schemas__enable": "false",
    }
    platform.create(
        "orders-to-file",
        file=folder / "orders.out",
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="orders-dead-letters",
        errors__deadletterqueue__topic__replication__factor=1,
        errors__deadletterqueue__context__headers__enable="true",
        **sink,
    )
    config = {name.replace("__", "."): value for name, value in {**sink, "file": str(folder / "invoices.out")}.items()}
    url = platform.addresses["connect"]
    requests.post(
        f"{url}/connectors", json={"name": "invoices-to-file", "config": config}, timeout=60
    ).raise_for_status()

    def is_troubled() -> bool:
        page = requests.get(f"{platform.addresses['console']}/", timeout=60).text
        return "invoices-to-file has failed" in page and "1 dead letter" in page and "Records appended" in page

    until(is_troubled, "troubles on the overview")


def _take(url: str) -> None:
    with running_chromium() as (browser, _):
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=_SIZE, color_scheme=theme, base_url=url)
            for name, path in _PICTURES.items():
                if not name.endswith(theme):
                    continue
                page.goto(path, wait_until="networkidle")  # the search of records goes on by itself
                picture = IMAGES / f"console-{name}.png"
                page.screenshot(path=picture)
                if picture.stat().st_size > _MOST_BYTES:
                    raise SystemExit(f"{picture} has {picture.stat().st_size} bytes; {_MOST_BYTES} is the most")
            page.close()


if __name__ == "__main__":
    sys.exit(main())
