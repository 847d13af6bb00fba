"""The page's numbers are Python's, to 1e-10 of their scale."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import lintra
from lintra import GramStatistics, zoo
from lintra.anatomy.ablation import ablate
from lintra.anatomy.structure import omegas
from lintra.baselines import AdaptiveRidge, Bayes, ConstantRidge, LeastSquares, TunedRidge, oracle_weights
from lintra.explorer.curves import page_models, read_curves
from lintra.explorer.page import data
from lintra.models import Rescaled
from lintra.models.damping import Damping
from lintra.problem.noise import parse_noise
from lintra.zoo.model_file import read_metadata
from page_visit import ROOT

CASES = 200
TOLERANCE = 1e-10
DIM = 10
UNUSUAL = {"inputs × 3": (slice(None), 3), "one example × 10": (0, 10)}  # which examples, how much longer


def published_curves():
    return read_curves(ROOT / "src/lintra/data/zoo.safetensors")


def draw_context(rng, num_examples, noise_std, unusual=None):
    x, w = rng.normal(size=(num_examples, DIM)), rng.normal(size=DIM)
    if unusual is not None:
        rows, factor = UNUSUAL[unusual]
        x[rows] *= factor
    stats = GramStatistics.from_data(x, x @ w + noise_std * rng.normal(size=num_examples))
    return stats, np.asarray(stats.gram).ravel().tolist()


def draw_noise_std(rng, noise):
    nodes, weights = parse_noise(noise).quadrature()
    return float(rng.choice(nodes, p=weights / weights.sum()))


def distance(page, python):
    page, python = np.asarray(page, float), np.asarray(python)
    return np.abs(page - python).max() / max(1.0, np.abs(python).max())


@pytest.mark.parametrize(
    ("damped", "unusual"), [(False, None), (True, None), (True, "inputs × 3"), (True, "one example × 10")]
)
def test_weights_after_every_layer_of_200_random_cases(visit, damped, unusual):
    rng = np.random.default_rng(0)
    names = page_models(zoo.published())
    cases = []
    for name in rng.choice(names, CASES):
        num_examples = int(rng.choice([18, 20, 20, 22]))
        noise_std = draw_noise_std(rng, zoo.card(name)["noise"])
        stats, gram = draw_context(rng, num_examples, noise_std, unusual)
        cases.append((str(name), gram, num_examples, stats))
    given = [case[:3] for case in cases]
    found = visit().page.evaluate(
        "([cases, damped]) => cases.map(([name, gram, n]) => lintra.run(name, gram, n, damped))", [given, damped]
    )
    apart, num_damped = [], 0
    for (name, _, _, stats), run in zip(cases, found, strict=True):
        model = zoo.load(name).with_damping() if damped else zoo.load(name)
        divisors = [run["divisors"]["context"], *run["divisors"]["layers"]]
        apart.append(distance(run["weights"], model.layer_weights(stats)))
        apart.append(distance(divisors, expected_divisors(model, np.asarray(stats.gram))))
        python = model.divisors(stats)
        apart.append(distance(divisors, [float(python.scaling), *np.asarray(python.layers)]))
        num_damped += max(divisors) > 1
    kind = f"{'damped' if damped else 'as printed'}, {unusual or 'ordinary'}"
    print(f"\nmodels {kind}: {CASES} cases, {num_damped} of them damped, at most {max(apart):.1e} apart")
    assert max(apart) < TOLERANCE
    assert num_damped == CASES if unusual else num_damped < CASES / 10


def expected_divisors(model, gram):
    """The divisors of the context and of each layer, from the rule as `docs/damping.md` gives it."""
    if model.damping is None:
        return np.ones(model.num_layers + 1)
    rho, kappa = np.asarray(model.damping.rho), np.asarray(model.damping.kappa)
    norm_ratio = schatten_norm(gram) / rho[0]
    divisors = [max(1, np.trace(gram[:-1, :-1]) / float(model.damping.trace), min(norm_ratio, 1.2))]
    # The Gram matrix before layer l is C G Cᵀ, with C of the layers before it, which scale the context themselves.
    maps = [np.eye(len(gram)), *np.asarray(model.layer_maps(gram / model.num_examples))]
    gram = gram / divisors[0]
    for layer in range(model.num_layers):
        before = maps[layer] @ gram @ maps[layer].T
        divisors.append(max(1, schatten_norm(before) / rho[layer], before[-1, -1] / kappa[layer]))
    return np.asarray(divisors)


def schatten_norm(gram):
    return np.linalg.norm(np.linalg.eigvalsh(gram[:-1, :-1]), ord=4)


@pytest.mark.parametrize(
    ("norm_ratio", "context", "first"), [(0.99, 1, 1), (1.1, 1.1, 1), (1.19, 1.19, 1), (1.5, 1.2, 1.25)]
)
@pytest.mark.parametrize("name", ["gd++-4-uniform(0,5)", "diag-7-uniform(0,5)-h2", "full-7-uniform(0,5)"])
def test_a_context_just_above_the_first_threshold_is_scaled_and_not_damped(
    visit, name, norm_ratio, context, first
):
    model = zoo.load(name).with_damping()
    assert model.damping is not None
    drawn, _ = draw_context(np.random.default_rng(4), 20, 0.0, "one example × 10")
    gram = np.asarray(drawn.gram)
    gram = gram * (norm_ratio * float(model.damping.rho[0]) / schatten_norm(gram))
    assert np.trace(gram[:-1, :-1]) < float(model.damping.trace)  # the norm decides
    run = visit().page.evaluate(
        "([name, gram]) => lintra.run(name, gram, 20, true)", [name, gram.ravel().tolist()]
    )
    assert distance([run["divisors"]["context"], run["divisors"]["layers"][0]], [context, first]) < TOLERANCE
    stats = GramStatistics(jnp.asarray(gram), jnp.asarray(20))
    assert distance(run["weights"], model.layer_weights(stats)) < TOLERANCE
    python = model.divisors(stats)
    page = [run["divisors"]["context"], *run["divisors"]["layers"]]
    assert distance(page, [float(python.scaling), *np.asarray(python.layers)]) < TOLERANCE


@pytest.mark.parametrize("num_examples", [6, 10, 20, 60])
def test_baselines_and_bayes(visit, num_examples):
    rng = np.random.default_rng(num_examples)
    curves = data(zoo.published(), published_curves())["curves"]
    cases, expected = [], []
    for noise in curves:
        noise_std = draw_noise_std(rng, noise)
        stats, gram = draw_context(rng, num_examples, noise_std)
        prior = parse_noise(noise)
        tuned = curves[noise]["tuned"]
        methods = {
            "ols": LeastSquares(),
            "const-ridge": ConstantRidge(prior.second_moment),
            "ada-ridge": AdaptiveRidge(),
            "tuned-ridge": TunedRidge(*(jnp.asarray(tuned[name]) for name in ("multiplier", "ceiling"))),
            "bayes": Bayes(prior),
        }
        if num_examples <= DIM:  # without a residual AdaRR is undefined; Bayes reaches down to rounding, see below
            methods = {name: methods[name] for name in ("ols", "const-ridge")}
        for name, method in methods.items():
            cases.append([name, noise, gram, num_examples])
            expected.append(method.weights(stats))
        cases.append(["oracle", noise_std, gram, num_examples])
        expected.append(oracle_weights(stats, noise_std))
    found = visit().page.evaluate(
        """cases => cases.map(([name, noise, gram, n]) =>
           name === "oracle" ? lintra.oracle(noise, gram, n) : lintra.baseline(name, noise, gram, n))""",
        cases,
    )
    apart = {}
    for (name, *_), page, python in zip(cases, found, expected, strict=True):
        apart[name] = max(apart.get(name, 0.0), distance(page, python))
    print(f"\nbaselines, n = {num_examples}: " + ", ".join(f"{name} {gap:.1e}" for name, gap in apart.items()))
    assert max(apart.values()) < TOLERANCE


@pytest.mark.parametrize("noise", ["choice(1,3)", "uniform(1,4)", "fixed(2)"])
def test_bayes_with_fewer_examples_than_inputs(visit, noise):
    stats, gram = draw_context(np.random.default_rng(3), 6, 2.0)
    found = visit().page.evaluate("([noise, gram]) => lintra.baseline('bayes', noise, gram, 6)", [noise, gram])
    assert distance(found, Bayes(noise).weights(stats)) < TOLERANCE


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("name", ["gd++-4-uniform(0,5)", "diag-4-uniform(0,5)", "full-4-choice(1,3)"])
def test_an_omega_that_is_switched_off_is_the_one_that_the_ablation_removes(visit, name, damped):
    stats, gram = draw_context(np.random.default_rng(1), 20, 1.5, "one example × 10" if damped else None)
    page = visit().page
    for omega in ("xx", "xy", "yx", "yy"):
        ablated = ablate(zoo.load(name), 2, omega)
        if damped:
            ablated = ablated.with_damping(zoo.load(name).stored_damping)
        found = page.evaluate(
            "([name, gram, damped, off]) => lintra.run(name, gram, 20, damped, [off]).weights",
            [name, gram, damped, f"2{omega}"],
        )
        assert distance(found, ablated.layer_weights(stats)) < TOLERANCE


@pytest.mark.parametrize("name", ["gd++-4-uniform(0,5)", "diag-7-uniform(0,5)-h2", "full-7-uniform(0,5)"])
def test_omegas(visit, name):
    found = visit().page.evaluate("name => lintra.omegas(name)", name)
    page = [[row[omega] for omega in ("xx", "xy", "yx", "yy")] for row in found]
    assert distance(page, omegas(zoo.load(name))) < TOLERANCE


@pytest.mark.parametrize("damped", [False, True])
def test_a_rescaled_view_is_the_rescaled_model(visit, damped):
    model = zoo.load("full-4-uniform(0,5)")
    rescaled = Rescaled(model.with_damping() if damped else model)
    stats, _ = draw_context(np.random.default_rng(2), 50, 1.0, "inputs × 3" if damped else None)
    seen = rescaled.rescale(stats)
    found = visit().page.evaluate(
        "([gram, damped]) => lintra.run('full-4-uniform(0,5)', gram, 50, damped).weights",
        [np.asarray(seen.gram).ravel().tolist(), damped],
    )
    assert distance(found, rescaled.layer_weights(stats)) < TOLERANCE


def assert_shown(one, model, num_examples):
    """The page shows this model, as Python runs it on the page's context."""
    shown = one.page.evaluate("lintra.shown()")
    gram = jnp.asarray(shown["gram"]).reshape(model.dim + 1, model.dim + 1)
    expected = model.layer_weights(GramStatistics(gram, jnp.asarray(num_examples)))
    assert distance(shown["weights"], expected) < TOLERANCE


@pytest.mark.parametrize("name", ["gd++-7-uniform(0,5)", "diag-12-uniform(0,5)", "full-7-uniform(0,5)"])
def test_the_switch_of_damping_shows_the_model_damped_and_as_printed(visit, name):
    model = zoo.load(name)
    one = visit(f"#model={name}&n=60")
    assert_shown(one, model.with_damping(), 60)
    one.page.uncheck("#damped")
    assert_shown(one, model, 60)


@pytest.mark.parametrize("active", [True, False])  # as its author last used the model
@pytest.mark.parametrize("trace", [50.0, np.inf])
@pytest.mark.parametrize("kappa", [[300.0, 10.0], [np.inf, 10.0], [np.inf, np.inf]])
def test_a_file_is_shown_with_its_thresholds(visit, tmp_path, kappa, trace, active):
    model = zoo.load("diag-2-uniform(0,5)").store_damping(None)
    damped = model.with_damping(Damping(np.asarray([30.0, 5.0]), np.asarray(kappa), trace))
    written = damped if active else damped.without_damping()
    lintra.save(written, tmp_path / "mine.safetensors", noise="uniform(0,5)")
    one = visit("#n=40")
    one.page.set_input_files("#file", tmp_path / "mine.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.endsWith('with damping.')")
    assert_shown(one, damped, 40)
    one.page.uncheck("#damped")
    assert_shown(one, model, 40)


def test_thresholds_of_null_damp_nothing(visit, tmp_path):
    model = zoo.load("full-3-uniform(0,5)").store_damping(None)
    endless = model.with_damping(Damping(np.full(3, np.inf)))
    lintra.save(endless, tmp_path / "mine.safetensors", noise="uniform(0,5)")
    record = json.loads(read_metadata(tmp_path / "mine.safetensors")["damping"])
    assert (record["rho"], record["trace"]) == ([None] * 3, None)
    one = visit("#n=100")
    one.page.set_input_files("#file", tmp_path / "mine.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.endsWith('with damping.')")
    assert_shown(one, model, 100)
    assert one.text("#damping") == "Not damped: inside the range of training."


@pytest.mark.parametrize(
    ("name", "damped"), [("full-7-uniform(0,5)", 0), ("full-7-uniform(0,5)", 1), ("diag-5-choice(1,3)", 0)]
)
def test_what_the_page_measures_is_what_python_measured(visit, name, damped):
    # Curves are of models as printed; on contexts of training damping changes little.
    one = visit(f"#model={name}&damped={damped}")
    one.wait_until_measured()
    live = one.page.evaluate("lintra.profile()")
    kept = published_curves()[zoo.card(name)["noise"]]
    assert live["levels"] == kept["levels"]
    shipped = kept["models"][name]
    inside = [i for i, noise_std in enumerate(kept["levels"]) if noise_std <= 5]
    for i in inside:
        error = np.hypot(live["error"][i], shipped["error"][i])
        assert abs(live["loss"][i] - shipped["loss"][i]) < 6 * error, json.dumps(
            [kept["levels"][i], live["loss"][i]]
        )
