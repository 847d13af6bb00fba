"""Figure 4: the weights of FULL with four layers, trained on noise levels from {1, 3}."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lintra.arguments import KeyLike
from lintra.display import Row
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.runtime.progress import SILENT, Progress
from lintra.zoo.collection import Zoo

CAPTION = (
    "Weights of FULL with 4 layers, trained with noise levels from {1, 3}, as printed. Top: Q; bottom: P, as in "
    "Eq. (3), Δe_i = Σ_j (e_jᵀ Q e_i) P e_j, scaled so that both have the same norm. Lines separate the inputs "
    "x₁ … x₁₀ of a token from its label y."
)
_AXES = {"Q": ("of token $e_i$", "of token $e_j$"), "P": ("of token $e_j$", "that is changed")}  # columns, rows


@dataclass(frozen=True)
class Matrices(AbstractMeasurement[tuple[np.ndarray, np.ndarray]]):
    """P and Q of a model as printed, which need no sequences.

    Attributes:
        name: Name of the model.
    """

    name: str

    def measure(
        self, zoo: Zoo, *, num_sequences: int = 1_000_000, key: KeyLike = 0, progress: Progress = SILENT
    ) -> tuple[np.ndarray, np.ndarray]:
        """Load the model."""
        del num_sequences, key, progress
        return zoo.load(self.name).matrices()


MODEL = Matrices("full-4-choice(1,3)")
NEEDS = (MODEL,)


def compute(results: Results) -> list[Row]:
    """Return every entry of P and Q, scaled so that both have the same norm in every layer."""
    rows = []
    for layer, (P, Q) in enumerate(zip(*results[MODEL], strict=True), 1):
        sizes = np.linalg.norm(P), np.linalg.norm(Q)
        scale = np.sqrt(sizes[0] / sizes[1]) if all(sizes) else 1.0
        for name, matrix in (("Q", Q[0] * scale), ("P", P[0] / scale)):
            rows += [
                {"layer": layer, "matrix": name, "row": row, "column": column, "value": value}
                for (row, column), value in np.ndenumerate(matrix)
            ]
    return rows


def draw(rows: list[Row]) -> Figure:
    """A picture for every matrix, red above zero and blue below."""
    layers = max(row["layer"] for row in rows)
    figure = Figure(figsize=(2.5 * layers, 5), layout="constrained")
    panels = figure.subplots(2, layers)
    for line, name in zip(panels, ("Q", "P"), strict=True):
        for layer, axes in enumerate(line, 1):
            values = [row["value"] for row in rows if (row["layer"], row["matrix"]) == (layer, name)]
            matrix = np.asarray(values).reshape(round(len(values) ** 0.5), -1)
            most = np.abs(matrix).max() or 1.0
            image = axes.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
            axes.set_title(f"{name}, layer {layer}")
            _mark_blocks(axes, len(matrix))
            columns, rows_of = _AXES[name]
            axes.set_xlabel(f"coordinate {columns}")
            axes.set_ylabel(f"coordinate {rows_of}" if layer == 1 else "")
            figure.colorbar(image, ax=axes, shrink=0.75)
    return figure


def _mark_blocks(axes: Axes, token_dim: int) -> None:
    """Separate the inputs of a token from its label by lines, and name the two blocks on both axes."""
    border = token_dim - 1.5  # between input d and the label
    for line in (axes.axhline, axes.axvline):
        line(border, color="black", linewidth=0.8)
    ticks, names = [(token_dim - 2) / 2, token_dim - 1], ["x", "y"]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.tick_params(length=0)
    axes.grid(False)
