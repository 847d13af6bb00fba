"""What the README and the documentation show runs as written, and annotations say the truth."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lintra

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = {
    "docs/sweeps.md": ["needs a Slurm cluster"],
}  # blocks that no test can run, and why

_OPEN = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*\{?[ \t]*\.?(?P<tag>[\w+-]*)")
_MARK = re.compile(r"^[ \t]*<!-- no-run(?:: (?P<reason>.+?))? -->$")


def blocks(text):
    """The fenced Python of a page: (line number, code, why it is not run or `None`)."""
    found, lines, number = [], text.split("\n"), 0
    while number < len(lines):
        opening, first = _OPEN.match(lines[number]), number + 1
        number += 1
        if opening is None:
            continue
        closing = re.compile(rf"^[ \t]*{re.escape(opening['fence'])}[`~]*[ \t]*$")
        while number < len(lines) and not closing.match(lines[number]):
            number += 1
        if opening["tag"].lower() in ("python", "python3", "py", "pycon", "ipython"):
            code = [line.removeprefix(opening["indent"]) for line in lines[first:number]]
            mark = _MARK.match(lines[first - 2]) if first > 1 else None
            assert mark is None or mark["reason"], f"line {first - 1}: `no-run` needs a reason"
            found.append((first, "\n".join(code), mark and mark["reason"]))
        number += 1
    return found


RUN = """
import json, sys
names = {"__name__": "__main__"}
for name, code in json.load(sys.stdin):
    exec(compile(code, name, "exec"), names)
"""


def run_blocks(codes, folder):
    """Run blocks in one namespace, in an empty folder."""
    command = [sys.executable, "-c", RUN]
    return subprocess.run(command, cwd=folder, input=json.dumps(codes), capture_output=True, text=True)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


CODES = {
    name_of(page): [
        (f"{name_of(page)}:{line}", "\n" * line + code)  # tracebacks then show the page's own line numbers
        for line, code, reason in blocks(page.read_text())
        if reason is None
    ]
    for page in PAGES
}


@pytest.mark.parametrize("page", [page for page, codes in CODES.items() if codes])
def test_the_python_of_a_page_runs_in_order(page, tmp_path):
    run = run_blocks(CODES[page], tmp_path)
    assert run.returncode == 0, run.stderr
    assert "nan" not in run.stdout
    assert "False" not in run.stdout


def test_blocks_that_are_not_run_are_counted_and_say_why():
    marked = {
        name_of(page): [reason for _, _, reason in blocks(page.read_text()) if reason is not None]
        for page in PAGES
    }
    assert {page: reasons for page, reasons in marked.items() if reasons} == NOT_RUN


def test_pages_that_should_have_examples_have_them():
    assert len(CODES["README.md"]) >= 2
    for page in ("index", "regressor", "training", "anatomy"):
        assert CODES[f"docs/{page}.md"]


PAGE = """
```python
a = 1
```
```
not = python
```
1. In a list
   ~~~py
   if a:
       b = a + 1
   ~~~
````{.python title="x"}
text = '''
```
'''
assert b == 2
````
<!-- no-run: needs the moon -->
```python
import moon
```
"""


def test_the_collector_finds_every_kind_of_fence(tmp_path):
    found = blocks(PAGE)
    assert [(line, code.count("\n") + 1, reason) for line, code, reason in found] == [
        (2, 1, None),
        (9, 2, None),
        (13, 4, None),
        (20, 1, "needs the moon"),
    ]
    codes = [("page", code) for _, code, _ in found]
    assert run_blocks(codes[:3], tmp_path).returncode == 0
    assert "No module named 'moon'" in run_blocks(codes, tmp_path).stderr
    assert "name 'a' is not defined" in run_blocks(codes[1:2], tmp_path).stderr
    with pytest.raises(AssertionError, match="`no-run` needs a reason"):
        blocks(PAGE.replace(": needs the moon", ""))


def inline(text):
    """Code within the lines of a page."""
    outside = re.sub(r"^[ \t]*(```|~~~).*?^[ \t]*\1", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", outside)


NAMES = sorted(
    {(name_of(page), code) for page in PAGES for code in inline(page.read_text()) if code.startswith("lintra.")}
)


def test_names_of_lintra_in_the_text_work_after_importing_it():
    """In a fresh process: tests import modules that `import lintra` alone does not."""
    dotted = sorted({match[0] for _, code in NAMES if (match := re.match(r"[\w.]+", code))})
    assert len(dotted) > 5
    run = subprocess.run(
        [sys.executable, "-c", "import lintra\n" + "\n".join(dotted)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(("page", "code"), [pair for pair in NAMES if "(" in pair[1]])
def test_calls_in_the_text_have_the_arguments_that_are_needed(page, code):
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    function = eval(ast.unparse(call.func), {"lintra": lintra})
    bound = inspect.signature(function).bind(*call.args, **{str(word.arg): word.value for word in call.keywords})
    if function is lintra.baseline:
        assert ast.literal_eval(bound.arguments["name"]) in lintra.BASELINES


TAILS = re.compile(
    r"As printed, (\d+) of the (\d+) published models explode on at least one of ([\d,]+) fresh sequences; "
    r"damped, (\d+) do, and (\d+) in 32 bits"
)


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_what_is_said_of_explosions_is_what_the_cards_say(page):
    (said,) = TAILS.findall(" ".join((ROOT / page).read_text().split()))
    printed, models, sequences, damped, single = (int(number.replace(",", "")) for number in said)
    cards = lintra.zoo.published().cards.values()
    unsafe = [sum(not card[f"{form}safe"] for card in cards) for form in ("printed_", "", "float32_")]
    assert (models, [printed, damped, single]) == (len(cards), unsafe)
    assert {card["gate_sequences"] for card in cards} == {sequences}


CHECKED = """
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("lintra", "beartype.beartype"):
    import lintra
    from lintra import *  # all modules, which a mere import would load later, without the hook
    from lintra.baselines import TunedRidge
import sys
sys.path.insert(0, sys.argv[1])
import jax
from members import NUM_EXAMPLES, DIM, MODELS, PREDICTORS
for n in (NUM_EXAMPLES, DIM + 1):
    problem = lintra.NoisyRegression(dim=DIM, num_examples=n)
    stats, truth = lintra.sample_statistics(problem, (2, 3), key=jax.random.key(0))
    lintra.GramStatistics.from_data(*lintra.sample_data(problem, (2,), key=jax.random.key(0))[:2])
    for predictor in PREDICTORS.values():
        predictor.weights(stats)
    for model in MODELS.values():
        model.implicit(stats), model.matrices(), isinstance(model, lintra.Full) or model.with_dim(7)
    MODELS["gd++-4-h2"].spectral_weights(stats)
    lintra.evaluate(PREDICTORS, problem, num_sequences=10, key=jax.random.key(1))
    lintra.profile({"a": MODELS["full-1-h1"]}, problem, [0.0, 1.0], num_sequences=10, key=jax.random.key(1))
    TunedRidge.tuned(problem, num_sequences=8192, key=jax.random.key(1))
lintra.closed_form.oracle_loss(problem)
try:
    GramStatistics("no array", "no number")
except TypeCheckError:
    pass
else:
    raise AssertionError("annotations are not checked")
"""


def test_annotations_hold_under_a_runtime_type_checker():
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", CHECKED, str(ROOT / "tests")]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]


def test_nothing_names_a_registry_or_a_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    assert not {"uv.lock", "pylock.toml"} & {Path(name).name for name in tracked}
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ file", lock)
