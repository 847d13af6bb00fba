"""A trained algorithm as a scikit-learn regressor: `fit` is a forward pass, `predict` a dot product.

Other people's data is not standard normal. So inputs are centred and divided by their standard deviations, labels
are centred, and the weights are brought back. Inputs that are more correlated than chance would make them are
shrunk until the largest eigenvalue of their covariance is one that the model has seen in training.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lintra.baselines.oracle import believed_noise
from lintra.models.adapters import InOwnUnits, Rescaled, Shrunk
from lintra.models.base import AbstractModel
from lintra.problem.noise import parse_noise
from lintra.regression import specialist_training, specialists
from lintra.regression.solver import Solver, given_model, is_auto
from lintra.regression.soundness import Causes, UnsoundWarning, sentence
from lintra.regression.standardisation import Frame
from lintra.runtime import forks
from lintra.statistics.gram import GramStatistics

_LARGEST = 1e304  # so that sums of thousands of values, and predictions, stay below the largest float of 1.8e308


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
        forks.check_not_forked()
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums values that are too large
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        for name, values in (("X", X), ("y", y)):
            largest = np.abs(values).max()
            if largest > _LARGEST:
                raise ValueError(
                    f"`{name}` must have values of at most {_LARGEST:.0e} in size, got {largest:.3g}; "
                    "divide it by a constant."
                )
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
        path = chosen.predictor.layer_weights(stats)
        fits, typical = chosen.judge(stats, path[:, -1])
        trusted = np.asarray(fits & typical)
        if not trusted.all():
            best, sound = (np.asarray(result) for result in chosen.compare(stats, path[:, -1]))
            trusted = trusted | sound
            path = np.where(trusted[:, None, None], path, best[:, None])
        if not trusted.all():
            places = np.asarray(chosen.diagnose(stats, centred=self.fit_intercept))
            causes = {int(target): list(Causes)[places[target]] for target in np.flatnonzero(~trusted)}
            warnings.warn(sentence(causes, len(trusted), "targets"), UnsoundWarning, stacklevel=2)
        path = np.asarray(path)
        weights = path[:, -1]
        self.coef_ = frame.back(weights)
        self.coef_path_ = frame.back(np.moveaxis(path, 1, 0))
        self.intercept_ = frame.intercept(self.coef_)
        self.noise_ = _noise(weights, stats) * frame.label_scale
        self.fallback_ = ~trusted
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
        """Return the model as it is used: at this n, on labels of any unit, on inputs that may be correlated."""
        if is_auto(self.model):
            noise: str = specialists.prior(dim)
            say = print if self.verbose else None
            model = (
                specialist_training.specialise(dim, context, say)
                if self.specialise
                else specialists.load_nearest(dim, context)
            )
        elif self.specialise:
            raise ValueError(f"`specialise` needs `model='auto'`, got {self.model!r}.")
        else:
            model, noise = given_model(self.model, dim)
            # Labels are divided by their root mean square; in training it was √(d + E[σ²]).
            model = model.relabelled((dim + parse_noise(noise).second_moment) ** -0.5)
        return Solver(InOwnUnits(Shrunk(Rescaled(model))), noise)


def _noise(weights: Float[np.ndarray, "k d"], stats: GramStatistics) -> Float[np.ndarray, " k"]:
    """The part of the labels that is taken for noise: with penalty σ²/τ², their variance is τ² E‖x‖² + σ²."""
    penalty = believed_noise(weights, stats) ** 2
    length = np.trace(np.asarray(stats.xx), axis1=1, axis2=2) / np.asarray(stats.count)
    share = np.divide(penalty, length + penalty, out=np.ones_like(length), where=length > 0)
    return np.sqrt(share) * np.asarray(stats.label_rms) * np.asarray(stats.yy > 0)
