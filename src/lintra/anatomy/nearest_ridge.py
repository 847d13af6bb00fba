"""The noise level that a model acts on: that of the ridge regression nearest to its weights."""

from collections.abc import Sequence

import numpy as np

from lintra.anatomy.behaviour import NOISE_STDS, NUM_CONTEXTS, ratio_of_means, sample_contexts
from lintra.arguments import KeyLike, random_key
from lintra.baselines.bayes import Bayes
from lintra.baselines.oracle import correlation, implied_noise_std, oracle_weights
from lintra.display import Row
from lintra.evaluation.estimate import Estimate
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel


def implied_noise(
    model: AbstractModel,
    noise: str,
    noise_stds: Sequence[float] = NOISE_STDS,
    *,
    num_sequences: int = NUM_CONTEXTS,
    key: KeyLike = 0,
) -> list[Row]:
    """Return the implied noise standard deviation of a model and of the Bayes predictor, at each noise level.

    Args:
        model: The model.
        noise: The prior of the Bayes predictor, usually that of the model's training.
        noise_stds: True noise levels.
        num_sequences: Number of contexts at each.
        key: Randomness, a whole number or a key.

    Returns:
        A row for every noise level. `distance` is that of the model's weights to the nearest ridge solution w_r,
        `E‖w − w_r‖² / E‖w_r‖²`: where it is not small, the model does not do ridge regression and the implied
        noise means little. Beside the means are their standard errors, the Bayes predictor's posterior mean of σ
        and the correlation of the two implied noise levels over contexts. `overflowed` counts contexts with
        weights that are not finite; means are NaN if there are any.
    """
    bayes, rows = Bayes(noise), []
    for noise_std in noise_stds:
        stats = sample_contexts(model, noise_std, num_sequences, random_key(key))
        with in_64_bits(), np.errstate(over="ignore", invalid="ignore"):
            weights = np.asarray(model.weights(stats))
            is_finite = np.isfinite(weights).all(axis=1)
            of_model = np.where(is_finite, implied_noise_std(weights, stats), np.nan)
            of_bayes = implied_noise_std(bayes.weights(stats), stats)
            posterior = np.asarray(bayes.posterior_mean_std(stats))
            ridge = np.asarray(oracle_weights(stats, np.where(is_finite, of_model, 0.0)))
            distance = ratio_of_means(((weights - ridge) ** 2).sum(1), (ridge**2).sum(1))
        estimate, bayes_estimate = Estimate.from_values(of_model), Estimate.from_values(of_bayes)
        rows.append(
            {
                "noise_std": noise_std,
                "implied_noise": estimate.mean,
                "standard_error": estimate.standard_error,
                "distance": distance and distance.mean,
                "distance_standard_error": distance and distance.standard_error,
                "bayes_implied_noise": bayes_estimate.mean,
                "bayes_implied_noise_standard_error": bayes_estimate.standard_error,
                "bayes_posterior_mean": float(posterior.mean()),
                "bayes_posterior_mean_standard_error": Estimate.from_values(posterior).standard_error,
                "correlation": correlation(of_model, of_bayes) if is_finite.all() else None,
                "overflowed": int((~is_finite).sum()),
            }
        )
    return rows
