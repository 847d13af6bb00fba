"""Figure 2: adjusted loss against the noise level, for uniform noise."""

from matplotlib.figure import Figure

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.evaluation.noise_profile import Profile
from lintra.evaluation.paper import UNIFORM
from lintra.figures import panels
from lintra.figures.style import STYLES, legend, stacked

CAPTION = (
    f"Adjusted loss at each noise level: {panels.MEDIAN_OF_MEANS}. Top two rows: models with 7 layers trained on "
    f"σ up to σ_max (shaded). Bottom row: σ_max = 5, from 2 to 7 layers. {panels.AS_PRINTED}"
)
DEPTHS = range(2, 8)
ALL_DEPTHS = Profile("uniform(0,5)", DEPTHS)
NEEDS = (*(Profile(noise, range(7, 8)) for noise in UNIFORM if noise != ALL_DEPTHS.noise), ALL_DEPTHS)
_TOPS = dict(zip(UNIFORM, (0.011, 0.018, 0.08, 0.13, 0.17, 0.19, 0.19, 0.21), strict=True))  # as in the paper


def compute(results: Results) -> list[Row]:
    """Return the profiles of 7 layers for every prior, and of all depths for σ_max = 5."""
    return [row for need in NEEDS for row in results[need]]


def draw(rows: list[Row]) -> Figure:
    """Eight panels for the priors and six for the depths."""
    figure = Figure(figsize=(10, 6.6), layout="constrained")
    above, below = stacked(figure, [2, 1.15])
    upper = above.subplots(2, 4)
    for axes, noise in zip(upper.flat, UNIFORM, strict=True):
        panels.profile(axes, rows, noise, 7)
        axes.set_title(f"σ$_{{max}}$ = {noise[-2]}")
        axes.set_ylim(0, _TOPS[noise])
    lower = below.subplots(1, 6, sharey=True)
    for axes, depth in zip(lower, DEPTHS, strict=True):
        panels.profile(axes, rows, ALL_DEPTHS.noise, depth)
        axes.set_title(f"{depth} layers")
        axes.set_ylim(0, 0.22)
        axes.set_xlabel("Noise level σ")
    for axes in upper[-1]:
        axes.set_xlabel("Noise level σ")
    for axes in (*upper[:, 0], lower[0]):
        axes.set_ylabel("Adj. eval loss")
    legend(figure, STYLES.values())
    return figure
