import json

import numpy as np

from cli_helpers import run
from lintra.cli.loss_rows import loss_row, mark_rows
from lintra.evaluation.comparison import Comparison
from lintra.evaluation.estimate import Estimate
from lintra.problem.noisy_regression import NoisyRegression


def row_of(losses, *, tail=False):
    """The row of a predictor with these losses."""
    output, losses = ("mine", None), np.asarray(losses)
    measured = Comparison(
        problem=NoisyRegression(),
        num_sequences=len(losses),
        key=0,
        adjusted_losses={output: losses},
        unadjusted_losses={output: Estimate.from_values(losses)},
        worse_shares={output: 0.0},
        protocol_losses={},
    )
    return loss_row("full", 2, measured, "mine", tail=tail)


def test_means_that_few_sequences_dominate_are_marked_and_explained():
    sound, dominated = row_of(np.ones(1000)), row_of(np.append(np.ones(999), 1e4))
    assert (sound["is_dominated"], dominated["is_dominated"]) == (False, True)
    marked, footnote = mark_rows([sound, dominated])
    assert [row["mark"] for row in marked] == [None, "†"]
    assert footnote.startswith(
        "† Few sequences dominate this mean: the ten largest have more than 10 % of the sum."
    )
    assert mark_rows([sound]) == ([sound | {"mark": None}], "")


def test_the_tail_counts_exploded_sequences():
    """With ten inputs a loss above 50 is exploded."""
    row = row_of([*np.ones(997), 49.0, 51.0, np.inf], tail=True)
    assert row["num_exploded"] == 2
    assert row["worst"] == np.inf
    assert row["note"] == "overflows on 0.001 of the sequences"


def test_the_terminal_shows_the_mark_beside_the_mean_and_the_footnote_below_the_table():
    """Of 50 sequences ten have more than a tenth of the sum, whatever the model."""
    arguments = ("evaluate", "gd++-2-choice(1,3)", "--sequences", 50)
    text = run(*arguments)
    (line,) = [line for line in text.splitlines() if "gd++" in line]
    assert "†" in line
    assert text.rstrip().splitlines()[-1].lstrip().startswith("† Few sequences dominate this mean")
    (row,) = json.loads(run(*arguments, "--json"))
    assert row["is_dominated"] is True
    assert "†" not in run("evaluate", "gd++-2-choice(1,3)", "--sequences", 3000)
