"""An explanation of a model: tables of what its layers do, and what the tables say in words."""

from dataclasses import dataclass, field

import jax

from lintra.anatomy.ablation import ablation
from lintra.anatomy.behaviour import behaviour, compared_noise_stds, reading_noise_stds
from lintra.anatomy.damped_layers import damped_layers
from lintra.anatomy.nearest_ridge import implied_noise
from lintra.anatomy.prior_loss import measure_losses
from lintra.anatomy.sentences import describe
from lintra.anatomy.structure import OMEGAS, matrix_structures, omegas
from lintra.arguments import KeyLike, random_key
from lintra.display import Row
from lintra.models.base import AbstractModel
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress


@dataclass(frozen=True)
class Explanation:
    """What a model does.

    Attributes:
        sentences: The tables in words.
        losses: Adjusted loss on the noise prior, as printed and damped, and the Bayes floor.
        omegas: ω per layer, as printed.
        structures: How diagonal P and Q are.
        behaviour: Rescaling, steps and momentum per layer and noise level.
        implied_noise: The noise level it acts on, at each true one.
        ablation: The loss without each ω.
        damping: How often the context and each layer are damped. Empty for a model without thresholds.
    """

    sentences: list[str]
    losses: list[Row]
    omegas: list[Row]
    structures: list[Row]
    behaviour: list[Row]
    implied_noise: list[Row]
    ablation: list[Row] = field(default_factory=list)
    damping: list[Row] = field(default_factory=list)

    def tables(self) -> dict[str, list[Row]]:
        """Return all tables that have rows by title."""
        titles = {
            "losses": "Adjusted loss on its noise prior",
            "omegas": "ω per layer, as printed",
            "structures": "P and Q in canonical form",
            "behaviour": "What each layer does at each noise level",
            "implied_noise": "The noise level it acts on",
            "ablation": "Adjusted loss without one ω",
            "damping": "Damping: ‖Σ‖/ρ of inputs, λ/κ of labels, and the share of sequences outside",
        }
        return {title: rows for name, title in titles.items() if (rows := getattr(self, name))}


def explain(
    model: AbstractModel,
    noise: str,
    *,
    num_sequences: int = 65_536,
    key: KeyLike = 0,
    progress: Progress = SILENT,
) -> Explanation:
    """Explain what a model does.

    Args:
        model: Any linear transformer.
        noise: The noise prior that it was trained on.
        num_sequences: Number of fresh sequences for losses, the ablation and the shares that are damped.
        key: Randomness, a whole number or a key.
        progress: Told while losses are measured.

    Returns:
        Tables, and what they say in words.
    """
    keys, damping_key = jax.random.split(random_key(key), 3), jax.random.fold_in(random_key(key), 3)
    problem = NoisyRegression(dim=model.dim, num_examples=model.num_examples, noise=noise)
    noise_stds, sizes = reading_noise_stds(noise), {"num_sequences": num_sequences, "progress": progress}
    tables = {
        "losses": measure_losses(model, problem, key=keys[2], **sizes),  # on the sequences of the ablation
        "omegas": [
            {"layer": layer, **dict(zip(OMEGAS, map(float, row), strict=True))}
            for layer, row in enumerate(omegas(model), 1)
        ],
        "structures": [structure.to_row() for structure in matrix_structures(model)],
        "behaviour": behaviour(model, noise_stds, key=keys[0]),
        "implied_noise": implied_noise(model, noise, noise_stds, key=keys[1]),
        "ablation": ablation(model, problem, key=keys[2], **sizes),
        "damping": damped_layers(model, problem, num_sequences=num_sequences, key=damping_key),
    }
    return Explanation(describe(model, noise, compared_noise_stds(noise), **tables), **tables)
