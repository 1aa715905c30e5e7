"""A headless Chromium for the tests of the page; they are skipped where there is none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1280,800",
)  # fmt: skip


class Browser:
    """Chromium with a page open: elements by CSS selector, real clicks, and what it logged."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, width: int = 1280, height: int = 800, dark: bool = False) -> float:
        """Open a page and return the seconds until it is ready."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        begin = time.perf_counter()
        self.driver.get(path.resolve().as_uri())
        while self.run("return document.body.dataset.ready") != "yes":
            assert time.perf_counter() - begin < 30, self.errors()
            time.sleep(0.01)
        return time.perf_counter() - begin

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str, text: str = "") -> Any:
        found = [e for e in self.all(selector) if text in (e.get_attribute("textContent") or "")]
        assert found, f"{selector} with {text!r} is not on the page"
        return found[0]

    def click(self, selector: str, text: str = "") -> None:
        self.one(selector, text).click()

    def texts(self, selector: str) -> list[str]:
        return [e.get_attribute("textContent") for e in self.all(selector)]

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


def start(profile: Any) -> Browser:
    """Start Chromium with a profile folder; skip the test where it is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(chromedriver)
    return Browser(webdriver.Chrome(options=options, service=service))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = start(tmp_path_factory.mktemp("chromium"))
    try:
        yield found
    finally:
        found.driver.quit()
