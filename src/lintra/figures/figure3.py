"""Figure 3: noise levels from a set: loss against depth, and against the noise level."""

from matplotlib.figure import Figure

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.evaluation.noise_profile import Profile
from lintra.evaluation.paper import CATEGORICAL
from lintra.evaluation.table1_column import Column
from lintra.figures import panels
from lintra.figures.style import STYLES, legend, stacked

CAPTION = (
    "Adjusted loss for noise levels drawn from {1, 3} and from {1, 3, 5} (shaded): "
    f"{panels.MEDIAN_OF_MEANS}. Top: against depth, and at each noise level with 7 layers. Bottom: at each noise "
    f"level, from 2 to 7 layers. {panels.HOLLOW} {panels.AS_PRINTED}"
)
DEPTHS = range(2, 8)
COLUMNS = tuple(map(Column, CATEGORICAL))
PROFILES = tuple(Profile(noise, DEPTHS) for noise in CATEGORICAL)
NEEDS = (*COLUMNS, *PROFILES)
_TOP = 0.25
_NAMES = (
    *("noise", "method", "layers", "adjusted_loss", "standard_error", "noise_std"),
    *("protocol_median", "protocol_5", "protocol_95", "is_dominated"),
    *("median_of_means", "median_of_means_error"),
)


def compute(results: Results) -> list[Row]:
    """Return the two columns of Table 1 (without a noise level), and the profiles of all depths.

    What the one has and the other has not is `None`.
    """
    rows: list[Row] = []
    for column, profile in zip(COLUMNS, PROFILES, strict=True):
        rows += [{name: row.get(name) for name in _NAMES} for row in results[column].to_rows()]
        rows += [{name: row.get(name) for name in _NAMES} for row in results[profile]]
    return rows


def draw(rows: list[Row]) -> Figure:
    """Four panels above, twelve below."""
    noises = [column.noise for column in COLUMNS]
    depth_rows = [row for row in rows if row["noise_std"] is None]
    profile_rows = [row for row in rows if row["noise_std"] is not None]
    figure = Figure(figsize=(10, 7.2), layout="constrained")
    above, below = stacked(figure, [1, 1.7])
    upper = above.subplots(1, 4)
    for pair, noise in zip((upper[:2], upper[2:]), noises, strict=True):
        panels.against_depth(pair[0], depth_rows, noise)
        panels.profile(pair[1], profile_rows, noise, 7)
        pair[0].set(title=_title(noise), xlabel="Number of layers", ylabel="Adj. eval loss")
        pair[1].set(title=f"{_title(noise)}, 7 layers", xlabel="Noise level σ", ylim=(0, _TOP), xlim=(0, 6))
    lower = below.subplots(2, 6, sharex=True, sharey=True)
    for line, noise in zip(lower, noises, strict=True):
        for axes, depth in zip(line, DEPTHS, strict=True):
            panels.profile(axes, profile_rows, noise, depth)
            axes.set(ylim=(0, _TOP), xlim=(0, 6))
        line[0].set_ylabel(f"{_title(noise)}\nAdj. eval loss")
    for axes, depth in zip(lower[0], DEPTHS, strict=True):
        axes.set_title(f"{depth} layers")
    for axes in lower[-1]:
        axes.set_xlabel("Noise level σ")
    legend(figure, STYLES.values())
    return figure


def _title(noise: str) -> str:
    return f"σ ∈ {{{noise.removeprefix('choice(').removesuffix(')').replace(',', ', ')}}}"
