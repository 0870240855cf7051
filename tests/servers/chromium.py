"""A real browser for the console's pages."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.servers.fetch import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["AXE", "running_chromium"]

AXE: Final = "axe.min.js"
_ARGUMENTS: Final = ("--no-sandbox", "--headless", "--disable-gpu", "--no-zygote", "--disable-dev-shm-usage")


@contextlib.contextmanager
def running_chromium() -> Iterator[tuple[Browser, Path]]:
    """The browser, and the folder with axe. Raises ServerMissing.

    The fetched browser is for Linux on x86-64; elsewhere, or if it is fetched but does not run, CHROMIUM names another.
    """
    from playwright.sync_api import sync_playwright

    folder = require("chromium").absolute()
    chosen = os.environ.get("CHROMIUM")
    libraries = {"LD_LIBRARY_PATH": str(folder / "lib"), "FONTCONFIG_PATH": str(folder)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(chosen) if chosen else folder / "chromium",
            args=_ARGUMENTS,
            env={**os.environ, **({} if chosen else libraries)},
        )
        try:
            yield browser, folder
        finally:
            browser.close()
