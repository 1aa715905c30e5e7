"""Write the example page of lucid.view and its pictures for the docs: needs Chromium and Pillow.

python tools/viewer_pictures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

import lucid
from tests.viewer.conftest import start
from tests.viewer.models import loss_of_gpt

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def main() -> None:
    lucid.manual_seed(0)
    loss, args = loss_of_gpt(1)
    page = lucid.view(loss, *args, path=PICTURES / "viewer-example.html").path
    loss, args = loss_of_gpt(2)
    large = lucid.view(loss, *args, path=Path(tempfile.mkdtemp()) / "page.html").path
    browser = start(tempfile.mkdtemp())
    try:
        browser.open(large)
        browser.click("#stage-body .line", "softmax")
        browser.click("[data-tab=kernels]")
        save(browser, "viewer-light")
        browser.open(large, dark=True)
        browser.click("[data-stage=decomposed]")
        browser.click("[data-mode=both]")
        save(browser, "viewer-dark")
        browser.open(page, 640, 820)
        save(browser, "viewer-narrow")
    finally:
        browser.driver.quit()


def save(browser: object, name: str) -> None:
    path = PICTURES / f"{name}.png"
    browser.driver.save_screenshot(str(path))  # type: ignore[attr-defined]
    Image.open(path).convert("RGB").quantize(96).save(path, optimize=True)
    print(path, path.stat().st_size // 1024, "KB")


if __name__ == "__main__":
    main()
