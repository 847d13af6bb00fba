import numpy as np
import pytest
from matplotlib.figure import Figure

from lintra.display import Row
from lintra.figures.panels import against_depth, profile
from lintra.figures.style import even_log_ticks

NOISE = "uniform(0,5)"


def depth_rows(**changes) -> list[Row]:
    """Losses that halve with each layer; changes are made to the row of three layers."""
    rows = []
    for depth in range(1, 8):
        row = {"noise": NOISE, "method": "diag", "layers": depth, "median_of_means": 0.5**depth}
        row |= {"adjusted_loss": 0.5**depth, "is_dominated": False}
        rows.append(row | (changes if depth == 3 else {}))
    return rows


def drawn(panel, rows, *arguments):
    axes = Figure().subplots()
    panel(axes, rows, NOISE, *arguments)
    return axes


def test_a_mean_that_one_sequence_dominates_makes_no_spike():
    axes = drawn(against_depth, depth_rows(adjusted_loss=1e12))
    line = next(line for line in axes.get_lines() if line.get_label() == "Diag")
    assert np.array_equal(np.asarray(line.get_ydata()), 0.5 ** np.arange(1, 8))
    rows = [{"noise": NOISE, "method": "diag", "layers": 7, "noise_std": 1.0} for _ in range(2)]
    rows = [row | {"adjusted_loss": 1e12, "median_of_means": 0.04} for row in rows]
    assert max(np.max(line.get_ydata(), initial=0) for line in drawn(profile, rows, 7).get_lines()) == 0.04


@pytest.mark.parametrize(("is_dominated", "hollow"), [(False, []), (True, [3])])
def test_markers_of_dominated_cells_are_hollow(is_dominated, hollow):
    axes = drawn(against_depth, depth_rows(is_dominated=is_dominated))
    white = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert np.concatenate([[], *(np.asarray(line.get_xdata()) for line in white)]).tolist() == hollow


@pytest.mark.parametrize(("low", "high"), [(0.03, 1.2), (0.002, 1.9), (1e-17, 3.0), (1e-4, 1.0)])
def test_ticks_of_a_logarithmic_axis_are_even_and_three_at_least(low, high):
    axes = Figure().subplots()
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    even_log_ticks(axes)
    ticks = np.asarray([tick for tick in axes.get_yticks() if low <= tick <= high])
    distances = np.diff(np.log10(ticks))
    assert 3 <= len(ticks) <= 7
    assert distances.max() / distances.min() < np.log10(2.5) / np.log10(2) + 1e-9  # 1, 2, 5 at the most uneven
    assert not len(axes.yaxis.get_minorticklocs())
