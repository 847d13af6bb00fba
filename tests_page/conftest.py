import os
import time
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from lintra import zoo
from lintra.explorer.curves import read_curves
from lintra.explorer.page import page as fill_page
from lintra.runtime.cache import enable_compilation_cache

enable_compilation_cache()
ROOT = Path(__file__).parent.parent
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1360, "height": 900}


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


class Visit:
    """A page in a tab of its own, with everything that it complains about or asks the network for."""

    def __init__(self, browser, path, address="", **options):
        self.num_examples = browser.new_context(**({"viewport": DESKTOP, "color_scheme": "light"} | options))
        self.page = self.num_examples.new_page()
        self.page.set_default_timeout(20_000)
        self.path, self.complaints, self.requests = path, [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.num_examples.route("**/*", self._watch)
        self.open(address)

    def _watch(self, route):
        url = route.request.url
        if url.startswith(self.path.as_uri()):
            route.continue_()
        else:
            self.requests.append(url)
            route.abort()

    def open(self, address=""):
        self.page.goto("about:blank")
        self.page.goto(self.path.as_uri() + address)
        self.wait_for("performance.getEntriesByName('lintra-first-view').length > 0")

    def wait_for(self, expression, seconds=20):
        """Wait until an expression is true. Playwright's own wait needs `eval`, which the policy forbids."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"Not true after {seconds} s: {expression}"
            self.page.wait_for_timeout(20)

    def address(self):
        """What is behind # in the address."""
        self.page.wait_for_timeout(120)  # it follows the state after a moment
        pairs = self.page.evaluate("[...new URLSearchParams(location.hash.slice(1))]")
        return dict(pairs)

    def text(self, selector):
        return self.page.inner_text(selector)

    def picture(self, name):
        return self.page.inner_html(f"#{name}")

    def slide(self, name, value):
        """Move a slider as a reader's hand does."""
        self.page.locator(f"#{name}").fill(str(value))

    def wait_until_measured(self):
        self.wait_for("window.lintra.profile().done >= 400", seconds=60)
        self.wait_for("[...document.querySelectorAll('.switch small')].every(e => e.textContent)", seconds=60)


@pytest.fixture
def visit(browser, page_file):
    """Open the page; at the end it must have been silent, and must have asked the network for nothing."""
    visits = []

    def start(address="", **options):
        visits.append(Visit(browser, page_file, address, **options))
        return visits[-1]

    yield start
    for one in visits:
        one.num_examples.close()
        assert one.complaints == []
        assert one.requests == []
