import os

import pytest
from playwright.sync_api import sync_playwright

from lintra import zoo
from lintra.explorer.curves import read_curves
from lintra.explorer.page import page as fill_page
from lintra.runtime.cache import enable_compilation_cache
from page_visit import ROOT, Visit

enable_compilation_cache()
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    """The page as `lintra explore` writes it."""
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    curves = read_curves(ROOT / "src/lintra/data/zoo.safetensors")
    path.write_text(fill_page(zoo.published(), curves), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, page_file):
    """Open the page; at the end it must have been silent, and must have asked the network for nothing."""
    visits = []

    def start(address="", **options):
        visits.append(Visit(browser, page_file, address, **options))
        return visits[-1]

    yield start
    for one in visits:
        one.context.close()
        assert one.messages == []
        assert one.requests == []
