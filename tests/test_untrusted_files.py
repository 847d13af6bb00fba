"""Files from strangers: whatever they declare, they are validated, and no text of theirs becomes code."""

import ast
import json
import math
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lintra import display, zoo
from lintra.anatomy.program import FORMATS, export
from lintra.display import to_csv
from lintra.evaluation.estimate import ProtocolQuantiles, Tail
from lintra.evaluation.table1_column import Table1Column, Table1Row
from lintra.explorer import curves as explorer_curves
from lintra.models import FAMILIES
from lintra.report.page import Picture
from lintra.report.page import page as report_html
from lintra.report.statements import StatementResult
from lintra.runtime import escaping
from lintra.zoo import model_file
from lintra.zoo import tensors as tensor_files

MODELS = {
    name: family.random(2, dim=3, num_examples=7, key=jax.random.key(0)) for name, family in FAMILIES.items()
}
MODEL = MODELS["full"]
HOSTILE = (
    '"""\nprint("CODE RAN")\n"""',
    "\\",
    '\\"""\nprint("CODE RAN")\n"""',
    '"',
    "\r\nprint('CODE RAN')",
    "\u2028print('CODE RAN')",
    "\x00\x1b[31m\ud800",
    "{title} %s $x$",
    "</script><script>alert(1)</script>",
)


def forge(path, model=MODEL, *, tensors=None, **metadata):
    """A model file with other arrays and metadata, and with the checksum that belongs to them."""
    model_file.save(model, path, noise="uniform(0,5)")
    kept, written = tensor_files.read_tensors(path, "lintra-model-1")
    changed = {name: text for name, text in (written | metadata).items() if text is not None}
    tensor_files.write_tensors(path, {k: v for k, v in (kept | (tensors or {})).items() if v is not None}, changed)
    return path


def with_header(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(shape: list[Any], offsets: list[int], kind: Any = "F64") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_forged_file_without_changes_is_read(model, tmp_path):
    assert model_file.load_with_metadata(forge(tmp_path / "m", model))[1]["noise"] == "uniform(0,5)"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"noise": '5"""\nprint("CODE RAN")\n"""'}, "`noise`"),
        ({"noise": "uniform(0,nan)"}, "`noise`"),
        ({"family": "evil"}, "`family` must be one of"),
        ({"family": None}, "its metadata lack family"),
        ({"layers": "3"}, r"`P` must have shape \(3, 1, 4, 4\), got \(2, 1, 4, 4\)"),
        ({"heads": "-1"}, "`heads` must be a whole number"),
        ({"dim": "1e1"}, "`dim` must be a whole number"),
        ({"dim": "1_0"}, "`dim` must be a whole number"),
        ({"context": "٧"}, "`context` must be a whole number"),
        ({"dim": "10001"}, "`dim` must be from 1 to 10,000 in a file, got 10,001"),
        ({"layers": "1001"}, "`layers` must be from 1 to 1,000"),
        ({"heads": "9" * 19}, "`heads` must be from 1 to 1,000"),
        ({"context": "1000000000001"}, "`context` must be from 1 to 1,000,000,000,000"),
        ({"context": "9" * 5000}, "`context` must be a whole number"),
        ({"context": "8"}, "entries of `P` are not what the family's parameters give"),
        ({"version": "1" * 101}, "`version` must be 100 printable characters or less"),
        ({"version": "1\x1b[2J"}, "`version` must be 100 printable"),
        ({"scale": "a\nb"}, "`scale` must be 200 printable"),
        ({"card": "[]"}, "`card` must be a JSON object"),
        ({"card": "{"}, "is not a model that lintra can read"),
        ({"card": "[" * 100_000}, "is not a model that lintra can read"),
        ({"card": " " * (2**20 + 1)}, "`card` must be 1048576 printable"),
    ],
)
def test_metadata_are_validated_on_load(changes, sentence, tmp_path):
    path = forge(tmp_path / "m.safetensors", **changes)
    for read in (model_file.load, model_file.read_metadata) if "context" not in changes else (model_file.load,):
        with pytest.raises(ValueError, match=sentence):
            read(path)


@pytest.mark.parametrize(("written", "printed"), [("", ""), (" uniform( 0 , 5.0 )", "uniform(0,5)")])
def test_a_prior_is_printed_from_the_parsed_value(written, printed, tmp_path):
    path = forge(tmp_path / "m.safetensors", noise=written)
    assert model_file.read_metadata(path)["noise"] == printed
    assert zoo.find(str(path))[1] == (printed or None)


P = MODEL.matrices()[0]


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"own.extra": np.zeros(3)}, "it must hold the arrays"),
        ({"extra": np.zeros(3)}, "it must hold the arrays"),
        ({"own.q": None}, "it must hold the arrays"),
        ({"Q": None}, "it must hold the arrays"),
        ({"P": P.astype(np.float16)}, "`P` must hold numbers of type float32 or float64, got float16"),
        ({"own.p": np.ones((2, 1, 4, 4), int)}, "`own.p` must hold numbers of type float32 or float64"),
        ({"own.p": np.full((2, 1, 4, 4), np.nan)}, "`own.p` must be finite"),
        ({"P": np.full((2, 1, 4, 4), np.inf)}, "`P` must be finite"),
        ({"P": P[:1]}, r"`P` must have shape \(2, 1, 4, 4\), got \(1, 1, 4, 4\)"),
        (
            {"own.p": np.ones((1, 1, 4, 4)), "own.q": np.ones((1, 1, 4, 4))},
            "`layers` must be 1 for these arrays",
        ),
        (
            {"own.p": np.ones((2, 1, 5, 5)), "own.q": np.ones((2, 1, 5, 5))},
            "`dim` must be 4 for these arrays",
        ),
        ({"P": P * (1 + 1e-14)}, r"32 of 32 entries of `P` are not what the family's parameters give \(to 9e-16"),
    ],
)
def test_arrays_are_validated_on_load(tensors, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        model_file.load(forge(tmp_path / "m.safetensors", tensors=tensors))


@pytest.mark.parametrize("name", ["diag", "gd++"])
def test_a_number_of_inputs_must_be_that_of_the_matrices(name, tmp_path):
    with pytest.raises(ValueError, match=r"`P` must have shape \(2, 1, 5, 5\)"):
        model_file.load(forge(tmp_path / "m.safetensors", MODELS[name], dim="4"))


def test_a_model_that_could_not_be_read_back_is_not_written(tmp_path):
    large = FAMILIES["diag"].random(1, dim=10_001, key=jax.random.key(0))
    with pytest.raises(ValueError, match="`dim` must be from 1 to 10,000 in a file, got 10,001"):
        model_file.save(large, tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


TERABYTES = {"__metadata__": {}, "P": entry([10**6, 10**6], [0, 8 * 10**12])}
HEADERS = {
    "terabytes": (TERABYTES, r"array 'P' of shape \(1000000, 1000000\)"),
    "other bytes": ({"P": entry([3], [0, 16])}, r"array 'P' of shape \(3,\)"),
    "backwards": ({"P": entry([], [16, 8])}, "array 'P'"),
    "negative": ({"P": entry([-1, -2], [0, 16])}, "must have a shape and two offsets"),
    "fraction": ({"P": entry([2.0], [0, 16])}, "must have a shape and two offsets"),
    "truth": ({"P": entry([True], [0, 8])}, "must have a shape and two offsets"),
    "many axes": ({"P": entry([1] * 33, [0, 8])}, "must have a shape and two offsets"),
    "overflow": ({"P": entry([2**32, 2**32], [0, 0])}, "array 'P'"),
    "kind": ({"P": entry([1], [0, 8], "PICKLE")}, "must have a dtype of"),
    "odd kind": ({"P": entry([1], [0, 8], [])}, "must have a dtype of"),
    "no entry": ({"P": 3}, "must have dtype, shape and data_offsets"),
    "list": ([], "its header must be an object"),
    "metadata": ({"__metadata__": {"format": 3}}, "invalid"),
    "deep": (b"[" * 100_000, "is not an intact safetensors file"),
    "bytes": (b"\xff\xfe", "is not an intact safetensors file"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_declares_what_the_file_does_not_have_is_rejected(name, tmp_path):
    header, sentence = HEADERS[name]
    path = with_header(tmp_path / "m.safetensors", header, bytes(16))
    with pytest.raises(ValueError, match="is not an intact safetensors file") as caught:
        model_file.load(path)
    assert sentence.replace("\\", "") in str(caught.value)


def test_no_memory_is_requested_for_what_a_file_only_declares(tmp_path):
    """In a process that may have 300 MB more than it has, of files that declare exabytes or have a terabyte."""
    (tmp_path / "declared").write_bytes((2**62).to_bytes(8, "little") + b"{}      ")
    with_header(tmp_path / "shape", TERABYTES)
    (tmp_path / "header").write_bytes((2**25).to_bytes(8, "little"))
    os.truncate(tmp_path / "header", 2**40)
    with_header(tmp_path / "sparse", {"P": entry([2**37 - 1024], [0, 2**40 - 8192])})
    os.truncate(tmp_path / "sparse", 2**40)
    program = """
import resource, sys
from pathlib import Path
from lintra.zoo import model_file as storage
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
for path in sys.argv[1:]:
    try:
        storage.load(path)
    except ValueError as error:
        print(error)
"""
    files = [tmp_path / name for name in ("declared", "shape", "header", "sparse")]
    done = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sentences = done.stdout.splitlines()
    assert len(sentences) == 4
    assert "declares a header of 4,611,686,018,427,387,904 bytes, of 8 in the file" in sentences[0]
    assert "array 'P' of shape (1000000, 1000000)" in sentences[1]
    assert all("it has 1,099,511,627,776 bytes, and at most 4,294,967,296 are read" in s for s in sentences[2:])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device")
def test_what_is_not_a_file_is_rejected():
    with pytest.raises(ValueError, match="`path` '/dev/zero' is not a file"):
        model_file.load("/dev/zero")


def test_all_readers_limit_what_they_read(tmp_path, monkeypatch):
    path = forge(tmp_path / "m.safetensors")
    monkeypatch.setattr(tensor_files, "MAX_FILE", 100)
    with pytest.raises(ValueError, match="at most 100 are read"):
        model_file.load(path)
    with pytest.raises(ValueError, match="at most 100 are read"):
        model_file.save(MODEL, tmp_path / "other")
    monkeypatch.setattr(explorer_curves, "_MAX_CURVES", 100)
    (tmp_path / "zoo.curves.json").write_text("{}" + 99 * " ")
    with pytest.raises(ValueError, match="it has more than 100 bytes"):
        explorer_curves.read_curves(tmp_path / "zoo.safetensors")


def forge_zoo(path, name="mine", *, tensors=None, **fields):
    """A zoo of one model whose card has other fields, with the checksums that belong to them."""
    zoo.write(path, {"mine": (MODEL, {"noise": "uniform(0,5)"})})
    kept, metadata = tensor_files.read_tensors(path, "lintra-zoo-1")
    forged = {f"{name}/{part.removeprefix('mine/')}": value for part, value in kept.items()} | (tensors or {})
    card = json.loads(metadata["cards"])["mine"]
    card["sha256"] = tensor_files.digest(
        {part.removeprefix(f"{name}/"): value for part, value in forged.items()}, {}
    )
    cards = {name: {field: value for field, value in (card | fields).items() if value is not ...}}
    tensor_files.write_tensors(path, forged, metadata | {"cards": json.dumps(cards)})
    return path


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "</script>"}, "`name` must be 1 to 100 letters"),
        ({"name": "=cmd()"}, "`name` must be 1 to 100 letters"),
        ({"name": "a\n"}, "`name` must be 1 to 100 letters"),
        ({"name": "[red]"}, "`name` must be 1 to 100 letters"),
        ({"name": "a" * 101}, "`name` must be 1 to 100 letters"),
        ({"family": "evil"}, "the card of 'mine' is not valid: `family` must be one of"),
        ({"family": ["full"]}, "`family` must be one of"),
        ({"family": "gd++"}, "cards and arrays must belong together"),
        ({"layers": "2"}, "`layers` must be a whole number"),
        ({"layers": 3}, r"must have shape \(3, 1, ...\), got \(2, 1, 4, 4\)"),
        ({"dim": 10**9}, "`dim` must be from 1 to 10,000 in a file"),
        ({"context": True}, "`context` must be a whole number"),
        ({"context": ...}, "`context` must be a whole number"),
        ({"noise": "<b>"}, "`noise` must look like"),
        ({"noise": 5}, "`noise` must be text"),
        ({"sha256": "0" * 63}, "`sha256` must be 64 hexadecimal digits"),
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"adjusted_loss": "<img>"}, '`adjusted_loss` must be a finite number, "inf" or null'),
        ({"worst": math.inf}, "`cards` must be JSON, which has no Infinity"),
        ({"worst": 10**400}, '`worst` must be a finite number, "inf" or null'),
        ({"worst": "-inf"}, '`worst` must be a finite number, "inf" or null'),
        ({"seconds": True}, '`seconds` must be a finite number, "inf" or null'),
        ({"safe": "yes"}, "`safe` must be true or false"),
        ({"num_exploded": -1}, "`num_exploded` must be a whole number"),
        ({"damped": 3}, "`damped` must be a JSON object"),
        ({"damped": {"worst": "<b>"}}, '`worst` must be a finite number, "inf" or null'),
        ({"recipe": "a\x1b[2J"}, "`recipe` must be at most 1000 printable"),
        ({"settings": {"<b>": 1}}, "a field must be called by"),
        ({"settings": {"a": {"b": {"c": {"d": {"e": 1}}}}}}, "must not be nested so deeply"),
        ({"tensors": {"mine/extra": np.zeros(3)}}, "'mine/extra' is in one of them only"),
    ],
)
def test_cards_are_validated_on_load(fields, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        zoo.Zoo(forge_zoo(tmp_path / "zoo.safetensors", **fields))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sha256": "0" * 64}, "do not match the hash"),
        ({"dim": 4}, "`dim` must be 3 for these arrays, got 4"),
        ({"tensors": {"mine/p": np.full((2, 1, 4, 4), np.nan)}}, "`mine/p` must be finite"),
        ({"tensors": {"mine/p": np.zeros((2, 1, 4, 4), np.int8)}}, "`mine/p` must hold numbers of type"),
    ],
)
def test_weights_of_a_zoo_are_validated_on_load(fields, sentence, tmp_path):
    mine = zoo.Zoo(forge_zoo(tmp_path / "zoo.safetensors", **fields))
    with pytest.raises(ValueError, match=sentence):
        mine.load("mine")


@pytest.mark.parametrize("cards", ["", "[]", "[" * 100_000, '{"mine": 3}'])
def test_cards_that_are_no_cards_are_rejected(cards, tmp_path):
    tensor_files.write_tensors(tmp_path / "z", {}, {"format": "lintra-zoo-1", "cards": cards})
    with pytest.raises(ValueError, match="is not a zoo that lintra can read"):
        zoo.Zoo(tmp_path / "z")


def test_only_names_and_cards_that_can_be_read_are_written(tmp_path):
    for name, card in (("</script>", {}), ("a/b", {}), ("mine", {"noise": "loud"})):
        with pytest.raises(ValueError, match=r"`name`|`noise`"):
            zoo.write(tmp_path / "z", {name: (MODEL, card)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), []),
        (("<b>",), {}),
        (("uniform(0,5)",), 3),
        (("uniform(0,5)", "levels"), ["<b>"]),
        (("uniform(0,5)", "levels"), 3),
        (("uniform(0,5)", "sequences"), "8192"),
        (("uniform(0,5)", "sequences"), math.inf),
        (("uniform(0,5)", "tuned"), {}),
        (("uniform(0,5)", "prior", "<b>"), {"loss": [1], "error": [1]}),
        (("uniform(0,5)", "baselines", "ols"), {"loss": [1], "error": [1]}),
        (("uniform(0,5)", "models", "full-7-uniform(0,5)", "loss"), "0.1"),
        (("uniform(0,5)", "models", "full-7-uniform(0,5)", "median"), [0.1]),
        (("uniform(0,5)", "models", "full-7-uniform(0,5)", "dominated"), ["<b>"]),
        (("uniform(0,5)", "models", "full-7-uniform(0,5)"), []),
        (("uniform(0,5)", "models", "full-7-uniform(0,5)", "sha256"), {}),
    ],
)
def test_curves_beside_a_zoo_are_validated(path, value, tmp_path):
    published = zoo.published().path
    curves = explorer_curves.read_curves(published)
    inner = curves
    for part in path[:-1]:
        inner = inner[part]
    if path:
        inner[path[-1]] = value
    (tmp_path / "zoo.curves.json").write_text(json.dumps(curves if path else value))
    with pytest.raises(ValueError, match=r"zoo\.curves\.json' does not hold the curves of a zoo"):
        explorer_curves.read_curves(tmp_path / "zoo.safetensors")


def run(program, tmp_path):
    """What a program prints when it is started."""
    (tmp_path / "program.py").write_bytes(program.encode())
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Elements(HTMLParser):
    """All elements of a page, with their attributes and the text of styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.styles = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "style":
            self.styles.append(data)


def report_page(text, folder):
    """A report in which every text that can be given is the same."""
    (folder / "picture.png").write_bytes(b"")
    tail = Tail(median=0.1, trimmed_mean=0.1, top_ten_share=0.1, worst=1.0, worse_than_zero=0.0)
    row = Table1Row("full", 2, text, 0.3, 0.1, 0.2, 0.1, ProtocolQuantiles(0.3, 0.2, 0.4), "above", tail, 0.1)
    columns = [Table1Column(text, [row], [])]
    picture, verdict = Picture(text, text, folder / "picture.png"), StatementResult(text, text, True)
    return report_html(
        facts=[(text, text)], columns=columns, pictures=[picture], verdicts=[verdict], missing=[text]
    )


def test_text_in_the_report_is_no_markup(tmp_path):
    plain = Elements(report_page("plain", tmp_path))
    for text in (
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'><b>",
        "</style>",
        "$policy &lt;",
    ):
        found = Elements(report_page(text, tmp_path)).found
        assert [tag for tag, _ in found] == [tag for tag, _ in plain.found]
        assert [set(attributes) for _, attributes in found] == [set(attributes) for _, attributes in plain.found]


def test_the_report_has_a_policy_that_allows_its_own_style_and_no_script(tmp_path):
    page = Elements(report_page("plain", tmp_path))
    policy = next(
        attributes["content"]
        for tag, attributes in page.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    style = page.styles[0]
    assert policy == (
        "default-src 'none'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src {escaping.source_hash(style)}"
    )
    assert not any("style" in attributes for _, attributes in page.found)
    assert ".far-48 { --far: 0.48; }" in style
    shades = [attributes["class"] for tag, attributes in page.found if tag == "td"]
    assert shades == ["above far-48"]


def test_an_exported_program_does_not_run_what_a_title_says(tmp_path):
    for title in HOSTILE:
        assert run(export(MODELS["gd++"], title=title), tmp_path) == ""


@settings(max_examples=200)
@given(title=st.one_of(st.text(st.characters(), max_size=40), st.text("\"\\\n{}'#", max_size=12)))
def test_a_title_stays_a_title_in_every_form(title):
    program = ast.parse(export(MODELS["gd++"], title=title))
    plain = ast.parse(export(MODELS["gd++"]))
    shown = escaping.one_line(title.strip() or "A model")
    docstring = ast.get_docstring(program, clean=False)
    assert docstring is not None
    assert docstring.startswith(f"{shown}: an algorithm")
    assert list(map(ast.dump, program.body[1:])) == list(map(ast.dump, plain.body[1:]))
    for form in ("pseudo-code", "latex"):
        lines, without = (export(MODELS["gd++"], form=form, **t).splitlines() for t in ({"title": title}, {}))
        assert lines[1:] == without[1:]
        assert form == "pseudo-code" or lines[0].startswith("% ")


@pytest.mark.parametrize("form", FORMATS)
def test_a_prior_that_is_none_is_not_exported(form):
    with pytest.raises(ValueError, match="`noise` must look like"):
        export(MODEL, noise='5"""\nprint("CODE RAN")\n"""', form=form)
    assert "uniform(0,5)" in export(MODEL, noise=" uniform(0, 5.0)")


@pytest.mark.parametrize(
    "text", ["=1+1", "+A1", "-A1", "@sum", "\t=1", "\r=1", "\n=1", "＝1", "--1", "-1+cmd|' /C calc'!A0"]
)
def test_a_cell_of_text_is_no_formula(text):
    assert to_csv([{text: text}]).replace('"', "").split("'")[0] == ""
    assert display.csv_cell(text) == f"'{text}"


@given(number=st.one_of(st.floats(), st.integers()))
def test_numbers_stay_numbers_in_csv(number):
    assert display.csv_cell(number) is number
    assert display.csv_cell(f"{number}") in (f"{number}", "'-inf")


@given(
    value=st.recursive(st.text(st.characters()), lambda part: st.lists(part) | st.dictionaries(st.text(), part))
)
def test_json_in_a_page_is_the_same_value_and_no_markup(value):
    text = escaping.json_in_page(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_json_in_a_page_escapes_as_scripts_need():
    assert escaping.json_in_page("<!--</script>\u2028\u2029") == r'"\u003c!--\u003c/script\u003e\u2028\u2029"'
