"""A trained algorithm as a scikit-learn regressor: `fit` is a forward pass, `predict` a dot product.

Other people's data is not standard normal. So inputs are centred and divided by their standard deviations, labels
are centred, and the weights are brought back. Inputs that are more correlated than chance would make them are
shrunk until the largest eigenvalue of their covariance is one that the model has seen in training.
"""

import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,  # pyright: ignore[reportPrivateImportUsage]
    check_is_fitted,
    validate_data,
)

from lintra import specialists
from lintra.anatomy import believed_noise
from lintra.frames import Frame
from lintra.models import AbstractModel
from lintra.solver import Solver, UnsoundWarning, is_auto, solver
from lintra.statistics import GramStatistics


class LinearTransformerRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear regression by a linear transformer that reads the training set as its context.

    Assumed is a linear function with weights of like size on standardised inputs, and normal noise of one unknown
    level: the setting in which the transformer was trained. Nothing is tuned on the data, and nothing is written
    unless `specialise` asks for it.
    A context on which the transformer explodes is answered by the Bayes predictor of its noise prior, with a
    warning.

    Arguments:
        model: `auto` for the nearest of the published specialists, a published name such as `diag-7-uniform(0,5)`,
            a model file, or a model. What is not a specialist is shown labels scaled to the variance that its
            training had.
        fit_intercept: Whether to centre inputs and labels.
        whiten: Whether to turn and scale inputs until they are uncorrelated, which assumes that every principal
            component matters as much as any other.
        specialise: Whether to train a specialist for exactly this number of inputs and examples first, which
            takes seconds to minutes; it is kept in the user's cache. Only with `model="auto"`.
        verbose: Whether to say how far such a training is.

    Attributes:
        coef_: Weights, of shape (features,) or (targets, features).
        intercept_: The constant, or one a target.
        coef_path_: Weights after every layer, with a leading axis (layers,).
        noise_: The noise level that the weights act on: the ridge regression nearest to them takes so much of the
            labels' standard deviation for noise.
        fallback_: Whether the Bayes predictor answered, for every target.
        n_features_in_: Number of features.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 4))
    >>> y = X @ [1.0, -2.0, 0.0, 3.0] + 5.0 + 0.1 * rng.normal(size=30)
    >>> regressor = LinearTransformerRegressor().fit(X, y)
    >>> np.abs(regressor.coef_ - [1.0, -2.0, 0.0, 3.0]).max() < 0.2
    np.True_
    """

    def __init__(
        self,
        model: str | Path | AbstractModel = "auto",
        *,
        fit_intercept: bool = True,
        whiten: bool = False,
        specialise: bool = False,
        verbose: bool = False,
    ):
        self.model = model
        self.fit_intercept = fit_intercept
        self.whiten = whiten
        self.specialise = specialise
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearTransformerRegressor":
        """Read the context.

        Arguments:
            X: Inputs of shape (samples, features).
            y: Labels of shape (samples,) or (samples, targets).
            sample_weight: How often each example counts: a weight of two is the same as the example twice. Their
                sum is the number of examples, so weights that sum to one are read as a single example.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        total = weight.sum()
        if not 1e-100 < total < 2**53:
            raise ValueError(f"`sample_weight` must have a sum above zero and below 2**53, got {total:g}.")
        frame = Frame.of(X, y.reshape(len(y), -1), weight, self.fit_intercept, self.whiten)
        stats = frame.statistics()
        dim, count = stats.dim, int(stats.count[0])
        chosen = self._solver(dim, count)
        far = specialists.outside(dim, count, count) if is_auto(self.model) and not self.specialise else ""
        if far:
            warnings.warn(far, UnsoundWarning, stacklevel=2)
        stats, shrinkage = _shrunk(stats)
        unit = _unit(chosen, stats)
        stats = stats.in_unit(unit)
        weights, sound = (np.asarray(result) for result in chosen.weights(stats))
        path = np.asarray(chosen.predictor.layer_weights(stats))
        if not sound.all():
            safe = np.asarray(chosen.fallback(stats))
            weights = np.where(sound[:, None], weights, safe)
            path = np.where(sound[:, None, None], path, safe[:, None])
            warnings.warn(
                f"On {(~sound).sum()} of {len(sound)} targets the model gives weights that fit worse than zero; "
                "the Bayes predictor answered there.",
                UnsoundWarning,
                stacklevel=2,
            )
        back = np.asarray(unit)[:, None] * shrinkage
        self.coef_ = frame.back(weights * back)
        self.coef_path_ = frame.back(np.moveaxis(path, 1, 0) * back)
        self.intercept_ = frame.intercept(self.coef_)
        self.noise_ = _noise(weights, stats) * np.asarray(unit) * frame.label_scale
        self.fallback_ = ~sound
        if y.ndim == 1:
            self.coef_, self.coef_path_ = self.coef_[0], self.coef_path_[:, 0]
            self.intercept_, self.noise_ = float(self.intercept_[0]), float(self.noise_[0])
            self.fallback_ = bool(self.fallback_[0])
        return self

    def predict(self, X: Any) -> Float[np.ndarray, "samples ..."]:
        """`X coef_ᵀ + intercept_`, every row by itself."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        coefficients = np.atleast_2d(self.coef_)
        predictions = np.einsum("nd,kd->nk", X, coefficients) + self.intercept_  # no row depends on another
        return predictions[:, 0] if self.coef_.ndim == 1 else predictions

    def _solver(self, dim: int, context: int) -> Solver:
        if self.specialise:
            if not is_auto(self.model):
                raise ValueError(f"`specialise` needs `model='auto'`, got {self.model!r}.")
            say = print if self.verbose else None
            return Solver(specialists.adapted(specialists.specialise(dim, context, say)), specialists.prior(dim))
        return solver(self.model, dim, context)


def _shrunk(stats: GramStatistics) -> tuple[GramStatistics, float]:
    """The same with inputs shrunk until no eigenvalue is larger than chance makes it, and the factor."""
    count = float(stats.count[0])
    largest = float(np.linalg.eigvalsh(np.asarray(stats.xx[0]))[-1]) / count
    edge = (1 + (stats.dim / count) ** 0.5) ** 2  # of the eigenvalues of independent inputs
    factor = min(1.0, (edge / largest) ** 0.5) if largest > 0 else 1.0
    scale = jnp.ones(stats.dim + 1).at[:-1].set(factor)
    return GramStatistics(stats.gram * scale[:, None] * scale, stats.count), factor


def _unit(chosen: Solver, stats: GramStatistics) -> Float[Array, " k"]:
    """The unit of labels in which they have the variance of training; specialists find their own."""
    return jnp.ones(len(stats.count)) if chosen.any_unit else chosen.unit(stats)


def _noise(weights: Float[np.ndarray, "k d"], stats: GramStatistics) -> Float[np.ndarray, " k"]:
    """The part of the labels that is taken for noise: with penalty σ²/τ², their variance is τ² E‖x‖² + σ²."""
    penalty = believed_noise(weights, stats) ** 2
    length = np.trace(np.asarray(stats.xx), axis1=1, axis2=2) / np.asarray(stats.count)
    share = np.divide(penalty, length + penalty, out=np.ones_like(length), where=length > 0)
    return np.sqrt(share) * np.asarray(stats.label_rms) * np.asarray(stats.yy > 0)
