"""The page's numbers are Python's, to 1e-10 of their scale."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from lintra import GramStatistics, zoo
from lintra.anatomy.ablation import ablate
from lintra.anatomy.structure import omegas
from lintra.baselines import AdaptiveRidge, Bayes, ConstantRidge, LeastSquares, TunedRidge, oracle_weights
from lintra.explorer.curves import page_models, read_curves
from lintra.explorer.page import data
from lintra.models import Rescaled
from lintra.problem.noise import parse_noise
from page_visit import ROOT

CASES = 200
TOLERANCE = 1e-10
DIM = 10


def published_curves():
    return read_curves(ROOT / "src/lintra/data/zoo.safetensors")


def draw_context(rng, num_examples, noise_std):
    x, w = rng.normal(size=(num_examples, DIM)), rng.normal(size=DIM)
    stats = GramStatistics.from_data(x, x @ w + noise_std * rng.normal(size=num_examples))
    return stats, np.asarray(stats.gram).ravel().tolist()


def draw_noise_std(rng, noise):
    nodes, weights = parse_noise(noise).quadrature()
    return float(rng.choice(nodes, p=weights / weights.sum()))


def distance(page, python):
    page, python = np.asarray(page, float), np.asarray(python)
    return np.abs(page - python).max() / max(1.0, np.abs(python).max())


def test_weights_after_every_layer_of_200_random_cases(visit):
    rng = np.random.default_rng(0)
    names = page_models(zoo.published())
    cases = []
    for name in rng.choice(names, CASES):
        num_examples = int(rng.choice([18, 20, 20, 22]))
        stats, gram = draw_context(rng, num_examples, draw_noise_std(rng, zoo.card(name)["noise"]))
        cases.append((str(name), gram, num_examples, stats))
    given = [case[:3] for case in cases]
    found = visit().page.evaluate(
        "cases => cases.map(([name, gram, n]) => lintra.layerWeights(name, gram, n))", given
    )
    apart = []
    for (name, _, _, stats), weights in zip(cases, found, strict=True):
        apart.append(distance(weights, zoo.load(name).layer_weights(stats)))
    print(f"\nmodels: {CASES} cases, at most {max(apart):.1e} apart")
    assert max(apart) < TOLERANCE


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


@pytest.mark.parametrize("name", ["gd++-4-uniform(0,5)", "diag-4-uniform(0,5)", "full-4-choice(1,3)"])
def test_an_omega_that_is_switched_off_is_the_one_that_the_ablation_removes(visit, name):
    stats, gram = draw_context(np.random.default_rng(1), 20, 1.5)
    page = visit().page
    for omega in ("xx", "xy", "yx", "yy"):
        ablated = ablate(zoo.load(name), 2, omega)
        found = page.evaluate(
            "([name, gram, off]) => lintra.layerWeights(name, gram, 20, [off])", [name, gram, f"2{omega}"]
        )
        assert distance(found, ablated.layer_weights(stats)) < TOLERANCE


@pytest.mark.parametrize("name", ["gd++-4-uniform(0,5)", "diag-7-uniform(0,5)-h2", "full-7-uniform(0,5)"])
def test_omegas(visit, name):
    found = visit().page.evaluate("name => lintra.omegas(name)", name)
    page = [[row[omega] for omega in ("xx", "xy", "yx", "yy")] for row in found]
    assert distance(page, omegas(zoo.load(name))) < TOLERANCE


def test_a_rescaled_view_is_the_rescaled_model(visit):
    rescaled = Rescaled(zoo.load("full-4-uniform(0,5)"))
    stats, _ = draw_context(np.random.default_rng(2), 50, 1.0)
    seen = rescaled.rescale(stats)
    found = visit().page.evaluate(
        "gram => lintra.layerWeights('full-4-uniform(0,5)', gram, 50)", np.asarray(seen.gram).ravel().tolist()
    )
    assert distance(found, rescaled.layer_weights(stats)) < TOLERANCE


@pytest.mark.parametrize("name", ["full-7-uniform(0,5)", "diag-5-choice(1,3)"])
def test_what_the_page_measures_is_what_python_measured(visit, name):
    one = visit(f"#model={name}")
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
