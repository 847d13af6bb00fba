"""What the README and the documentation show runs as written, and annotations say the truth."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/index.md", "docs/regressor.md")
EXAMPLES = [
    pytest.param(example, id=f"{page}-{number}")
    for page in PAGES
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_as_written(example, tmp_path):
    run = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "nan" not in run.stdout
    assert "False" not in run.stdout


def test_every_page_has_examples():
    pages = [example.id.rsplit("-", 1)[0] for example in EXAMPLES]
    assert set(pages) == set(PAGES)
    assert pages.count("README.md") >= 2


CHECKED = """
from jaxtyping import install_import_hook
with install_import_hook("lintra", "beartype.beartype"):
    import lintra
import sys
sys.path.insert(0, sys.argv[1])
import jax
from helpers import CONTEXT, DIM, MODELS, PREDICTORS
for n in (CONTEXT, DIM + 1):
    problem = lintra.NoisyRegression(dim=DIM, context=n)
    stats, truth = lintra.sample_statistics(problem, jax.random.key(0), (2, 3))
    lintra.GramStatistics.from_data(*lintra.sample_data(problem, jax.random.key(0), (2,))[:2])
    for predictor in PREDICTORS.values():
        predictor.weights(stats)
    for model in MODELS.values():
        model.implicit(stats), model.matrices(), model.at(7) if hasattr(model, "at") else None
    MODELS["gd++-4-h2"].spectral_weights(stats)
    lintra.evaluate(PREDICTORS, problem, num_sequences=10, key=jax.random.key(1))
    lintra.profile({"a": MODELS["full-1-h1"]}, problem, [0.0, 1.0], num_sequences=10, key=jax.random.key(1))
    lintra.baseline("tuned-ridge", problem, key=jax.random.key(1))
lintra.closed_form.oracle_loss(problem)
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
