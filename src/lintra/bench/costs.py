"""What a training step costs as batch, depth, dimension and context grow, one at a time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax

from lintra.bench.cases import gradient
from lintra.bench.timing import alternate
from lintra.models.families import FAMILIES
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import Track
from lintra.statistics.sampling import sample_statistics

AXES: dict[str, tuple[int, ...]] = {
    "batch": (128, 512, 2048, 8192, 65536),
    "layers": (1, 2, 4, 7, 10, 16),
    "dim": (2, 5, 10, 20, 40, 64),
    "context": (20, 1000, 30_000, 1_000_000),
}
BATCH, LAYERS, DIM = 2048, 7, 10


def costs(axes: dict[str, tuple[int, ...]] = AXES, repetitions: int = 9, track: Track | None = None) -> list[dict]:
    """One row for each value on each axis: the shortest CPU time in ms of a step of every family, or of sampling.

    A step is loss and slope of a batch in float32. What is not on the axis is 2,048 sequences, 7 layers and
    d = 10. A context enters only where sequences are drawn, so there the row tells what drawing them costs.
    """
    points = [(axis, value) for axis, values in axes.items() for value in values]
    order = range(len(points)) if track is None else track(range(len(points)), len(points))
    return [_row(*points[index], repetitions) for index in order]


def _row(axis: str, value: int, repetitions: int) -> dict[str, Any]:
    return {"axis": axis, "value": value} | {
        f"{name}_ms": min(alternate((side,), repetitions)[0]) for name, side in _sides(axis, value)
    }


def _sides(axis: str, value: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    if axis == "context":
        draw = jax.jit(partial(sample_statistics, shape=(BATCH,)))
        yield "sampling", partial(draw, NoisyRegression(DIM, value), jax.random.key(0))
        return
    batch, layers, dim = (value if axis == name else usual for name, usual in _USUAL.items())
    problem = NoisyRegression(dim, 2 * dim)
    for family in FAMILIES:
        yield family, gradient(family, layers, batch, problem)


_LABELS = {"full_ms": "FULL", "diag_ms": "DIAG", "gd++_ms": "GD++", "sampling_ms": "sampling"}
_USUAL = {"batch": BATCH, "layers": LAYERS, "dim": DIM}
_TITLES = {
    "batch": f"sequences in a batch ({LAYERS} layers, d = {DIM})",
    "layers": f"layers ({BATCH:,} sequences, d = {DIM})",
    "dim": f"inputs d ({BATCH:,} sequences, {LAYERS} layers)",
    "context": f"examples n (drawing {BATCH:,} sequences, d = {DIM})",
}


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the rows, one panel an axis, both scales logarithmic, into a file named `.svg`, `.png` or `.pdf`."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "lintra"}
    )  # small, and the same every time
    from matplotlib import pyplot

    axes = list(dict.fromkeys(row["axis"] for row in rows))
    figure, panels = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained", sharey=True)
    for axis, panel in zip(axes, panels.flat, strict=False):
        shown = [row for row in rows if row["axis"] == axis]
        for key in [key for key in shown[0] if key.endswith("_ms")]:
            panel.loglog([row["value"] for row in shown], [row[key] for row in shown], "o-", label=_LABELS[key])
        ticks = [row["value"] for row in shown]
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        panel.set(xlabel=_TITLES[axis], ylabel="CPU time, ms")
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    figure.suptitle("Loss and slope of a training step, and sampling, on one thread")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
