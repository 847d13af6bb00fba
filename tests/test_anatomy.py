"""Models are read rightly: what changes nothing is seen as nothing, and what is read is what the model does."""

import json
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import lintra
from lintra import NoisyRegression, sample_data, sample_statistics, zoo
from lintra.anatomy import (
    ablate,
    behaviour,
    canonical_form,
    compare,
    explain,
    implied_noise,
    implied_noise_std,
    matrix_structures,
    omegas,
    rotate_inputs,
)
from lintra.anatomy.program import FORMATS, export
from lintra.cli import app
from lintra.models import FAMILIES, Diagonal, Full, GDPlusPlus
from lintra.theory.implicit import momentum_step

KEY = jax.random.key(0)


def small(family, heads=1, layers=3, scale=0.3):
    return FAMILIES[family].random(layers, dim=4, num_examples=8, num_heads=heads, scale=scale, key=KEY)


def contexts(count=50, dim=4, num_examples=8, noise="uniform(0,2)"):
    return sample_statistics(NoisyRegression(dim, num_examples, noise), (count,), key=KEY)[0]


def rotation(dim=4, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_balanced_form_is_the_same_function(family, heads):
    model = small(family, heads)
    P, Q = canonical_form(model)
    again = Full.from_matrices(P, Q, model.num_examples)
    stats = contexts()
    np.testing.assert_allclose(again.weights(stats), model.weights(stats), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(P, axis=(2, 3)), np.linalg.norm(Q, axis=(2, 3)), atol=1e-12)
    overlap = np.einsum("lhab,lkab->lhk", P, P)
    assert np.abs(overlap - np.einsum("lhh->lh", overlap)[..., None] * np.eye(heads)).max() < 1e-12


def test_scaling_and_mixing_of_heads_and_unread_rows_are_nothing():
    model = small("full", heads=2)
    P, Q = model.matrices()
    mix = np.asarray([[1.0, 2.0], [-0.5, 3.0]])
    mixed = np.einsum("hk,lkab->lhab", mix, P), np.einsum("kh,lkab->lhab", np.linalg.inv(mix), Q)
    mixed[0][-1, :, :-1] += 7.0
    same = compare(model, Full.from_matrices(*mixed, model.num_examples))
    assert (same.kind, same.difference < 1e-12) == ("same function", True)
    for one, other in zip(
        canonical_form(model), canonical_form(Full.from_matrices(*mixed, model.num_examples)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_change_of_basis_is_found_and_leaves_the_loss(heads):
    model, turn = small("full", heads), rotation()
    turned = rotate_inputs(model, turn)
    found = compare(model, turned)
    assert found.kind == "same up to a symmetry of the problem"
    np.testing.assert_allclose(found.rotation, turn, atol=1e-9)
    stats = contexts()
    block = np.eye(5)
    block[:4, :4] = turn
    moved = replace(stats, gram=block @ stats.gram @ block.T)
    np.testing.assert_allclose(turned.weights(moved), model.weights(stats) @ turn.T, rtol=1e-9, atol=1e-12)


def test_a_flip_of_the_labels_sign_is_turning_all_inputs_round():
    model, stats = small("full"), contexts()
    flip = np.diag([1.0, 1.0, 1.0, 1.0, -1.0])
    flipped = Full.from_matrices(flip @ model.matrices()[0] @ flip, flip @ model.matrices()[1] @ flip, 8)
    turned = compare(model, flipped)
    np.testing.assert_allclose(turned.rotation, -np.eye(4), atol=1e-9)
    mirrored = replace(stats, gram=flip @ stats.gram @ flip)
    np.testing.assert_allclose(flipped.weights(mirrored), -model.weights(stats), rtol=1e-9, atol=1e-12)


def test_models_that_differ_are_called_different():
    other = FAMILIES["full"].random(3, dim=4, num_examples=8, scale=0.3, key=jax.random.key(9))
    assert compare(small("full"), other).kind == "different"
    model = small("diag")
    nudged = Diagonal(model.p.at[0, 0, 0].add(1e-3), model.q, 8, 4)
    assert compare(model, nudged).kind == "different"
    with pytest.raises(ValueError, match="same number of layers"):
        compare(model, small("diag", layers=2))


def test_omegas_of_full_are_the_average_over_all_bases():
    model = small("full", heads=2)
    gram, layer = np.asarray(contexts(1).gram[0]), 0
    P, Q = (matrix[layer] for matrix in model.matrices())
    total, draws = np.zeros((5, 5)), 40_000
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(draws, 4, 4)))
    block = np.tile(np.eye(5), (draws, 1, 1))
    block[:, :4, :4] = turns[0] * np.sign(np.einsum("bii->bi", turns[1]))[:, None, :]
    block[:, 4, 4] = rng.choice([-1.0, 1.0], size=draws)
    seen = block.transpose(0, 2, 1) @ gram @ block
    total = sum(block @ p @ seen @ q @ block.transpose(0, 2, 1) for p, q in zip(P, Q, strict=True))
    mean, error = total.mean(axis=0), total.std(axis=0) / draws**0.5
    xx, xy, yx, _ = omegas(model)[layer]
    for found, expected, spread in (
        (mean[:4, 4], xy * gram[:4, 4], error[:4, 4]),
        (mean[4, :4], yx * gram[4, :4], error[4, :4]),
    ):
        assert (np.abs(found - expected) < 5 * spread).all()
    inner = mean[:4, :4] - xx * gram[:4, :4]  # what is left is a multiple of the identity
    assert np.abs(inner - inner.trace() / 4 * np.eye(4)).max() < 5 * error[:4, :4].max()


def test_shapes_tell_a_diagonal_matrix_from_one_with_a_low_rank_part():
    model = small("diag").to_full()
    assert all(one.diagonal_share > 1 - 1e-12 for one in matrix_structures(model))
    u, v = np.asarray([1.0, -1.0, 1.0, -1.0, 0.0]), np.asarray([1.0, 1.0, -1.0, -1.0, 0.0])
    bent = Full(model.p + 0.1 * np.outer(u, v), model.q, model.num_examples)
    first = next(one for one in matrix_structures(bent) if (one.layer, one.matrix) == (1, "P"))
    assert first.diagonal_share < 1
    assert first.rest_rank == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["xx", "xy", "yx", "yy"])
def test_an_ablated_model_is_the_model_with_that_omega_zero(name):
    model, stats = small("diag", heads=2), contexts()
    row, column = ("xy".index(letter) for letter in name)
    omega = model.omega.at[1, row, column].set(0.0)
    p = jnp.stack([omega[:, :, 0], omega[:, :, 1]], axis=1)
    q = jnp.broadcast_to(jnp.eye(2), (3, 2, 2))
    expected = Diagonal(p, q, 8, 4).weights(stats)
    np.testing.assert_allclose(ablate(model, 2, name).weights(stats), expected, rtol=1e-9, atol=1e-13)
    with pytest.raises(ValueError, match="`layer` and `omega` must be"):
        ablate(model, 4, name)


def test_behaviour_is_that_of_lemma_4_4():
    model = Diagonal.random(3, dim=4, num_examples=8, scale=0.3, key=KEY)
    problem = NoisyRegression(4, 8, "fixed(1)")
    rows = behaviour(model, (1.0,), num_sequences=64, key=KEY)
    stats, _ = sample_statistics(problem, (64,), key=KEY)
    omega = np.asarray(model.omega) / 8
    moved = jax.tree.map(np.asarray, model.implicit(stats))
    square = np.asarray(stats.yy)
    assert rows[0]["rescaling"] == pytest.approx(1 + omega[0, 1, 1] * square.mean(), rel=1e-12)
    assert rows[0]["step"] == pytest.approx(-omega[0, 1, 0], rel=1e-12)
    assert rows[0]["momentum"] is None
    assert rows[2]["label"] == pytest.approx(moved.a[:, 1].mean(), rel=1e-9)
    x, y, _ = sample_data(problem, key=KEY)
    data = lintra.GramStatistics.from_data(x, y)
    one = jax.tree.map(np.asarray, model.implicit(data))
    before = one.M[0], one.u[0], one.w[0], one.a[0]
    new_u, new_w, _ = momentum_step(omega[1], before, np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(new_u, one.u[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(new_w, one.w[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("std", [0.1, 1.0, 4.0])
def test_the_implied_noise_of_ridge_with_sigma_is_sigma(std):
    stats = contexts(dim=10, num_examples=20, noise="fixed(2)")
    weights = lintra.oracle_weights(stats, jnp.full(50, std))
    np.testing.assert_allclose(implied_noise_std(weights, stats), std, rtol=0.01)


def test_the_implied_noise_of_the_bayes_predictor_follows_its_posterior():
    model = GDPlusPlus.random(2, scale=0.05, key=KEY)
    rows = implied_noise(model, "uniform(0,5)", (2.0,), num_sequences=512, key=KEY)
    assert rows[0]["bayes_implied_noise"] == pytest.approx(rows[0]["bayes_posterior_mean"], rel=0.05)


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize("heads", [1, 2])
def test_an_exported_program_needs_numpy_alone_and_does_the_same(family, heads, tmp_path):
    model = small(family, heads, scale=0.15)
    x, y, _ = sample_data(NoisyRegression(4, 8, "uniform(0,2)"), (200,), key=KEY)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    program = tmp_path / "algorithm.py"
    program.write_text(export(model, title="mine", noise="uniform(0,2)"))
    script = (
        "import sys; sys.modules.update(dict.fromkeys(('jax', 'lintra', 'scipy', 'equinox')));"
        f"sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, algorithm;"
        f"data = np.load({str(tmp_path / 'data.npz')!r});"
        f"np.save({str(tmp_path / 'w.npy')!r}, [algorithm.fit(x, y) for x, y in zip(data['x'], data['y'])]);"
        "assert np.allclose(algorithm.predict(data['x'][0], data['y'][0], data['x'][0]), "
        "data['x'][0] @ algorithm.fit(data['x'][0], data['y'][0]))"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True)
    expected = model.weights(lintra.GramStatistics.from_data(x, y))
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["diag-4-uniform(0,5)", "full-7-uniform(0,5)"])
def test_published_algorithms_exported_do_the_same_on_ten_thousand_sequences(name):
    model, space = zoo.load(name), {}
    exec(export(model, title=name), space)
    x, y, _ = sample_data(NoisyRegression(), (10_000,), key=KEY)
    expected = np.asarray(model.weights(lintra.GramStatistics.from_data(x, y)))
    found = np.stack([space["fit"](*one) for one in zip(np.asarray(x), np.asarray(y), strict=True)])
    assert np.abs(found - expected).max() < 1e-10


def test_full_with_seven_layers_acts_on_the_noise_level_that_bayes_acts_on():
    rows = implied_noise(
        zoo.load("full-7-uniform(0,5)"), "uniform(0,5)", (1.0, 3.0, 5.0), num_sequences=2048, key=KEY
    )
    for row in rows:
        assert row["implied_noise"] == pytest.approx(row["bayes_implied_noise"], rel=0.02)
        assert row["correlation"] > 0.9


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
def test_other_forms_have_the_numbers(family):
    model = small(family)
    first = f"{omegas(model)[0, 0]:.4g}"
    assert first in export(model, form="latex")
    assert f"{omegas(model)[0, 0]:.5g}" in export(model, form="pseudo-code")
    with pytest.raises(ValueError, match="`form` must be one of numpy"):
        export(model, form="fortran")
    assert len(FORMATS) == 3


def test_an_explanation_says_what_the_numbers_say():
    p = np.asarray([[[-1.0, -1.0]], [[0.0, -1.0]]])
    q = np.asarray([[[0.5, 0.004]], [[0.5, -0.002]]])
    explanation = explain(Diagonal(p, q, 20, 10), "uniform(0,5)", num_sequences=8192, key=KEY)
    words = "\n".join(explanation.sentences)
    assert "Layer 1: labels and the prediction so far shrink (ω_yy < 0)" in words
    assert "Layer 2: labels and the prediction so far stretch (ω_yy > 0)" in words
    assert "as §5.2 says" in words
    assert "both negative in layer 1:" in words
    assert len(explanation.ablation) == 6


def test_the_command_line_explains_and_exports_files(tmp_path):
    path = tmp_path / "model.safetensors"
    lintra.save(small("diag"), path, noise="uniform(0,2)")
    shown = CliRunner().invoke(
        app, ["explain", str(path), "--sequences", "8192", "--json", "--out", str(tmp_path)]
    )
    assert shown.exit_code == 0, shown.output
    explanation = json.loads(shown.stdout)
    assert len(explanation["omegas"]) == 3
    assert explanation.keys() == {"sentences", "omegas", "structures", "behaviour", "implied_noise", "ablation"}
    assert (tmp_path / "explain-model.png").exists()
    shown = CliRunner().invoke(app, ["export", str(path), "--format", "pseudo-code"])
    assert "(momentum)" in shown.stdout
    with pytest.raises(FileNotFoundError, match=r"`model` 'nowhere/m\.safetensors' is not there"):
        CliRunner().invoke(app, ["explain", "nowhere/m.safetensors"], catch_exceptions=False)
