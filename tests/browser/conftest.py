"""How do the browser tests drive a real Chromium, and how do they know that nothing leaves the machine?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
LOCAL_SCHEMES = {"file", "data", "blob", "about"}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Visit:
    """A page in a context of its own: what it asked of other hosts (blocked), and what it logged as errors."""

    page: Any
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(condition, timeout=30_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One Chromium for a module: as long as it lives, its event loop keeps `asyncio.run` from other tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests skipped: playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("browser tests skipped: no Chromium on PATH (install the package chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open an address or a file in a fresh context: `visit(path, dark=True, scale=2)`."""
    contexts = []

    def open_page(target: Path | str, *, dark: bool = False, width: int = 1200, scale: float = 1) -> Visit:
        context = chromium.new_context(
            color_scheme="dark" if dark else "light",
            viewport={"width": width, "height": 900},
            device_scale_factor=scale,
        )
        contexts.append(context)
        opened = Visit(page=context.new_page())
        context.route("**/*", lambda route: _guard(route, opened.outside))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("console", lambda line: opened.errors.append(line.text) if line.type == "error" else None)
        opened.page.goto(target.as_uri() if isinstance(target, Path) else target)
        return opened

    yield open_page
    for context in contexts:
        context.close()


def _guard(route: Any, outside: list[str]) -> None:
    address = urlsplit(route.request.url)
    if address.scheme in LOCAL_SCHEMES or address.hostname in LOOPBACK:
        route.continue_()
    else:
        outside.append(route.request.url)
        route.abort()


@pytest.fixture
def chart_page(tmp_path: Path) -> Path:
    """A plain page on disk with plotly.js, `drawChart` and an empty `#picture`."""
    from perfkit.showing.web import assets

    plotly = f"<script>{assets.inline_script(assets.plotly_js())}</script>"
    return _picture_page(tmp_path, plotly + _module(assets.chart_js(), "drawChart"))


@pytest.fixture
def flame_page(tmp_path: Path) -> Path:
    """A plain page on disk with `drawFlame`, its parts, and an empty `#picture`."""
    from perfkit.showing.web import assets

    return _picture_page(tmp_path, _module(assets.flame_js(), "drawFlame, foldTree, layTree, moduleOf"))


def _module(source: str, names: str) -> str:
    return f'<script type="module">{source}\nObject.assign(globalThis, {{ {names} }});</script>'


def _picture_page(folder: Path, scripts: str) -> Path:
    page = folder / "picture.html"
    page.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>picture</title>'
        "<style>:root { color-scheme: light dark; } body { font-family: sans-serif; margin: 16px; }</style>"
        f'<div id="picture"></div>{scripts}',
        "utf-8",
    )
    return page
