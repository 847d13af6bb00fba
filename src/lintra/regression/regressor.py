"""A linear transformer as a scikit-learn regressor: `fit` is a forward pass, `predict` a dot product.

Inputs are centred and divided by their standard deviations, labels are centred, and the weights are converted
back. Models are damped, so that unusual data do not make them explode. Inputs that are more correlated than
independent ones would be are shrunk until the largest eigenvalue of their covariance is one of training.
"""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lintra.baselines.oracle import implied_noise_std
from lintra.kernel.precision import in_64_bits
from lintra.models.adapters import Rescaled, Shrunk, UnitBlind
from lintra.models.base import AbstractModel
from lintra.problem.noise import parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.regression import specialist_training, specialists
from lintra.regression.damping import damp
from lintra.regression.solver import Solver, find_model, is_auto, warn_about
from lintra.regression.standardisation import Standardisation
from lintra.runtime import forks
from lintra.runtime.progress import SILENT
from lintra.statistics.gram import GramStatistics

_MAX_VALUE = 1e304  # so that sums of thousands of values, and predictions, stay below the largest float, 1.8e308


class LinearTransformerRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear regression by a linear transformer that reads the training set as its context.

    The assumptions are those of the transformer's training: labels are linear in the standardised inputs, with
    weights of similar size and normal noise of one unknown standard deviation. No hyperparameter is tuned on the
    data. Where the transformer is not sound on the data, the Bayes predictor for its noise prior answers, with a
    warning.

    Args:
        model: `auto` (default) for the nearest published specialist, a published name such as
            `diag-7-uniform(0,5)`, a model file, or a model. For a model that is not a specialist, labels are
            scaled to the variance that they had in its training.
        fit_intercept: Whether to centre inputs and labels. Default `True`.
        whiten: Whether to rotate and scale inputs until they are uncorrelated, which assumes that all principal
            components matter equally. Default `False`.
        specialise: Whether to train a specialist for exactly this number of inputs and examples first, which
            takes seconds to minutes. It is written to the user's cache. Only with `model="auto"`. Default `False`.
        verbose: Whether to print the progress of that training. Default `False`.

    Attributes:
        coef_: Weights, shape (features,) or (targets, features).
        intercept_: Intercept, a float or shape (targets,).
        coef_path_: Weights after each layer, with a leading axis (layers,).
        noise_: Implied noise standard deviation, in label units: that of the ridge penalty whose solution is
            closest to `coef_`.
        fallback_: Whether the Bayes predictor answered, a bool or shape (targets,).
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
        """Compute the weights from the training set.

        Args:
            X: Inputs, shape (samples, features).
            y: Labels, shape (samples,) or (samples, targets).
            sample_weight: Number of times that each example counts, shape (samples,). The sum of the weights is
                the number of examples, so weights that sum to one count as a single example. `None` (default):
                each example counts once.

        Returns:
            The regressor.

        Raises:
            ValueError: If data is not finite or too large, or `model` does not match its number of inputs.

        Warns:
            UnsoundWarning: If the Bayes predictor answered, with causes and remedies; or if the number of
                examples or inputs is outside of what the specialists were trained for.
        """
        forks.check_not_forked()
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums values that are too large
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        _check_sizes(X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        total = weight.sum()
        if not 1e-100 < total < 2**53:
            raise ValueError(f"`sample_weight` must have a sum above zero and below 2**53, got {total:g}.")
        standard = Standardisation.fit(X, y.reshape(len(y), -1), weight, self.fit_intercept, self.whiten)
        with in_64_bits():
            stats = standard.statistics()
            dim, num_examples = stats.dim, int(stats.num_examples[0])
            solver = self._solver(dim, num_examples)
            if is_auto(self.model) and not self.specialise:
                specialists.warn_about_range(dim, num_examples, num_examples)
            answer = solver.answer(stats, path=True, centred=self.fit_intercept)
            warn_about(answer, "targets")
            assert answer.path is not None
            self.coef_ = standard.inverse(answer.weights)
            self.coef_path_ = standard.inverse(np.moveaxis(answer.path, 1, 0))
            self.intercept_ = standard.intercept(self.coef_)
            self.noise_ = _implied_noise(answer.weights, stats) * standard.label_scale
            self.fallback_ = np.asarray([target in answer.fallback for target in range(len(answer.weights))])
        if y.ndim == 1:
            self.coef_, self.coef_path_ = self.coef_[0], self.coef_path_[:, 0]
            self.intercept_, self.noise_ = float(self.intercept_[0]), float(self.noise_[0])
            self.fallback_ = bool(self.fallback_[0])
        return self

    def predict(self, X: Any) -> Float[np.ndarray, "samples ..."]:
        """Return `X coef_ᵀ + intercept_`.

        Args:
            X: Inputs, shape (samples, features).

        Returns:
            Predictions, shape (samples,) or (samples, targets). Each row depends on its own inputs alone.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        coefficients = np.atleast_2d(self.coef_)
        predictions = np.einsum("nd,kd->nk", X, coefficients) + self.intercept_  # no row depends on another
        return predictions[:, 0] if self.coef_.ndim == 1 else predictions

    def _solver(self, dim: int, num_examples: int) -> Solver:
        """Return the model in adapters for this n, labels of any unit and inputs that may be correlated."""
        if self.specialise and not is_auto(self.model):
            raise ValueError(f"`specialise` needs `model='auto'`, got {self.model!r}.")
        if self.specialise:
            noise: str = specialists.prior(dim)
            progress = specialist_training.PrintedProgress() if self.verbose else SILENT
            model = specialist_training.specialise(dim, num_examples, progress=progress)
            model = damp(model, NoisyRegression(dim, model.num_examples, noise), is_unit_blind=True)
        else:
            model, noise = find_model(self.model, dim, num_examples)
        if not is_auto(self.model):
            # Labels are divided by their root mean square; in training it was √(d + E[σ²]).
            model = model.for_label_scale((dim + parse_noise(noise).second_moment) ** -0.5)
        return Solver(UnitBlind(Shrunk(Rescaled(model))), noise)


def _check_sizes(X: np.ndarray, y: np.ndarray) -> None:
    """Raise if a value is so large that sums could overflow."""
    for name, values in (("X", X), ("y", y)):
        largest = np.abs(values).max()
        if largest > _MAX_VALUE:
            raise ValueError(
                f"`{name}` must have values of at most {_MAX_VALUE:.0e} in size, got {largest:.3g}; "
                "divide it by a constant."
            )


def _implied_noise(weights: Float[np.ndarray, "k d"], stats: GramStatistics) -> Float[np.ndarray, " k"]:
    """Return the implied noise standard deviation of each target, in the unit of the statistics."""
    # With the penalty σ²/τ² the labels' variance is τ² E‖x‖² + σ², of which noise is penalty / (E‖x‖² + penalty).
    penalty = implied_noise_std(weights, stats) ** 2
    mean_square = np.trace(np.asarray(stats.xx), axis1=1, axis2=2) / np.asarray(stats.num_examples)
    fraction = np.divide(penalty, mean_square + penalty, out=np.ones_like(mean_square), where=mean_square > 0)
    return np.sqrt(fraction) * np.asarray(stats.label_rms) * np.asarray(stats.yy > 0)
