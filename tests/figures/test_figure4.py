from lintra.figures import FIGURES
from lintra.figures.style import styled


def test_figure_4_separates_inputs_from_the_label_and_names_both_axes(results):
    with styled():
        drawn = FIGURES["4"].draw(FIGURES["4"].compute(results))
    matrices = [axes for axes in drawn.axes if axes.get_title()]
    assert [axes.get_title() for axes in matrices[:5]] == [*(f"Q, layer {n}" for n in range(1, 5)), "P, layer 1"]
    for axes in matrices:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
        across, down = axes.get_lines()
        assert set(across.get_ydata()) == set(down.get_xdata()) == {9.5}  # between x₁₀ and y
        assert axes.get_xlabel()
    assert [axes.get_ylabel() for axes in (matrices[0], matrices[4])] == [
        "coordinate of token $e_j$",
        "coordinate that is changed",
    ]
