"""The pages work under their security policies, and text from files and names does not run."""

import base64
import json

import numpy as np
import pytest

import lintra
from lintra import zoo
from lintra.evaluation.estimate import ProtocolQuantiles, Tail
from lintra.evaluation.table1_column import Table1Column, Table1Row
from lintra.explorer.page import page as fill_page
from lintra.report.page import Picture
from lintra.report.page import page as report_html
from lintra.report.statements import StatementResult
from lintra.zoo import tensors as tensor_files
from page_visit import Visit

SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = "<img src=x onerror='window.hacked = 1'>"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def hacked(one):
    return one.page.evaluate("window.hacked ?? null")


def test_a_script_in_the_name_of_a_model_does_not_run(browser, tmp_path, monkeypatch):
    published, names = "diag-2-uniform(0,5)", [f"</script>{SCRIPT}", f'"><!--{IMAGE}', "<!--<script>"]
    zoo.write(tmp_path / "zoo.safetensors", {published: (zoo.load(published), {"noise": "uniform(0,5)"})})
    opened = zoo.Zoo(tmp_path / "zoo.safetensors")
    # No file gives such names and families, so they are put in behind the checks.
    opened.cards |= {name: opened.cards[published] | {"family": name} for name in names}
    monkeypatch.setattr(opened, "load", lambda _: zoo.load(published))
    (tmp_path / "page.html").write_text(fill_page(opened, {}), encoding="utf-8")
    one = Visit(browser, tmp_path / "page.html")
    assert one.page.evaluate("lintra.names()") == [published, *names]
    assert hacked(one) is None
    one.context.close()
    assert one.messages == []


def test_what_is_put_into_the_page_does_not_run_and_reaches_no_address(visit):
    one = visit()
    one.page.evaluate("html => { document.getElementById('tiles').innerHTML = html }", IMAGE)
    one.page.evaluate(
        """() => {
             const script = document.createElement("script");
             script.textContent = "window.hacked = 1";
             document.body.append(script);
           }"""
    )
    assert one.page.evaluate("fetch('https://example.org/').then(() => 'reached', () => 'blocked')") == "blocked"
    one.page.wait_for_timeout(300)
    assert hacked(one) is None
    assert one.requests == []
    assert len([text for text in one.messages if "Content Security Policy" in text]) >= 3
    one.messages.clear()


def test_a_script_that_was_added_to_the_file_does_not_run(browser, page_file, tmp_path):
    text = page_file.read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(text.replace("</body>", f"{SCRIPT}</body>"), encoding="utf-8")
    one = Visit(browser, tmp_path / "page.html")
    assert hacked(one) is None
    assert any("Content Security Policy" in text for text in one.messages)
    one.context.close()


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "<b>"])
def test_an_address_names_only_models_that_the_page_has(visit, name):
    assert visit(f"#model={name}").address()["model"] == "full-7-uniform(0,5)"


def test_the_name_and_the_text_of_a_file_are_no_markup(visit, tmp_path):
    path = tmp_path / f"{IMAGE}.safetensors"
    lintra.save(zoo.load("diag-2-uniform(0,5)"), path, noise="uniform(0,5)")
    one = visit()
    one.page.set_input_files("#file", path)
    one.wait_for("document.getElementById('file-message').textContent.startsWith('Opened')")
    assert IMAGE in one.text("#opened")
    assert one.page.locator("main img").count() == 0
    assert hacked(one) is None


FORGERIES = {
    "noise": ({"noise": IMAGE}, {}, "A noise prior must look like"),
    "family": ({"family": "__proto__"}, {}, "is not known"),
    "dim": ({"dim": "9999999"}, {}, "must be a whole number from 1 to 10000"),
    "layers": ({"layers": "0x2"}, {}, "must be a whole number from 1 to 1000"),
    "other dim": ({"dim": "11"}, {}, "“P” must have shape (2, 1, 12, 12), got (2, 1, 11, 11)"),
    "context": ({"context": "21"}, {}, "“P” is not what the family's parameters give"),
    "extra": ({}, {"extra": np.zeros(3)}, "has no array “extra”"),
    "matrix": ({}, {"Q": np.zeros((2, 1, 11, 11))}, "“Q” is not what the family's parameters give"),
    "infinite": ({}, {"own.p": np.full((2, 1, 2), np.inf)}, "is not finite"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_file_with_its_own_checksum_is_rejected(visit, tmp_path, kind):
    metadata, tensors, sentence = FORGERIES[kind]
    path = tmp_path / "forged.safetensors"
    lintra.save(zoo.load("diag-2-uniform(0,5)"), path, noise="uniform(0,5)")
    kept, written = tensor_files.read_tensors(path, "lintra-model-1")
    tensor_files.write_tensors(path, kept | tensors, written | metadata)
    one = visit()
    one.page.set_input_files("#file", path)
    one.wait_for("document.getElementById('file-message').textContent !== ''")
    assert sentence in one.text("#file-message")
    assert one.page.is_hidden("#opened")
    assert hacked(one) is None


THRESHOLDS = {"kind": "hard", "rho": [100.0, 50.0], "kappa": [9e3, None], "trace": 300.0, "active": False}
OBJECT = "“damping” must be an object with kind, rho, kappa and trace, got"
TRACE = "“trace” of the damping must be a positive number, or null for infinity, got"
COUNT = "must be a list of 2 positive numbers, or null for infinity, got"
FORGED_DAMPING = {
    "text": ("rho", "The damping of this file cannot be read: it is not JSON."),
    "NaN": (THRESHOLDS | {"rho": [np.nan, 1.0]}, "The damping of this file cannot be read: it is not JSON."),
    "null": (None, f"{OBJECT} null."),
    "list": ([1.0, 2.0], f"{OBJECT} [1,2]."),
    "empty": ({}, f"{OBJECT} {{}}."),
    "kind": (THRESHOLDS | {"kind": IMAGE}, f'“kind” of the damping must be “hard”, got "{IMAGE}".'),
    "active": (THRESHOLDS | {"active": 1}, "“active” of the damping must be true or false, got 1."),
    "zero": (THRESHOLDS | {"rho": [0, 1]}, f"“rho” of the damping {COUNT} [0,1]."),
    "negative": (THRESHOLDS | {"kappa": [1, -1]}, f"“kappa” of the damping {COUNT} [1,-1]."),
    "boolean": (THRESHOLDS | {"rho": [True, 1]}, f"“rho” of the damping {COUNT} [true,1]."),
    "string": (THRESHOLDS | {"rho": ["1", 1]}, f'“rho” of the damping {COUNT} ["1",1].'),
    "one": (THRESHOLDS | {"rho": [1]}, f"“rho” of the damping {COUNT} [1]."),
    "three": (THRESHOLDS | {"kappa": [1, 2, 3]}, f"“kappa” of the damping {COUNT} [1,2,3]."),
    "number": (THRESHOLDS | {"kappa": 7}, f"“kappa” of the damping {COUNT} 7."),
    "trace missing": (
        {"kind": "hard", "rho": [1, 1], "kappa": [1, 1], "active": True},
        f'{OBJECT} {{"kind":"hard","rho":[1,1],"kappa":[1,1],"active":true}}.',
    ),
    "trace zero": (THRESHOLDS | {"trace": 0}, f"{TRACE} 0."),
    "trace negative": (THRESHOLDS | {"trace": -300.0}, f"{TRACE} -300."),
    "trace boolean": (THRESHOLDS | {"trace": True}, f"{TRACE} true."),
    "trace string": (THRESHOLDS | {"trace": IMAGE}, f'{TRACE} "{IMAGE}".'),
    "trace list": (THRESHOLDS | {"trace": [300.0, 300.0]}, f"{TRACE} [300,300]."),
}


def write_with_damping(path, damping):
    lintra.save(zoo.load("diag-2-uniform(0,5)"), path, noise="uniform(0,5)")
    tensors, metadata = tensor_files.read_tensors(path, "lintra-model-1")
    tensor_files.write_tensors(path, tensors, metadata | {"damping": damping})


@pytest.mark.parametrize("kind", FORGED_DAMPING)
def test_forged_thresholds_are_rejected_by_the_page_and_by_python(visit, tmp_path, kind):
    damping, sentence = FORGED_DAMPING[kind]
    path = tmp_path / "forged.safetensors"
    write_with_damping(path, damping if kind == "text" else json.dumps(damping))
    with pytest.raises(ValueError, match="is not a model that lintra can read"):
        lintra.load(path)
    one = visit()
    before = one.picture("steps")
    one.page.set_input_files("#file", path)
    one.wait_for("document.getElementById('file-message').textContent !== ''")
    assert one.text("#file-message") == f"forged.safetensors: {sentence}"
    assert one.picture("steps") == before
    assert hacked(one) is None


@pytest.mark.parametrize("infinity", ["1e999", "-1e999"])
@pytest.mark.parametrize(("number", "sentence"), [("100.0", f"“rho” of the damping {COUNT}"), ("300.0", TRACE)])
def test_thresholds_that_overflow_are_rejected(visit, tmp_path, number, sentence, infinity):
    path = tmp_path / "forged.safetensors"
    write_with_damping(path, json.dumps(THRESHOLDS).replace(number, infinity))
    one = visit()
    one.page.set_input_files("#file", path)
    one.wait_for("document.getElementById('file-message').textContent !== ''")
    assert sentence in one.text("#file-message")


TINIEST = 5e-324  # divided by the training n it underflows
EXTREME_DAMPING = {
    "steps": (
        {"rho": [1e300, TINIEST], "kappa": [TINIEST, 1e300], "trace": 1e300},
        "Steps are divided by ∞ in layer 1, ∞ in layer 2.",
    ),
    "context": ({"trace": TINIEST}, "The Gram matrix is divided by ∞ before layer 1."),
    "both": (
        {"rho": [TINIEST, TINIEST], "kappa": [TINIEST, TINIEST], "trace": TINIEST},
        "The Gram matrix is divided by ∞ before layer 1.",
    ),
}


@pytest.mark.parametrize("kind", EXTREME_DAMPING)
def test_thresholds_that_are_extreme_give_a_page_without_nan(visit, tmp_path, kind):
    thresholds, sentence = EXTREME_DAMPING[kind]
    write_with_damping(tmp_path / "x.safetensors", json.dumps(THRESHOLDS | thresholds))
    one = visit()
    one.page.set_input_files("#file", tmp_path / "x.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.startsWith('Opened')")
    assert "NaN" not in one.text("main")
    assert one.text("#damping").endswith(sentence)


@pytest.mark.parametrize(
    "header", ["[]", "3", "null", '{"__metadata__":3}', '{"P":3}', '{"P":{"dtype":"F64","shape":[1e99]}}']
)
def test_a_header_that_is_none_gets_a_sentence(visit, tmp_path, header):
    path = tmp_path / "forged.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    one = visit()
    one.page.set_input_files("#file", path)
    one.wait_for("document.getElementById('file-message').textContent !== ''")
    assert "safetensors file" in one.text("#file-message") or "The array “P”" in one.text("#file-message")
    assert "undefined (" not in one.text("#file-message")


@pytest.mark.parametrize("model", ["full-2-uniform(0,5)", "diag-7-uniform(0,5)-h2", "gd++-3-uniform(0,5)"])
def test_a_file_in_32_bits_is_read(visit, tmp_path, model):
    found = zoo.load(model)
    small = {name: np.asarray(value, np.float32) for name, value in found.parameters().items()}
    lintra.save(type(found).from_parameters(small, found.num_examples, found.dim), tmp_path / "small.safetensors")
    one = visit()
    one.page.set_input_files("#file", tmp_path / "small.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.startsWith('Opened')")


def test_the_report_works_under_its_policy(browser, tmp_path):
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    tail = Tail(median=0.1, trimmed_mean=0.1, top_ten_share=0.1, worst=1.0, worse_than_zero=0.0)
    row = Table1Row(
        "full", 2, "uniform(0,5)", 0.3, 0.1, 0.2, 0.1, ProtocolQuantiles(0.3, 0.2, 0.4), "above", tail, 0.1
    )
    text = report_html(
        facts=[("Models", SCRIPT)],
        columns=[Table1Column("uniform(0,5)", [row], [])],
        pictures=[Picture("Figure 1", IMAGE, tmp_path / "pixel.png")],
        verdicts=[StatementResult(SCRIPT, IMAGE, True)],
        missing=[SCRIPT],
    )
    messages = []
    page = browser.new_page()
    page.on("console", lambda message: messages.append(message.text))
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("document.images[0].naturalWidth") == 1
    colour = page.evaluate("getComputedStyle(document.querySelector('td.above')).backgroundColor")
    assert "230, 159, 0" in colour
    assert float(colour.rstrip(")").split(",")[-1]) == pytest.approx(0.45 * 0.48, abs=0.005)
    assert page.evaluate("window.hacked ?? null") is None
    assert messages == []
    (tmp_path / "report.html").write_text(text + SCRIPT, encoding="utf-8")
    page.reload()
    assert page.evaluate("window.hacked ?? null") is None
    assert any("Content Security Policy" in text for text in messages), json.dumps(messages)
    page.close()
