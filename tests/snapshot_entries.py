"""Entries of the snapshot: what is computed, each by a function that runs in an empty folder."""

import csv
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snapshot_inputs import write_foreign_models, write_regressions, write_small_zoo

COMPUTED = "computed_digest"
"""Key of digests that hold on one machine only."""

THEORY = (
    *("theorem-4.1", "lemma-4.3", "lemma-4.4", "eqs-8-10", "theorem-5.1", "lemma-a.2", "lemma-a.3", "section-5.2"),
    *("theorem-5.2", "section-5.3", "one-layer", "gd++-floor", "oracle"),
)
EXPORTED = ("gd++-3-uniform(0,5)", "diag-4-uniform(0,5)", "full-1-uniform(0,5)")
EXPLAINED = (
    "gd++-3-uniform(0,5)",
    "diag-4-uniform(0,5)",
    "full-3-choice(1,3)",
    *("random", "descent", "one-layer"),
)
TINY = ("--dim", 3, "--context", 16, "--noise", "choice(1,3)", "--sequences", 2000)
TRAINED = {
    "diag": ("--variant", "diag", "--layers", 2),
    "gd++": ("--variant", "gd++", "--layers", 2),
    "full": ("--variant", "full", "--layers", 2, "--steps", 300, "--seeds", 2),
    "paper": ("--variant", "full", "--layers", 2, "--recipe", "paper", "--steps", 20, "--seed", 1),
}

ENTRIES: dict[str, Callable[[], Any]] = {}


def entry(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function, which runs in an empty folder and returns what JSON can hold."""
    ENTRIES[function.__name__] = function
    return function


def run(*arguments: object) -> str:
    """Run a command in this process and return its standard output."""
    from typer.testing import CliRunner

    from lintra.cli import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    if result.exit_code:
        raise RuntimeError(
            f"{' '.join(map(str, arguments))} exits with {result.exit_code}: {result.stderr[-500:]}"
        )
    return result.stdout


def run_json(*arguments: object) -> Any:
    """Run a command with `--json` and return what it prints."""
    return json.loads(run(*arguments, "--json"))


@entry
def train() -> Any:
    """Three families and the paper's recipe: rows, files of the run folder, and weights."""
    found = {}
    for name, options in TRAINED.items():
        rows = run_json("train", *options, *TINY, "--out", name)
        metrics = [json.loads(line) for line in Path(name, "metrics.jsonl").read_text().splitlines()]
        read = {file: json.loads(Path(name, file).read_text()) for file in ("settings.json", "result.json")}
        found[name] = {"rows": rows, "metrics": metrics, **read, **model_file(Path(name, "model.safetensors"))}
    return found


@entry
def sweep() -> Any:
    """A sweep, the names in its store, the zoo published from it, and that zoo's cards."""
    rows = run_json("sweep", "tiny", "--layers", 1, "--noise", "choice(1,3)", "--workers", 1, "--store", "store")
    run("publish", "zoo.safetensors", "--grid", "tiny", "--store", "store", "--sequences", 500)
    files = {path.name: model_file(path) for path in sorted(Path("store").glob("*.safetensors"))}
    return {"rows": rows, "store": files, "zoo": run_json("zoo", "--zoo", "zoo.safetensors")}


@entry
def weights() -> Any:
    """Digests of P and Q of all published models and specialists."""
    from lintra import zoo

    specialists = zoo.published("specialists.safetensors")
    return {
        "zoo": {name: digest(*zoo.load(name).matrices()) for name in zoo.names()},
        "specialists": {name: digest(*specialists.load(name).matrices()) for name in specialists.cards},
    }


@entry
def zoo() -> Any:
    """Digests of all cards, and three cards."""
    cards = {card["name"]: card for card in run_json("zoo")}
    return {
        "digests": {name: digest(json.dumps(card, sort_keys=True)) for name, card in cards.items()},
        "cards": {name: cards[name] for name in EXPORTED},
    }


@entry
def commands() -> Any:
    """Names of all commands, arguments and options."""
    from lintra.cli.app import load_command
    from lintra.cli.commands import COMMANDS

    return {
        name: sorted(
            option
            for parameter in load_command(name).params
            for option in (*parameter.opts, *parameter.secondary_opts)
        )
        for name in sorted(COMMANDS)
    }


@entry
def baselines() -> Any:
    """Baselines at four priors, by the paper's protocol, where some are undefined, and as a table."""
    small = ("baselines", "--dim", 4, "--context", 9, "--sequences", 500)
    priors = ("uniform(0,5)", "choice(1,3)", "choice(1:0.2,3:0.8)", "fixed(2)")
    return {
        "priors": run_json(*small, *(part for prior in priors for part in ("--noise", prior)), "--tail"),
        "protocol": run_json(*small, "--noise", "choice(1,3)", "--method", "ols", "--repetitions", 2, "--seed", 3),
        "undefined": run_json("baselines", "--dim", 4, "--context", 3, "--noise", "fixed(1)", "--sequences", 100),
        "table": run(
            "baselines", "--noise", "uniform(0,5)", "--method", "const-ridge", "--sequences", 500
        ).splitlines(),
    }


@entry
def evaluate() -> Any:
    """Models layer by layer beside baselines, by the paper's protocol, and at another length."""
    one, two = "diag-4-uniform(0,5)", "full-3-choice(1,3)"
    methods = ("--method", "bayes", "--method", "ada-ridge")
    return {
        "layers": run_json("evaluate", one, two, "--every-layer", "--tail", *methods, "--sequences", 500),
        "protocol": run_json("evaluate", one, "--repetitions", 2, "--sequences", 500, "--seed", 2),
        "rescaled": run_json(
            "evaluate", one, "--context", 40, "--rescale", "--noise", "fixed(2)", "--sequences", 500
        ),
        "longer": run_json("evaluate", one, "--context", 40, "--sequences", 500),
    }


@entry
def explain() -> Any:
    """The accounts of three published models and of three foreign ones."""
    write_foreign_models()
    names = {name: f"{name}.safetensors" if Path(f"{name}.safetensors").exists() else name for name in EXPLAINED}
    return {name: run_json("explain", path, "--sequences", 512) for name, path in names.items()}


@entry
def export() -> Any:
    """Programs of three models in three forms, line by line."""
    forms = ("numpy", "pseudo-code", "latex")
    return {
        name: {form: run("export", name, "--format", form).splitlines() for form in forms} for name in EXPORTED
    }


@entry
def theory() -> Any:
    """The quick claims of the paper."""
    return run_json("theory", *THEORY)


@entry
def solve() -> Any:
    """Weights of regressions of several lengths in a table, and of one length in arrays."""
    write_regressions()
    found = {}
    for name, options in {
        "auto": ("tasks.csv",),
        "plain": ("tasks.csv", "--no-standardise", "--no-fit-intercept"),
        "model": ("arrays.npz", "--model", "diag-7-uniform(0,5)"),
    }.items():
        run("solve", *options, "--out", f"{name}.csv")
        found[name] = read_csv(Path(f"{name}.csv"))
    return found


@entry
def library() -> Any:
    """Weights of all baselines on fixed contexts, losses by noise level, and the regressor's attributes."""
    import jax
    import numpy as np

    import lintra
    from lintra.regression.regressor import LinearTransformerRegressor

    keys = jax.random.split(jax.random.key(0), 3)
    problem = lintra.NoisyRegression(dim=4, num_examples=9, noise="choice(1,3)")
    stats, _ = lintra.sample_statistics(problem, (3,), key=keys[0])
    predictors = {name: lintra.baseline(name, problem, key=keys[1]) for name in lintra.BASELINES}
    profile = lintra.profile(predictors, problem, [0.5, 3.0], num_sequences=256, key=keys[2])
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4))
    fitted = LinearTransformerRegressor().fit(x, x @ [1.0, -2.0, 0.0, 3.0] + 5 + rng.normal(size=30))
    return {
        "weights": {name: np.asarray(each.weights(stats)).tolist() for name, each in predictors.items()},
        "profile": [{name: comparison.adjusted(name).mean for name in predictors} for comparison in profile],
        "regressor": {
            name: np.asarray(getattr(fitted, name)).tolist() for name in ("coef_", "intercept_", "noise_")
        },
    }


@entry
def explore() -> Any:
    """Digests of what the explorer page is filled with."""
    run("explore", "--no-open", "--out", "page.html")
    data = json.loads(Path("page.html").read_text().partition('id="lintra-data">')[2].partition("</script>")[0])
    return {name: digest(json.dumps(part, sort_keys=True)) for name, part in data.items()}


@entry
def report() -> Any:
    """Table 1, the numbers of all figures, and all verdicts, of a zoo with the models that the statements need."""
    from lintra import zoo

    write_small_zoo(Path("zoo.safetensors"))
    names = zoo.read(Path("zoo.safetensors")).cards
    run("report", "--zoo", "zoo.safetensors", "--sequences", 200, "--out", "report")
    page = re.sub(r"<style>.*?</style>", "", Path("report/report.html").read_text(), flags=re.DOTALL)
    texts = [text.strip() for text in re.split(r"<[^>]*>", page) if text.strip()]
    varying = ("took ", "lintra 0.")  # how long it took, and the versions
    return {
        "models": list(names),
        "page": [text for text in texts if not text.startswith(varying)],
        "verdicts": re.findall(r'<li class="(\w*)"><strong>(.*?)</strong>', page),
        # Figure 2 has ten panels of 25 noise levels: every fifth row is enough.
        "tables": {
            path.name: read_csv(path, every=5 if path.name == "figure2.csv" else 1)
            for path in sorted(Path("report").glob("*.csv"))
        },
    }


def model_file(path: Path) -> dict[str, Any]:
    """Return the header of a model file, its weights P and Q, and their digest."""
    import lintra

    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header["__metadata__"]["checksum"] = header["__metadata__"].pop("sha256")  # it covers the version
    header["__metadata__"]["card"] = json.loads(header["__metadata__"]["card"])
    matrices = lintra.load(path).matrices()
    return {"header": header, COMPUTED: digest(*matrices), "P": matrices[0].tolist(), "Q": matrices[1].tolist()}


def digest(*parts: Any) -> str:
    """Return a digest of texts, or of the bytes of arrays."""
    joined = hashlib.sha256()
    for part in parts:
        joined.update(part.encode() if isinstance(part, str) else part.tobytes())
    return joined.hexdigest()[:32]


def read_csv(path: Path, every: int = 1) -> list[list[Any]]:
    """Return the header and every so many rows of a table, with numbers where cells are such."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return [header, *([_number(cell) for cell in row] for row in rows[::every])]


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
