"""Cases are built backwards from known answers: weights for which a sentence must or must not stand."""

import numpy as np
import pytest

from anatomy_helpers import from_omegas, rows_of
from lintra.anatomy.layer_sentences import on_rescaling, on_steps
from lintra.models import Full, GDPlusPlus

NOISE_STDS = (1.0, 5.0)


def sentences(model, noise_stds=NOISE_STDS):
    tables = rows_of(model, tuple(dict.fromkeys(noise_stds)))
    return "\n".join([*on_rescaling(*tables, noise_stds), *on_steps(*tables, noise_stds, model.dim)])


def test_a_small_negative_omega_yy_shrinks_labels_as_section_5_2_says():
    words = sentences(from_omegas((0, 0, -0.02, -0.0003)))
    assert "Layer 1 shrinks labels and the prediction so far, by the factors 0.93" in words
    assert (
        "In layer 1 ω_yy is negative, and labels shrink, and more at σ = 5 than at σ = 1, as §5.2 says." in words
    )


def test_a_large_negative_omega_yy_changes_the_sign_of_labels_and_section_5_2_does_not_hold():
    words = sentences(from_omegas((0, 0, -0.02, -0.02)))  # 1 + ω_yy λ is about −3.4 at σ = 1
    assert "Layer 1 changes the sign of labels and the prediction so far" in words
    assert "shrinks" not in words
    assert "there §5.2 does not hold" in words
    assert "as §5.2 says" not in words


def test_labels_are_stretched_although_omega_yy_is_negative_where_inputs_reach_the_label():
    # d = ω_yy λ + vᵀΣv, of which the second part is larger: the sign of ω_yy does not tell.
    p, q = np.zeros((2, 1, 3, 3)), np.zeros((2, 1, 3, 3))
    p[0, 0, 2, 2], q[0, 0, 2, 2] = -0.01, 0.01
    p[0, 0, 2, 0], q[0, 0, 0, 2] = 0.2, 0.2
    p[1, 0, 2, 2], q[1, 0, 0, 0], q[1, 0, 1, 1] = -0.02, 1.0, 1.0
    model = Full.from_matrices(p, q, 20)
    words = sentences(model)
    assert rows_of(model)[0][0]["yy"] < 0
    assert "Layer 1 stretches labels" in words
    assert "Layer 2 leaves labels and the prediction so far as they are" in words
    assert "In layer 1 ω_yy is negative, but the factor" in words


def test_a_layer_whose_labels_are_nearly_zero_leaves_them_as_they_are_whatever_the_sign_of_omega_yy():
    # With a million examples Σ is n to 0.1 %, so four steps of 1/n leave residuals of 1e-9 and λ of 1e-12.
    steps = [(0, 0, -1e-6, 0)] * 4
    words = sentences(from_omegas(*steps, (0, 0, 0, -1.0), num_examples=1_000_000, dim=1), (0.0, 1e-9))
    assert "Layers 1, 2, 3, 4 and 5 leave labels and the prediction so far as they are" in words
    assert "In layer 5 ω_yy is negative; 4,096 contexts do not show whether §5.2 holds." in words


def test_a_factor_that_errors_hide_is_called_unclear():
    omegas, rows = rows_of(from_omegas((0, 0, -0.02, 0.001)))
    hidden = [row | {"rescaling": 7.0, "rescaling_standard_error": 3.0} for row in rows]
    words = "\n".join(on_rescaling(omegas, hidden, NOISE_STDS))
    assert "whose means are not clear" in words
    assert "stretch" not in words
    overflowed = [row | {"rescaling": np.nan, "rescaling_standard_error": np.nan} for row in rows]
    assert "not finite" in "\n".join(on_rescaling(omegas, overflowed, NOISE_STDS))


def test_plain_gradient_descent_has_no_preconditioner_and_equal_steps():
    model = from_omegas(*[(0, 0, -0.02, 0)] * 3)
    words = sentences(model)
    assert "4,096 contexts show no preconditioner" in words
    assert "have made a preconditioner" not in words
    assert "as long at σ = 5 as at σ = 1, within the error" in words
    assert "Layers 1, 2 and 3 leave labels and the prediction so far as they are" in words
    assert "§5" not in words
    assert "0.02 ± 0, 0.02 ± 0 and 0.02 ± 0 at σ = 1" in words


def test_gd_plus_plus_has_a_preconditioner_of_known_strength():
    # After x ← (I + ω_xx Σ) x a step along an eigenvector is −ω_yx (1 + ω_xx s), smaller for the largest s.
    model = from_omegas((-0.02, 0, 0, 0), (0, 0, -0.02, 0))
    _, rows = rows_of(model)
    row = next(row for row in rows if (row["layer"], row["noise_std"]) == (2, 1.0))
    assert row["step_at_least"] > row["step_at_largest"] + 4 * row["step_at_largest_standard_error"]
    assert "have made a preconditioner" in sentences(model)


def test_one_layer_has_no_preconditioner_in_any_family():
    for model in (
        GDPlusPlus.random(1, scale=0.3),
        from_omegas((-0.02, -0.01, -0.02, 0)),
        Full.random(1, scale=0.3),
    ):
        words = sentences(model)
        assert "It has one layer, so that no layer before its step can make a preconditioner." in words
        assert "have made" not in words


@pytest.mark.parametrize(("xy", "text"), [(-0.001, "as §5.3 says"), (-0.02, "there §5.3 does not hold")])
def test_section_5_3_holds_for_a_small_omega_xy_and_fails_for_one_that_overshoots(xy, text):
    # w = −ω_yx (1 + ω_xy λ) α: with ω_xy = −0.02 the factor goes from about −3.4 to −13.
    words = sentences(from_omegas((0, xy, 0, 0), (0, 0, -0.02, 0)))
    assert (
        f"In layer 2 ω_yx and, in the layer before, ω_xy are negative, {'and' if xy > -0.01 else 'but'}" in words
    )
    assert text in words
    assert ("as §5.3 says" in words) == (xy > -0.01)


def test_a_positive_omega_xy_is_no_case_of_section_5_3():
    assert "§5.3" not in sentences(from_omegas((0, 0.001, 0, 0), (0, 0, -0.02, 0)))


def test_a_step_of_zero_has_no_ratio():
    words = sentences(from_omegas((0, 0, -0.02, 0), (0, 0, 0, -0.0001)))
    assert "The last one cannot be told from zero at σ = 1 and σ = 5." in words
    assert "times as" not in words


def test_a_step_where_there_is_no_gradient_is_not_defined():
    omegas, rows = rows_of(from_omegas((0, 0, -0.02, 0), (0, 0, -0.02, 0)))
    columns = ("step", "step_at_least", "step_at_largest")
    none = dict.fromkeys([*columns, *(f"{column}_standard_error" for column in columns)])
    words = "\n".join(on_steps(omegas, [row | none for row in rows], NOISE_STDS, 10))
    assert "layer by layer: not defined and not defined at σ = 1" in words
    assert "preconditioner" not in words


def test_one_noise_level_compares_no_levels():
    words = sentences(from_omegas((0, -0.001, -0.02, -0.0003), (0, 0, -0.02, 0)), (2.0, 2.0))
    assert "σ = 5" not in words
    assert "§5" not in words
    assert "Layer 1 shrinks labels and the prediction so far, by the factor 0.9" in words
