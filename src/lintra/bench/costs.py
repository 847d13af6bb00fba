"""The cost of a training step as batch, depth, dimension and context grow, one at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax

from lintra.bench.cases import gradient_step
from lintra.bench.timing import alternate
from lintra.display import Curve, Plot, Row
from lintra.models.families import PAPER_FAMILIES
from lintra.problem.noisy_regression import NoisyRegression
from lintra.runtime.progress import SILENT, Progress, track
from lintra.statistics.sampling import sample_statistics

AXES: Mapping[str, tuple[int, ...]] = {
    "batch": (128, 512, 2048, 8192, 65536),
    "layers": (1, 2, 4, 7, 10, 16),
    "dim": (2, 5, 10, 20, 40, 64),
    "examples": (20, 1000, 30_000, 1_000_000),
}
"""What grows, and its values."""

_DEFAULTS = {"batch": 2048, "layers": 7, "dim": 10}  # values of what does not grow
_TITLES = {
    "batch": "A step: {layers} layers, d = {dim}".format(**_DEFAULTS),
    "layers": "A step: {batch:,} sequences, d = {dim}".format(**_DEFAULTS),
    "dim": "A step: {batch:,} sequences, {layers} layers".format(**_DEFAULTS),
    "examples": "Drawing {batch:,} sequences, d = {dim}".format(**_DEFAULTS),
}
_LABELS = {"batch": "sequences in a batch", "layers": "layers", "dim": "inputs d", "examples": "examples n"}


def measure_costs(
    axes: Mapping[str, tuple[int, ...]] = AXES, *, num_repetitions: int = 9, progress: Progress = SILENT
) -> list[Row]:
    """Measure the CPU time of a training step, or of sampling, on one thread.

    A step is the loss and its gradient on a batch in float32. A context enters only where sequences are drawn, so
    on the axis `examples` the time is that of drawing them.

    Args:
        axes: What grows, and its values. Default: `AXES`.
        num_repetitions: Number of measurements, of which the shortest counts. Default 9.
        progress: Told after each value. Default `SILENT`.

    Returns:
        One row for each value on each axis, with times in ms for each family, or for sampling.
    """
    points = [(axis, value) for axis, values in axes.items() for value in values]
    return [_row(*point, num_repetitions) for point in track(points, progress, "costs")]


def cost_plots(rows: Sequence[Row]) -> list[Plot]:
    """Return the rows of `measure_costs` as plots with logarithmic scales, one for each axis."""
    axes = dict.fromkeys(row["axis"] for row in rows)
    return [_plot(axis, [row for row in rows if row["axis"] == axis]) for axis in axes]


def _plot(axis: str, rows: Sequence[Row]) -> Plot:
    values = [row["value"] for row in rows]
    curves = [
        Curve(name.removesuffix("_ms").upper(), values, [row[name] for row in rows])
        for name in rows[0]
        if name.endswith("_ms")
    ]
    return Plot(_TITLES[axis], _LABELS[axis], "CPU time, ms", curves, xticks=values)


def _row(axis: str, value: int, num_repetitions: int) -> Row:
    return {"axis": axis, "value": value} | {
        f"{name}_ms": min(alternate((side,), num_repetitions)[0]) for name, side in _sides(axis, value)
    }


def _sides(axis: str, value: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    if axis == "examples":
        draw = jax.jit(partial(sample_statistics, shape=(_DEFAULTS["batch"],)))
        yield "sampling", partial(draw, NoisyRegression(_DEFAULTS["dim"], value), key=jax.random.key(0))
        return
    batch_size, num_layers, dim = (_DEFAULTS | {axis: value}).values()
    for family in PAPER_FAMILIES:
        yield family, gradient_step(family, num_layers, batch_size, NoisyRegression(dim, 2 * dim))
