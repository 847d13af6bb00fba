"""Many small regressions, ours beside what people use: how good, and how many a second."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import oracle_weights
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression.chunked import solve
from lintra.regression.regressor import LinearTransformerRegressor
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data

Weights = Callable[[np.ndarray, np.ndarray], np.ndarray]
Row = dict[str, Any]

_PENALTIES = np.logspace(-2, 3, 16)
_ONE_BY_ONE = 1000  # tasks for methods that take them one at a time
_RUNS = 6  # of methods that take all tasks at once


def adaptive_ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """AdaRR in NumPy, for all tasks at once: the noise level by least squares, then ridge regression."""
    xx, xy = np.swapaxes(x, 1, 2) @ x, np.einsum("bnd,bn->bd", x, y)
    least_squares = np.linalg.solve(xx, xy[..., None])[..., 0]
    left = np.sum((y - np.einsum("bnd,bd->bn", x, least_squares)) ** 2, axis=1) / (x.shape[1] - x.shape[2])
    return np.linalg.solve(xx + left[:, None, None] * np.eye(x.shape[2]), xy[..., None])[..., 0]


def synthetic(tasks: int = 100_000, noise: str = "uniform(0,5)", seed: int = 0) -> list[Row]:
    """The paper's problem with 20 examples of 10 inputs: adjusted loss, and the middle of five runs' speed."""
    problem = NoisyRegression(noise=noise)
    x, y, truth = (jax.tree.map(np.asarray, part) for part in sample_data(problem, jax.random.key(seed), (tasks,)))
    stats = GramStatistics.from_data(x, y)
    oracle = np.asarray(oracle_weights(stats, truth.noise_std))
    few = min(_ONE_BY_ONE, tasks)
    single = x.astype(np.float32), y.astype(np.float32)
    methods: dict[str, tuple[Weights, Any, Any]] = {
        "DIAG-7, 32 bits": (lambda x, y: solve(x, y, model=f"diag-7-{noise}"), *single),
        "FULL-7, 32 bits": (lambda x, y: solve(x, y, model=f"full-7-{noise}"), *single),
        "DIAG-7": (lambda x, y: solve(x, y, model=f"diag-7-{noise}"), x, y),
        "FULL-7": (lambda x, y: solve(x, y, model=f"full-7-{noise}"), x, y),
        "specialist, units unknown": (solve, x, y),
        "AdaRR, NumPy": (adaptive_ridge, x, y),
        "Bayes": (lambda x, y: np.asarray(Bayes(noise).weights(GramStatistics.from_data(x, y))), x, y),
    }
    for name, regressor in _others(fit_intercept=False).items():
        methods[name] = _one_by_one(regressor), x[:few], y[:few]
    rows = []
    for name, (weights, own_x, own_y) in methods.items():
        weights(own_x[:64], own_y[:64])  # compile
        runs = [_timed(weights, own_x, own_y) for _ in range(_RUNS if len(own_x) == tasks else 1)]
        found = runs[0][0]
        wall, used = np.median([run[1:] for run in runs[1:] or runs], axis=0)  # the first may compile
        losses = 0.5 * np.sum((found - oracle[: len(found)]) ** 2, axis=1)
        rows.append(
            {"method": name, "tasks": len(found)}
            | {"adjusted_loss": float(losses.mean()), "standard_error": float(losses.std() / len(losses) ** 0.5)}
            | {"tasks_per_second": len(found) / float(wall), "tasks_per_cpu_second": len(found) / float(used)}
        )
    return rows


def real(
    subsamples: int = 300, examples: int = 20, noise: Iterable[float] = (0.0, 1.0), seed: int = 0
) -> list[Row]:
    """Data that scikit-learn ships, as many small regressions: the squared error where no label was seen.

    Of every data set `examples` rows are drawn again and again, noise of so many standard deviations is added to
    their labels, and the prediction for all other rows is compared with labels without it. Errors are in units of
    the labels' variance, so that 1 is what predicting the mean would give. Inputs are standardised for all.
    """
    rows = []
    for name, (x, y) in _data_sets().items():
        for level in noise:
            errors = _errors(x, (y - y.mean()) / y.std(), examples, level, subsamples, np.random.default_rng(seed))
            rows += [
                {"data": name, "noise": level, "method": method, "subsamples": subsamples}
                | {"error": float(values.mean()), "standard_error": float(values.std() / subsamples**0.5)}
                for method, values in errors.items()
            ]
    return rows


def _errors(
    x: np.ndarray, y: np.ndarray, examples: int, noise: float, subsamples: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    regressors: dict[str, Any] = {
        "lintra": LinearTransformerRegressor(),
        "lintra, whitened": LinearTransformerRegressor(whiten=True),
    }
    others = _others(fit_intercept=True)
    regressors |= {name: make_pipeline(StandardScaler(), other) for name, other in others.items()}
    errors: dict[str, list[float]] = {name: [] for name in regressors}
    for _ in range(subsamples):
        order = rng.permutation(len(x))
        seen, other = order[:examples], order[examples:]
        labels = y[seen] + noise * rng.normal(size=examples)
        for name, regressor in regressors.items():
            predictions = _quietly(regressor, x[seen], labels).predict(x[other])
            errors[name].append(float(np.mean((predictions - y[other]) ** 2)))
    return {name: np.asarray(values) for name, values in errors.items()}


def _timed(weights: Weights, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The weights, and the seconds that passed and that the processor worked."""
    begun, used = time.perf_counter(), time.process_time()
    found = weights(x, y)
    return found, time.perf_counter() - begun, time.process_time() - used


def _others(fit_intercept: bool) -> dict[str, Any]:
    return {
        "RidgeCV": RidgeCV(_PENALTIES, fit_intercept=fit_intercept),
        "BayesianRidge": BayesianRidge(fit_intercept=fit_intercept),
        "ARDRegression": ARDRegression(fit_intercept=fit_intercept),
        "least squares": LinearRegression(fit_intercept=fit_intercept),
    }


def _one_by_one(regressor: Any) -> Weights:
    return lambda x, y: np.asarray([_quietly(regressor, *task).coef_ for task in zip(x, y, strict=True)])


def _quietly(regressor: Any, x: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return regressor.fit(x, y)


def _data_sets() -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
    """Disease progression from ten measurements, and two sets of which one measurement is told from the others."""
    diabetes: Any = datasets.load_diabetes()
    wine: Any = datasets.load_wine()
    cells: Any = datasets.load_breast_cancer()
    return {
        "diabetes": (diabetes.data, diabetes.target),
        "wine, alcohol": (wine.data[:, 1:], wine.data[:, 0]),
        "cells, mean smoothness": (np.delete(cells.data[:, :10], 4, axis=1), cells.data[:, 4]),
    }
