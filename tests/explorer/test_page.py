"""The explorer page without a browser: it is up to date, self-contained, and holds exactly the zoo's weights."""

import base64
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest

from explorer_helpers import ROOT, SOURCE, ZOO, published_page
from lintra import zoo
from lintra.explorer.curves import page_models, read_curves
from lintra.explorer.page import data as page_data
from lintra.explorer.page import page as fill_page
from lintra.figures.style import STYLES
from lintra.runtime.escaping import source_hash


def search(pattern: str, page: str) -> str:
    """The first group of a pattern, which is there."""
    match = re.search(pattern, page, flags=re.DOTALL)
    assert match is not None
    return match[1]


def page_values(page: str) -> Any:
    """What a page holds as JSON."""
    return json.loads(search(r'id="lintra-data">(.*?)</script>', page))


@pytest.fixture(scope="module")
def page():
    return published_page()


@pytest.fixture(scope="module")
def data(page):
    return page_values(page)


def test_the_built_page_is_not_older_than_its_source():
    left_out = {"node_modules", "dist"}
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and not left_out & set(path.relative_to(SOURCE).parts)
    ]
    names = sorted(path.relative_to(SOURCE).as_posix() for path in files)
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\n".encode())
        digest.update((SOURCE / name).read_bytes())
    built = (ROOT / "src/lintra/data/explorer.html").read_text()
    assert f'content="{digest.hexdigest()}"' in built, "Run `make page`."


def test_the_page_needs_nothing_from_outside(page):
    addresses = set(re.findall(r"https?://[^\s\"'<>)\\]+", page))
    allowed = {
        "https://arxiv.org/abs/2402.14180",
        "http://www.w3.org/1998/Math/MathML",
        "http://www.w3.org/2000/svg",
    }
    assert addresses <= allowed
    assert not re.search(r"<(script|img|iframe|audio|video|source)[^>]*\ssrc=", page)
    assert not re.search(r"<link[^>]*href=\"(?!data:,)", page)
    assert not re.search(r"@import|url\((?!data:|#)", page)


def test_the_policy_allows_exactly_the_script_and_the_style_of_the_page(page):
    policy = search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    script = search(r'<script type="module"[^>]*>(.*?)</script>', page)
    style = search(r"<style[^>]*>(.*?)</style>", page)
    assert policy == (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; img-src data:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert not re.search(r"<[a-z][^>]*\sstyle=", page.replace(script, ""))


def test_weights_come_through_exactly(data):
    for name in page_models(zoo.published()):
        for part, value in zoo.load(name).parameters().items():
            found = np.frombuffer(base64.b64decode(data["models"][name]["parameters"][part]), "<f8")
            assert np.array_equal(found, np.ravel(value)), name


def test_thresholds_of_damping_come_through_exactly(data):
    for name in page_models(zoo.published()):
        damping = zoo.load(name).with_damping().damping
        assert damping is not None
        found = data["models"][name]["damping"]
        for part in ("rho", "kappa", "trace"):
            # JSON has no infinity: null stands for it.
            numbers = [np.inf if number is None else number for number in np.atleast_1d(found[part])]
            assert np.array_equal(numbers, np.atleast_1d(getattr(damping, part))), name


def test_all_of_table_1_and_its_losses_are_there(data):
    assert len(data["paper"]) >= 210
    for method, num_layers, noise, _ in data["paper"]:
        if num_layers is not None:
            card = zoo.card(f"{method}-{num_layers}-{noise}")
            assert data["models"][f"{method}-{num_layers}-{noise}"]["adjusted_loss"] == card["adjusted_loss"]


def test_every_model_has_its_curve(data):
    missing = [
        name
        for name, card in data["models"].items()
        if name not in data["curves"].get(card["noise"], {"models": {}})["models"]
    ]
    assert not missing, (
        "The zoo has changed since its curves were measured: run `lintra explore --measure --no-open`."
    )


def test_curves_of_other_weights_are_left_out():
    curves = json.loads(json.dumps(read_curves(ZOO)))
    curves["uniform(0,5)"]["models"]["full-7-uniform(0,5)"]["sha256"] = "of something else"
    kept = page_data(zoo.published(), curves)["curves"]["uniform(0,5)"]["models"]
    assert "full-7-uniform(0,5)" not in kept
    assert "full-6-uniform(0,5)" in kept


def test_the_page_uses_the_colours_of_the_figures():
    colours = (SOURCE / "src/style.css").read_text().lower()
    labels = (SOURCE / "src/styles.ts").read_text()
    for style in STYLES.values():
        assert f"light-dark({style.colour.lower()}," in colours
        assert f'"{style.label}"' in labels


def test_text_cannot_end_the_script_that_holds_it(tmp_path, page):
    sly = tmp_path / "sly.safetensors"
    zoo.write(sly, {"diag-1": (zoo.load("diag-1-uniform(0,5)"), {"noise": "uniform(0,5)"})})
    opened, name = zoo.Zoo(sly), "</script><script>alert(1)</script><!--\u2028"
    # No file gives such a name, so it is put in behind the checks.
    opened.cards = {name: opened.cards["diag-1"]}
    opened._tensors = {f"{name}/{part[7:]}": value for part, value in opened._tensors.items()}
    filled = fill_page(opened, {})
    assert filled.count("</script>") == page.count("</script>")
    assert name not in filled
    assert list(page_values(filled)["models"]) == [name]
