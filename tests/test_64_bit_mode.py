"""JAX's 64-bit mode: never changed behind an application's back, and no digit lost without a word."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lintra
from lintra.kernel.precision import in_64_bits
from lintra.statistics.gram import GramStatistics


def _run(code, **environment):
    """What a fresh process prints; warnings are errors."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env=inherited | environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


_DTYPE = "; lintra.models.Full, lintra.solve, lintra.zoo; import jax.numpy; print(jax.numpy.ones(1).dtype)"
_OFF, _ON = (f'jax.config.update("jax_enable_x64", {value})' for value in (False, True))


@pytest.mark.parametrize(
    ("order", "environment", "dtype"),
    [
        ("import lintra", {}, "float64"),
        ("from lintra.models import Full; import lintra", {}, "float64"),
        (f"import lintra; import jax; {_OFF}", {}, "float32"),
        ("import jax.numpy as jnp; x = jnp.ones(1); import lintra; assert x.dtype == 'float32'", {}, "float32"),
        (f"import jax; {_OFF}; import lintra", {}, "float32"),
        (f"import jax; {_ON}; import lintra", {}, "float64"),
        ("import lintra", {"JAX_ENABLE_X64": "0"}, "float32"),
    ],
)
def test_the_mode_is_the_applications_own_in_every_order_of_imports(order, environment, dtype):
    assert _run(order + _DTYPE, **environment) == f"{dtype}\n"


_BOTH_MODES = """
import jax
import numpy as np
import lintra
from lintra.baselines import TunedRidge

rng = np.random.default_rng(0)
x = rng.normal(size=(20, 24, 12))
y = np.einsum("bnd,bd->bn", x, rng.normal(size=(20, 12))) + rng.normal(size=(20, 24))
sizes = {"num_sequences": 4096, "key": jax.random.key(2)}


TunedRidge.tuned.__func__.__kwdefaults__["num_sequences"] = 8192


def numbers():
    problem = lintra.NoisyRegression(3, 9, "choice(0.1,3)", covariance=[1.0, 0.1, 2.0])
    names = ("const-ridge", "tuned-ridge", "bayes")
    measured = {name: lintra.baseline(name, problem, key=jax.random.key(1)) for name in names}
    measured["model"] = lintra.zoo.load("diag-3-uniform(0,5)").with_dim(3)
    losses = lintra.evaluate(measured, problem, **sizes)
    quiet = lintra.NoisyRegression(3, 9, "fixed(0.1)")
    trained = lintra.train(lintra.ModelSpec("gd++", 1, quiet), num_sequences=4096)
    return {
        "solve": lintra.solve(x, y).tolist(),
        "fit": lintra.LinearTransformerRegressor().fit(x[0], y[0]).coef_.tolist(),
        "evaluate": [losses.adjusted(name).mean for name in measured],
        "excess": lintra.excess(measured, problem, **sizes)["model"].mean,
        "profile": lintra.profile(measured, problem, [0.1], **sizes)[0].adjusted("bayes").mean,
        "layers": lintra.evaluate(measured["model"], problem, every_layer=True, **sizes).adjusted().mean,
        "train": [trained.loss.mean, np.asarray(trained.model.rates).tolist()],
        "omega": np.asarray(lintra.zoo.load("diag-3-uniform(0,5)").omega).tolist(),
        "matrices": lintra.zoo.load("gd++-3-uniform(0,5)").matrices()[0].tolist(),
        "implied noise": lintra.anatomy.implied_noise(measured["model"], "fixed(0.1)", [1.0], **sizes),
        "ablate": np.asarray(lintra.anatomy.ablate(measured["model"], 1, "xx").p).tolist(),
        "closed form": lintra.closed_form.oracle_loss(lintra.NoisyRegression(noise="fixed(0.1)")),
    }


jax.config.update("jax_enable_x64", False)
off = numbers()
assert not jax.config.jax_enable_x64
jax.config.update("jax_enable_x64", True)
on = numbers()
print([name for name in on if off[name] != on[name]])
"""


def test_what_is_measured_trained_and_fitted_has_64_bits_whatever_the_mode():
    assert _run(_BOTH_MODES) == "[]\n"


def test_solve_keeps_the_precision_of_its_data():
    with jax.enable_x64(False):
        x, y = np.random.default_rng(0).normal(size=(2, 24, 12)), np.ones((2, 24))
        assert lintra.solve(x, y).dtype == np.float64
        assert lintra.solve(x.astype(np.float32), y.astype(np.float32)).dtype == np.float32
        assert lintra.solve(x.astype(np.float32), y).dtype == np.float64


_LINE = r"jax\.config\.update\(\"jax_enable_x64\", True\)"


def _stats(dtype):
    with in_64_bits():
        return GramStatistics(jnp.eye(3, dtype=dtype), jnp.asarray(4))


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("x", lambda: GramStatistics.from_data(np.ones((4, 2)), np.ones(4, np.float32))),
        ("x", lambda: GramStatistics.from_data(_stats("float64").gram, np.ones(3, np.float32))),
        ("gram", lambda: GramStatistics.from_gram(np.eye(3), 4)),
        ("p", lambda: lintra.Full(np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), 4)),
        ("stats", lambda: lintra.Bayes("fixed(1)").weights(_stats("float64"))),
        ("stats", lambda: lintra.zoo.load("diag-3-uniform(0,5)").with_dim(2).weights(_stats("float64"))),
        ("query", lambda: lintra.Bayes("fixed(1)").predict(_stats("float32"), np.ones(2))),
    ],
)
def test_numbers_of_64_bits_are_rejected_where_32_would_be_computed(name, compute):
    with jax.enable_x64(False), pytest.raises(ValueError, match=rf"`{name}` holds 64-bit numbers.*{_LINE}"):
        compute()


def test_stages_of_training_are_rejected_without_64_bits():
    from lintra.training.loop import run_stages

    with jax.enable_x64(False), pytest.raises(ValueError, match=rf"Training needs JAX's 64-bit mode.*{_LINE}"):
        run_stages([])


def test_predictors_work_in_32_bits_where_the_statistics_have_32():
    problem = lintra.NoisyRegression(2, 6, "uniform(0,2)", covariance=np.asarray([1.0, 2.0], np.float32))
    with jax.enable_x64(False):
        stats, _ = lintra.sample_statistics(problem, (5,), key=jax.random.key(0))
        predictors = {name: lintra.baseline(name, problem, key=jax.random.key(1)) for name in lintra.BASELINES}
        predictors["model"] = lintra.zoo.load("diag-3-uniform(0,5)").with_dim(2)
        found = {name: predictor.weights(stats) for name, predictor in predictors.items()}
        oracle = lintra.oracle_weights(stats, 1.0)
    for weights in (*found.values(), oracle):
        assert weights.dtype == jnp.float32
        assert jnp.isfinite(weights).all()


def test_precisions_that_are_mixed_are_brought_together():
    half, whole = _stats("float32"), _stats("float64")
    assert half.merge(whole).gram.dtype == jnp.float64
    assert lintra.oracle_weights(half, np.ones(())).dtype == jnp.float32
    assert lintra.baseline("tuned-ridge", lintra.NoisyRegression(2, 6)).weights(half).dtype == jnp.float32
    mixed = lintra.Diagonal(np.ones((1, 1, 2), np.float32), np.ones((1, 1, 2)), 4, dim=2)
    assert mixed.omega.dtype == jnp.float64
    assert mixed.weights(half).dtype == jnp.float32
