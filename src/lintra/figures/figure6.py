"""Figure 6: the unadjusted loss, in which methods can hardly be told apart."""

from matplotlib.figure import Figure

from lintra.display import Row
from lintra.evaluation.measurement import Results
from lintra.evaluation.noise_profile import Profile
from lintra.figures import panels
from lintra.figures.style import STYLES

CAPTION = (
    "Unadjusted loss at each noise level, the mean over 8,192 sequences, 7 layers, trained at uniform(0,5): "
    f"methods can hardly be told apart. {panels.AS_PRINTED}"
)
PROFILE = Profile("uniform(0,5)", range(2, 8))
NEEDS = (PROFILE,)


def compute(results: Results) -> list[Row]:
    """Return the profile of 7 layers, from that of all depths, which Figure 2 shows."""
    return [row for row in results[PROFILE] if row["layers"] in (None, 7)]


def draw(rows: list[Row]) -> Figure:
    """One panel."""
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    panels.profile(axes, rows, PROFILE.noise, 7, "unadjusted_loss")
    axes.set(xlabel="Noise level σ", ylabel="Unadjusted eval loss", ylim=(0, None))
    axes.legend(handles=axes.get_lines()[-len(STYLES) :])
    return figure
