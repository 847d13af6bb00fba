"""What statements are judged by: trimmed mean losses of the published models as printed."""

from lintra.baselines import TABLE1_BASELINES
from lintra.evaluation.layers import SEEDED
from lintra.evaluation.measurement import Results
from lintra.evaluation.noise_profile import SEQUENCES_PER_LEVEL
from lintra.evaluation.paper import CATEGORICAL, NOISES, UNIFORM
from lintra.evaluation.trimmed_losses import TrimmedLosses, TrimmedMeans
from lintra.figures.figure7 import NOISE_STDS as NOISE_STDS_AFTER_LAYERS
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec
from lintra.problem.noise import parse_noise

MIXED = (*UNIFORM[1:], *CATEGORICAL)
"""The noise priors of Table 1 with more than one noise level."""
RIDGE = ("const-ridge", "ada-ridge", "tuned-ridge")
"""The paper's baselines."""
LABELS = {"gd++": "GD++", "diag": "DIAG", "full": "FULL"}
LABELS |= {"const-ridge": "ConstRR", "ada-ridge": "AdaRR", "tuned-ridge": "TunedRR"}
DEEP = (SEEDED, "choice(1,3)")
"""The noise priors at which models with up to twelve layers, and with two heads, are published."""
COMPARABLE = 0.25
"""Relative difference up to which two losses count as comparable."""
EQUAL = 0.02
"""Relative difference up to which two losses count as equal."""

_COLUMN_SEQUENCES = 200_000
_SEEDS = range(5)


def model_name(family: str, depth: int, noise: str, num_heads: int = 1) -> str:
    """The name of the best model of a size."""
    return ModelSpec(family, depth, noise, num_heads).name


def seeded_names(family: str, depth: int) -> list[str]:
    """Names of the models of every seed at `SEEDED`; of GD++ one is published."""
    name = model_name(family, depth, SEEDED)
    return [name] if family == "gd++" else [f"{name}-seed{seed}" for seed in _SEEDS]


def one_head_name(depth: int, noise: str) -> str:
    """The name of the model of DIAG to compare two heads with, which are published for one seed only."""
    return seeded_names("diag", depth)[0] if noise == SEEDED else model_name("diag", depth, noise)


def _column(noise: str) -> TrimmedLosses:
    depths = range(1, 13) if noise in DEEP else range(1, 8)
    models = [model_name(family, depth, noise) for family in PAPER_FAMILIES for depth in depths]
    if noise in DEEP:
        models += [model_name("diag", depth, noise, num_heads=2) for depth in range(2, 8)]
        models += [one_head_name(depth, noise) for depth in range(2, 8)]
    return TrimmedLosses(noise, tuple(dict.fromkeys(models)), TABLE1_BASELINES, (noise,), _COLUMN_SEQUENCES)


def _profile(noise: str) -> TrimmedLosses:
    # Figures 2 and 3 show all depths at σ_max = 5 and for noise levels from a set, and seven layers elsewhere.
    depths = range(2, 8) if noise in (SEEDED, *CATEGORICAL) else range(7, 8)
    models = tuple(model_name(family, depth, noise) for family in PAPER_FAMILIES for depth in depths)
    noise_stds = parse_noise(noise).grid()
    sampled = tuple(f"fixed({noise_std:.6g})" for noise_std in noise_stds)
    return TrimmedLosses(noise, models, RIDGE, sampled, SEQUENCES_PER_LEVEL)


def _after_layers(sampled: tuple[str, ...], depths: range) -> TrimmedLosses:
    models = [name for family in PAPER_FAMILIES for depth in depths for name in seeded_names(family, depth)]
    return TrimmedLosses(SEEDED, tuple(models), (), sampled, SEQUENCES_PER_LEVEL, every_layer=True)


COLUMNS = {noise: _column(noise) for noise in NOISES}
"""Losses at every prior of Table 1."""
PROFILES = {noise: _profile(noise) for noise in NOISES}
"""Losses at each noise level, as in Figures 2 and 3."""
AFTER_EACH_LAYER = _after_layers((SEEDED,), range(1, 8))
"""Losses after each layer of all seeds' models, as in Figure 5."""
AFTER_EACH_OF_EIGHT = _after_layers(tuple(NOISE_STDS_AFTER_LAYERS), range(8, 9))
"""The same at each noise level with eight layers, the last row of Figure 7."""


def column(results: Results, noise: str) -> TrimmedMeans:
    """Losses at a noise prior."""
    return results[COLUMNS[noise]][noise]


def profile(results: Results, noise: str, high: float | None = None) -> dict[float, TrimmedMeans]:
    """Losses at each noise level σ of a profile, up to `high` (default: to the largest of the prior)."""
    need = PROFILES[noise]
    top = parse_noise(noise).support()[1] if high is None else high
    by_noise_std = {parse_noise(sampled).support()[1]: means for sampled, means in results[need].items()}
    return {noise_std: means for noise_std, means in by_noise_std.items() if noise_std <= top + 1e-9}
