"""A page in a browser, as a reader has it."""

import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
DESKTOP = {"width": 1360, "height": 900}


class Visit:
    """A page in a tab of its own, with all its messages and requests to the network."""

    def __init__(self, browser, path, address="", **options):
        self.context = browser.new_context(**({"viewport": DESKTOP, "color_scheme": "light"} | options))
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.path, self.messages, self.requests = path, [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.context.route("**/*", self._route)
        self.open(address)

    def _route(self, route):
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
