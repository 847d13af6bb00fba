from dataclasses import replace

from lintra.evaluation.estimate import Estimate
from lintra.evaluation.orderings import Ordering
from lintra.evaluation.table1_column import Table1Column
from lintra.models.spec import ModelSpec
from lintra.report.table1_summary import is_below_floor, is_floor_within_error, summarise
from table1_cells import NOISE, cell


def sentence(words, *rows, orderings=()):
    return next(text for text in summarise([Table1Column(NOISE, list(rows), list(orderings))]) if words in text)


def test_cells_are_counted_by_their_verdicts():
    rows = [
        cell("full", 7, 0.040),
        cell("full", 6, 0.0441),
        cell("full", 5, 0.06),
        cell("full", 4, 0.06, top_share=1),
    ]
    text = sentence("model cells", *rows, cell("ada-ridge", None, 0.068))
    assert text == (
        "Of 4 model cells 1 are below the printed loss, 1 level with it, 1 above it and 1 dominated by few "
        "sequences."
    )


def test_the_width_of_level_is_that_of_the_median_cell():
    rows = [cell("full", 7, 0.047, spread) for spread in (0.01, 0.02, 0.03)]
    # Half the range is 2 % of the median cell, and the rounding 0.0005 of 0.047 another 1.06 %.
    assert "is 3.1% of the printed loss in the median cell" in sentence("Level is as wide", *rows)


def test_cells_that_hold_smaller_families_are_counted():
    rows = [
        *(
            cell("full", depth, 0.1, selected_family=family)
            for depth, family in ((1, "gd++"), (2, "diag"), (3, "full"))
        ),
        *(cell("diag", depth, 0.1, selected_family=family) for depth, family in ((1, "gd++"), (2, "diag"))),
        cell("gd++", 1, 0.1),
    ]
    text = sentence("Judged by their weights", *rows)
    assert "2 of 3 Full cells (1 of GD++ and 1 of Diag) and 1 of 2 Diag cells (1 of GD++) hold" in text


def test_explosions_and_safety_are_counted():
    rows = [cell("full", 7, 0.04), cell("full", 6, 0.04, num_exploded=3, top_ten_share=0.5, printed_safe=False)]
    text = sentence("As printed", *rows)
    assert "1 of 2 models explode on at least one" in text
    assert "dominate the mean of 1 (†)" in text
    assert text.endswith("Of 2 models whose cards say so, 1 are safe as printed.")
    unknown = [replace(row, printed_safe=None) for row in rows]
    assert sentence("As printed", *unknown).endswith("so no cell is in bold.")


def test_pairs_of_one_model_are_no_orderings():
    specs = ModelSpec("full", 2, NOISE), ModelSpec("diag", 2, NOISE)
    pairs = [
        Ordering(*specs, Estimate(-0.1, 0.01)),
        Ordering(*specs, Estimate(0.1, 0.01)),
        Ordering(*specs, Estimate(-1e9, 1e9), is_dominated=True),
        Ordering(*specs, Estimate(0.0, 0.0), is_same_model=True, is_dominated=True),
    ]
    text = sentence("orderings hold", cell("full", 2, 0.24), orderings=pairs)
    assert text.startswith("2 of 3 orderings hold")
    assert "1 further pairs hold the same model. In 1 of the 3 few sequences dominate" in text


def test_printed_losses_below_the_floor_are_told_apart_by_sampling_error():
    """The floor is 0.36145, the paper prints 0.344, and 0.366 with two layers."""
    far, near, above = cell("gd++", 7, 0.362), cell("gd++", 6, 0.362, 0.06), cell("gd++", 2, 0.374)
    assert [is_below_floor(row) for row in (far, near, above, cell("diag", 7, 0.05))] == [True, True, False, False]
    assert [is_floor_within_error(row) for row in (far, near)] == [False, True]
    text = sentence("the paper prints less", far, near, above)
    assert text.startswith("In 2 cells of GD++ the paper prints less than the exact floor of GD++; in 1 of these")
