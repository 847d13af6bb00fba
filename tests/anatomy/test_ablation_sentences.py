import math

from lintra.anatomy.ablation_sentences import on_ablation

WHOLE = {"sequences": 1000, "exploded": 0, "median": 0.1, "median_standard_error": 0.001}


def row(layer, omega, cost, error=0.001, *, median=0.1, exploded=0, changed=1.0):
    return {
        "layer": layer,
        "omega": omega,
        "cost": cost,
        "cost_standard_error": error,
        "median": median,
        "median_standard_error": 0.001,
        "exploded": exploded,
        "changed": changed,
    }


def words(rows, whole=WHOLE, num_layers=2):
    return "\n".join(on_ablation(rows, whole, num_layers))


def test_the_most_and_the_least_needed_are_ranked_by_cost():
    text = words([row(1, "xx", 0.5), row(1, "yx", 0.1), row(2, "yy", 0.02)])
    assert "It needs ω_xx of layer 1 most: without it the loss grows by 0.5000 ± 0.0010 (1,000 sequences)." in text
    assert "It needs ω_yy of layer 2 least: 0.0200 ± 0.0010." in text
    assert "ω_xx and ω_xy of layer 2, the last one, never reach the output." in text


def test_a_diverged_mean_is_not_ranked():
    text = words([row(1, "xx", 1e30, 1e30, median=0.2, exploded=7), row(1, "yx", 0.1), row(2, "yy", 0.02)])
    assert (
        "It explodes on some of 1,000 sequences without ω_xx of layer 1 (on 7, median loss 0.2000 ± 0.0010)."
        in text
    )
    assert "Of the others it needs ω_yx of layer 1 most" in text


def test_an_omega_without_effect_is_not_the_least_needed():
    text = words([row(1, "xx", 0.0, 0.0, changed=0.0), row(1, "yx", 0.1), row(2, "yx", 0.5)])
    assert "ω_xx of layer 1 changes no prediction: without, the loss of all 1,000 sequences is equal." in text
    assert "It needs ω_yx of layer 1 least" in text
    assert " 0 ± 0" not in text


def test_costs_within_the_error_are_not_ranked():
    assert "Costs cannot be told apart" in words([row(1, "yx", 0.100), row(2, "yx", 0.101)])


def test_two_that_cannot_be_told_apart_are_both_the_most_needed():
    text = words([row(1, "yx", 0.500), row(2, "yx", 0.501), row(2, "yy", 0.1)])
    assert "needs ω_yx of layer 1 and ω_yx of layer 2 most: without each" in text


def test_a_model_that_is_better_without_an_omega_or_as_good_does_not_need_it_least():
    text = words([row(1, "xx", 0.5), row(1, "yx", -0.1), row(2, "yy", 0.001)])
    assert "Its loss is less without ω_yx of layer 1 (-0.1000 ± 0.0010), each alone." in text
    assert "A cost cannot be told from zero for ω_yy of layer 2 (0.0010 ± 0.0010)." in text
    assert "least" not in text


def test_a_model_that_explodes_itself_is_read_by_medians():
    rows = [
        row(1, "xx", math.inf, math.nan, median=0.4, exploded=9),
        row(2, "yx", -1e9, 1e9, median=0.2, exploded=1),
    ]
    text = words(rows, WHOLE | {"exploded": 3})
    assert "0.1000 ± 0.0010 with all ω, at most 0.4000 ± 0.0010 without ω_xx of layer 1" in text
    assert "at least 0.2000 ± 0.0010 without ω_yx of layer 2." in text
    assert "e9" not in text


def test_a_median_that_is_not_finite_is_the_largest():
    rows = [row(1, "xx", math.inf, math.nan, median=math.inf, exploded=600), row(2, "yx", 0.0, median=0.2)]
    text = words(rows, WHOLE | {"exploded": 3})
    assert "at most not finite without ω_xx of layer 1" in text


def test_a_model_that_mostly_explodes_is_not_ranked():
    text = words([row(1, "xx", 0.0, 0.0, changed=0.0)], WHOLE | {"exploded": 501})
    assert "It explodes on more than half of 1,000 sequences, so that no ω is ranked." in text
    assert "no prediction" not in text


def test_one_omega_with_an_effect_is_not_ranked():
    text = words([row(1, "yx", 0.5), row(1, "yy", 0.0, 0.0, changed=0.0)], num_layers=1)
    assert "Without ω_yx of layer 1 the loss grows by 0.5000 ± 0.0010 (1,000 sequences)." in text
