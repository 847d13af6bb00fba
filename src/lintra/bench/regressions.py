"""Many small regressions by lintra and by other libraries: losses, and regressions per second."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import oracle_weights
from lintra.display import Row
from lintra.evaluation.blocks import fold_in_words
from lintra.evaluation.estimate import Estimate
from lintra.problem.noise import Uniform
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression.chunked import solve
from lintra.regression.regressor import LinearTransformerRegressor
from lintra.regression.soundness import UnsoundWarning
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data

Method = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Weights from inputs (tasks, n, d) and labels (tasks, n)."""

_PENALTIES = np.logspace(-2, 3, 16)
_NUM_ONE_BY_ONE = 1000  # tasks for methods that take them one at a time
_NUM_RUNS = 6  # of methods that take all tasks at once
_LENGTHS = (4, 8, 16, 32, 64, 128, 256, 1024)  # specialists were trained for all but the last one
_LENGTHS_DIM = 8  # inputs of a task with each of these lengths


def adaptive_ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """AdaRR in NumPy, for all tasks at once: the noise variance by least squares, then ridge regression."""
    xx, xy = np.swapaxes(x, 1, 2) @ x, np.einsum("bnd,bn->bd", x, y)
    least_squares = np.linalg.solve(xx, xy[..., None])[..., 0]
    noise_var = np.sum((y - np.einsum("bnd,bd->bn", x, least_squares)) ** 2, axis=1) / (x.shape[1] - x.shape[2])
    return np.linalg.solve(xx + noise_var[:, None, None] * np.eye(x.shape[2]), xy[..., None])[..., 0]


def measure_synthetic(num_tasks: int = 100_000, noise: str = "uniform(0,5)", *, key: KeyLike = 0) -> list[Row]:
    """Measure adjusted losses and speeds on the paper's problem with 20 examples of 10 inputs.

    Args:
        num_tasks: Number of tasks for methods that take all at once; others get 1,000 of them. Default 100,000.
        noise: The noise prior, of which DIAG and FULL with seven layers are published. Default uniform(0,5).
        key: Randomness of the tasks. Default 0.

    Returns:
        One row for each method. Speeds are medians over five runs.
    """
    problem = NoisyRegression(noise=noise)
    x, y, truth = (
        jax.tree.map(np.asarray, part) for part in sample_data(problem, (num_tasks,), key=random_key(key))
    )
    oracle = np.asarray(oracle_weights(GramStatistics.from_data(x, y), truth.noise_std))
    num_first = min(_NUM_ONE_BY_ONE, num_tasks)
    single = x.astype(np.float32), y.astype(np.float32)
    methods: dict[str, tuple[Method, Any, Any]] = {
        "DIAG-7, 32 bits": (lambda x, y: solve(x, y, model=f"diag-7-{noise}"), *single),
        "FULL-7, 32 bits": (lambda x, y: solve(x, y, model=f"full-7-{noise}"), *single),
        "DIAG-7": (lambda x, y: solve(x, y, model=f"diag-7-{noise}"), x, y),
        "FULL-7": (lambda x, y: solve(x, y, model=f"full-7-{noise}"), x, y),
        "specialist, units unknown": (solve, x, y),
        "AdaRR, NumPy": (adaptive_ridge, x, y),
        "Bayes": (lambda x, y: np.asarray(Bayes(noise).weights(GramStatistics.from_data(x, y))), x, y),
    }
    for name, regressor in _other_regressors(fit_intercept=False).items():
        methods[name] = _one_by_one(regressor), x[:num_first], y[:num_first]
    return [{"method": name} | _measure_method(*method, oracle) for name, method in methods.items()]


def _measure_method(method: Method, x: np.ndarray, y: np.ndarray, oracle: np.ndarray) -> Row:
    method(x[:64], y[:64])  # compile
    runs = [_timed(method, x, y) for _ in range(_NUM_RUNS if len(x) == len(oracle) else 1)]
    weights = runs[0][0]
    wall, cpu = np.median([run[1:] for run in runs[1:] or runs], axis=0)  # the first may compile
    losses = 0.5 * np.sum((weights - oracle[: len(x)]) ** 2, axis=1)
    return (
        {"tasks": len(x)}
        | Estimate.from_values(losses).as_adjusted_loss()
        | {"tasks_per_second": len(x) / float(wall), "tasks_per_cpu_second": len(x) / float(cpu)}
    )


def measure_lengths(num_tasks: int = 400, lengths: Sequence[int] = _LENGTHS, *, key: KeyLike = 0) -> list[Row]:
    """Measure adjusted losses of specialists and of scikit-learn against the number of examples.

    Tasks have 8 standard normal inputs and noise from uniform(0,2√8), and no intercept.

    Args:
        num_tasks: Number of tasks of each length. Default 400.
        lengths: Numbers of examples. Default 4 to 1,024.
        key: Randomness of the tasks. Default 0.

    Returns:
        One row for each length and method.
    """
    rows = []
    for num_examples in lengths:
        problem = NoisyRegression(_LENGTHS_DIM, num_examples, Uniform(0.0, 2 * _LENGTHS_DIM**0.5))
        own_key = fold_in_words(random_key(key), "bench", "lengths", str(num_examples))
        x, y, truth = (jax.tree.map(np.asarray, part) for part in sample_data(problem, (num_tasks,), key=own_key))
        oracle = np.asarray(oracle_weights(GramStatistics.from_data(x, y), truth.noise_std))
        others = _other_regressors(fit_intercept=False)
        methods: dict[str, Method] = {"specialists": _solve_quietly}
        methods |= {name: _one_by_one(others[name]) for name in ("BayesianRidge", "RidgeCV", "least squares")}
        for name, method in methods.items():
            losses = 0.5 * np.sum((method(x, y) - oracle) ** 2, axis=1)
            size = {"examples": num_examples, "method": name, "tasks": num_tasks}
            rows.append(size | Estimate.from_values(losses).as_adjusted_loss())
    return rows


def _solve_quietly(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Solve without warnings of lengths that no specialist was trained for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(x, y)


def measure_real(
    num_subsamples: int = 300,
    num_examples: int = 20,
    noise_stds: Iterable[float] = (0.0, 1.0),
    *,
    key: KeyLike = 0,
) -> list[Row]:
    """Measure squared errors on data that scikit-learn ships, as many small regressions.

    From each data set rows are drawn repeatedly, noise is added to their labels, and the predictions for all other
    rows are compared with labels without noise. Inputs are standardised for all methods.

    Args:
        num_subsamples: Number of draws from each data set. Default 300.
        num_examples: Number of rows in each draw. Default 20.
        noise_stds: Standard deviations of the noise, in those of the labels. Default 0 and 1.
        key: Randomness of the draws. Default 0.

    Returns:
        One row for each data set, noise and method. Errors are in units of the labels' variance, so predicting the
        mean has error 1. `fallbacks` is the number of draws in which the Bayes predictor answered for the model.
    """
    rows = []
    for name, (x, y) in _data_sets().items():
        for noise_std in noise_stds:
            labels, rng = (y - y.mean()) / y.std(), _generator(key)
            errors, fallbacks = _errors(x, labels, num_examples, noise_std, num_subsamples, rng)
            for method, values in errors.items():
                estimate = Estimate.from_values(values)
                rows.append(
                    {"data": name, "noise": noise_std, "method": method, "subsamples": num_subsamples}
                    | {"error": estimate.mean, "standard_error": estimate.standard_error}
                    | {"fallbacks": fallbacks.get(method)}
                )
    return rows


def _generator(key: KeyLike) -> np.random.Generator:
    """Return NumPy's generator for a key. That of key n is `default_rng(n)`."""
    words = np.asarray(jax.random.key_data(random_key(key))).tolist()
    return np.random.default_rng(sum(word << 32 * position for position, word in enumerate(reversed(words))))


def _errors(
    x: np.ndarray,
    y: np.ndarray,
    num_examples: int,
    noise_std: float,
    num_subsamples: int,
    rng: np.random.Generator,
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Return the errors of every draw, and the number of fallbacks of lintra's regressors."""
    regressors: dict[str, Any] = {
        "lintra": LinearTransformerRegressor(),
        "lintra, whitened": LinearTransformerRegressor(whiten=True),
    }
    fallbacks = dict.fromkeys(regressors, 0)
    others = _other_regressors(fit_intercept=True)
    regressors |= {name: make_pipeline(StandardScaler(), other) for name, other in others.items()}
    errors: dict[str, list[float]] = {name: [] for name in regressors}
    for _ in range(num_subsamples):
        order = rng.permutation(len(x))
        train, test = order[:num_examples], order[num_examples:]
        labels = y[train] + noise_std * rng.normal(size=num_examples)
        for name, regressor in regressors.items():
            predictions = _fit(regressor, x[train], labels).predict(x[test])
            errors[name].append(float(np.mean((predictions - y[test]) ** 2)))
            if name in fallbacks:
                fallbacks[name] += bool(regressor.fallback_)
    return {name: np.asarray(values) for name, values in errors.items()}, fallbacks


def _timed(method: Method, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the weights, and the seconds of wall time and CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    weights = method(x, y)
    return weights, time.perf_counter() - wall, time.process_time() - cpu


def _other_regressors(fit_intercept: bool) -> Row:
    return {
        "RidgeCV": RidgeCV(_PENALTIES, fit_intercept=fit_intercept),
        "BayesianRidge": BayesianRidge(fit_intercept=fit_intercept),
        "ARDRegression": ARDRegression(fit_intercept=fit_intercept),
        "least squares": LinearRegression(fit_intercept=fit_intercept),
    }


def _one_by_one(regressor: Any) -> Method:
    return lambda x, y: np.asarray([_fit(regressor, *task).coef_ for task in zip(x, y, strict=True)])


def _fit(regressor: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """Fit a regressor without warnings of convergence, nor of fallbacks, which are counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UnsoundWarning)
        return regressor.fit(x, y)


def _data_sets() -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
    """Return disease progression with ten inputs, and two sets with one measurement predicted from the others."""
    diabetes: Any = datasets.load_diabetes()
    wine: Any = datasets.load_wine()
    cells: Any = datasets.load_breast_cancer()
    return {
        "diabetes": (diabetes.data, diabetes.target),
        "wine, alcohol": (wine.data[:, 1:], wine.data[:, 0]),
        "cells, mean smoothness": (np.delete(cells.data[:, :10], 4, axis=1), cells.data[:, 4]),
    }
