import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintra.baselines import LeastSquares
from lintra.models import FAMILIES, Diagonal, Full, GDPlusPlus, Rescaled, tokens
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics
from members import CONTEXT, DIM, KEY, MODELS, PREDICTORS, ROTATION_EQUIVARIANT, random_rotation

PROBLEM = NoisyRegression(dim=DIM, num_examples=CONTEXT, noise="uniform(0,2)")


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def model(request):
    return request.param


@pytest.fixture
def sequence(getkey):
    x, y, _ = sample_data(PROBLEM, key=getkey())
    return x, y, jax.random.normal(getkey(), (DIM,))


def _close(value, expected, tolerance=1e-12):
    scale = np.abs(np.asarray(expected)).max()
    return np.abs(np.asarray(value) - np.asarray(expected)).max() <= tolerance * max(scale, 1.0)


def test_the_gram_recursion_is_the_token_by_token_pass_in_every_layer(model, sequence):
    x, y, query = sequence
    history = tokens.forward(*map(jnp.asarray, model.matrices()), x, y, query)
    weights = model.layer_weights(GramStatistics.from_data(x, y))
    assert _close(weights @ query, jnp.stack([-layer[-1, -1] for layer in history]))
    assert _close(model.weights(GramStatistics.from_data(x, y)), weights[-1])


def test_theorem_4_1_reproduces_every_token(model, sequence):
    x, y, query = sequence
    history = tokens.forward(*map(jnp.asarray, model.matrices()), x, y, query)
    implicit = model.implicit(GramStatistics.from_data(x, y))
    for layer, moved in enumerate(history):
        M, u, w, a = (value[layer] for value in (implicit.M, implicit.u, implicit.w, implicit.a))
        assert _close(x @ M.T + y[:, None] * u, moved[:-1, :-1])
        assert _close(a * y - x @ w, moved[:-1, -1])
        assert _close(M @ query, moved[-1, :-1])
        assert _close(-w @ query, moved[-1, -1])


@pytest.mark.parametrize("predictor", PREDICTORS.values(), ids=PREDICTORS.keys())
def test_leading_axes_are_contexts(predictor, getkey):
    stats, _ = sample_statistics(PROBLEM, (2, 3), key=getkey())
    weights = predictor.weights(stats)
    assert weights.shape == (2, 3, DIM)
    for i, j in np.ndindex(2, 3):
        one = predictor.weights(GramStatistics(gram=stats.gram[i, j], num_examples=stats.num_examples[i, j]))
        assert _close(weights[i, j], one, 1e-11)


@pytest.mark.parametrize("predictor", PREDICTORS.values(), ids=PREDICTORS.keys())
def test_weights_have_the_precision_of_the_statistics(predictor, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    single = GramStatistics(gram=stats.gram.astype(jnp.float32), num_examples=stats.num_examples)
    weights = predictor.weights(single)
    assert weights.dtype == jnp.float32
    assert _close(weights, predictor.weights(stats), 1e-3)


@pytest.mark.parametrize("query", [np.ones(1), np.ones(DIM + 1), 1.0, np.full(DIM, np.nan)])
def test_a_query_that_does_not_fit_is_refused(query, getkey):
    stats, _ = sample_statistics(PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="`query` must"):
        MODELS["full-1-h1"].predict(stats, query)


@pytest.mark.parametrize("predictor", ROTATION_EQUIVARIANT.values(), ids=ROTATION_EQUIVARIANT.keys())
def test_rotating_the_inputs_rotates_the_weights(predictor, getkey):
    x, y, _ = sample_data(PROBLEM, key=getkey())
    rotation = jnp.asarray(random_rotation(np.random.default_rng(0), DIM))
    rotated = predictor.weights(GramStatistics.from_data(x @ rotation.T, y))
    assert _close(rotated, rotation @ predictor.weights(GramStatistics.from_data(x, y)), 1e-10)


def test_full_is_not_rotation_equivariant(getkey):
    x, y, _ = sample_data(PROBLEM, key=getkey())
    rotation = jnp.asarray(random_rotation(np.random.default_rng(0), DIM))
    model = MODELS["full-4-h1"]
    rotated = model.weights(GramStatistics.from_data(x @ rotation.T, y))
    assert not _close(rotated, rotation @ model.weights(GramStatistics.from_data(x, y)), 1e-3)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_gdpp_is_diag_is_full(heads, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    gdpp = MODELS[f"gd++-4-h{heads}"]
    diag = MODELS[f"diag-4-h{heads}"]
    for small, large in ((gdpp, gdpp.to_diagonal()), (gdpp, gdpp.to_full()), (diag, diag.to_full())):
        assert _close(small.weights(stats), large.weights(stats))
        assert large.num_heads == heads
    assert isinstance(gdpp.to_diagonal(), Diagonal)
    assert isinstance(diag.to_full(), Full)


def test_matrices_go_out_and_come_back(model, getkey):
    P, Q = model.matrices()
    assert P.shape == Q.shape == (model.num_layers, model.num_heads, DIM + 1, DIM + 1)
    assert isinstance(P, np.ndarray)
    again = FAMILIES[model.family].from_matrices(P, Q, num_examples=CONTEXT)
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())
    assert _close(again.weights(stats), model.weights(stats))
    for before, after in zip((P, Q), again.matrices(), strict=True):
        assert _close(after, before, 1e-15)


def test_attention_matrices_of_eq_1(sequence, getkey):
    x, y, query = sequence
    shapes = [(3, 2, 3, DIM + 1), (3, 2, 3, DIM + 1), (3, 2, 2, DIM + 1), (3, 2, DIM + 1, 2)]
    W_K, W_Q, W_V, W_P = (0.1 * jax.random.normal(getkey(), shape) for shape in shapes)
    state = np.concatenate([np.column_stack([x, y]), np.append(query, 0.0)[None]])
    for layer in range(3):
        change = np.zeros_like(state)
        for head in range(2):
            for i, j in np.ndindex(len(state), CONTEXT):
                score = (W_Q[layer, head] @ state[i]) @ (W_K[layer, head] @ state[j])
                change[i] += W_P[layer, head] @ (score * (W_V[layer, head] @ state[j]))
        state = state + change
    model = Full.from_attention(W_K, W_Q, W_V, W_P, num_examples=CONTEXT)
    assert _close(model.predict(GramStatistics.from_data(x, y), query), -state[-1, -1])


def test_one_head_ties_the_omegas_and_two_do_not():
    def tie(model):
        return np.asarray(
            model.omega[:, 0, 0] * model.omega[:, 1, 1] - model.omega[:, 0, 1] * model.omega[:, 1, 0]
        )

    assert np.allclose(tie(MODELS["diag-4-h1"]), 0, atol=1e-18)
    assert np.abs(tie(MODELS["diag-4-h2"])).min() > 1e-6


@pytest.mark.parametrize("heads", [1, 2])
def test_gdpp_in_the_eigenbasis_is_gdpp(heads, getkey):
    stats, _ = sample_statistics(PROBLEM, (3, 5), key=getkey())
    model = MODELS[f"gd++-4-h{heads}"]
    assert _close(model.spectral_weights(stats), model.layer_weights(stats))


@pytest.mark.parametrize("name", ["diag-4-h1", "gd++-4-h1"])
def test_diagonal_models_run_at_any_number_of_inputs(name, getkey):
    stats, _ = sample_statistics(NoisyRegression(dim=7, num_examples=CONTEXT), key=getkey())
    moved = MODELS[name].with_dim(dim=7)
    assert moved.weights(stats).shape == (7,)
    assert moved.matrices()[0].shape[-1] == 8
    with pytest.raises(ValueError, match=r"for 4 inputs and the context has 7.*with_dim\(dim"):
        MODELS[name].weights(stats)


def test_rescaling_is_a_choice_that_matters_only_at_another_length(getkey):
    model = MODELS["diag-4-h1"]
    same, _ = sample_statistics(PROBLEM, key=getkey())
    longer, _ = sample_statistics(NoisyRegression(dim=DIM, num_examples=3 * CONTEXT), key=getkey())
    assert _close(Rescaled(model).weights(same), model.weights(same), 1e-15)
    third = GramStatistics(gram=longer.gram / 3, num_examples=longer.num_examples)
    assert _close(Rescaled(model).weights(longer), model.weights(third))
    assert not _close(Rescaled(model).weights(longer), model.weights(longer), 1e-3)


def test_the_last_layers_first_rows_never_reach_the_output(getkey):
    P, Q = MODELS["full-4-h2"].matrices()
    other = P.copy()
    other[-1, :, :DIM] += 1.0
    stats, _ = sample_statistics(PROBLEM, key=getkey())
    assert _close(
        Full.from_matrices(other, Q, CONTEXT).weights(stats), Full.from_matrices(P, Q, CONTEXT).weights(stats)
    )


sizes = st.integers(0, 3)


@given(st.tuples(sizes, sizes, sizes, sizes), st.tuples(sizes, sizes, sizes, sizes))
def test_matrices_that_do_not_fit_are_refused(shape_p, shape_q):
    good = shape_p == shape_q and min(shape_p) > 0 and shape_p[2] == shape_p[3] > 1
    if good:
        assert Full.from_matrices(np.ones(shape_p), np.ones(shape_q), 5).num_layers == shape_p[0]
    else:
        with pytest.raises(ValueError, match=r"`[PQ]`.* must have .*shape"):
            Full.from_matrices(np.ones(shape_p), np.ones(shape_q), 5)


@given(st.sampled_from("PQ"), st.sampled_from([np.nan, np.inf]))
def test_matrices_that_are_not_finite_are_refused(name, value):
    matrices = {"P": np.ones((1, 1, 3, 3)), "Q": np.ones((1, 1, 3, 3))}
    matrices[name][0, 0, 1, 2] = value
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        Full.from_matrices(**matrices, num_examples=5)


def test_matrices_of_another_family_are_refused():
    with pytest.raises(ValueError, match=r"`P` must be diagonal.*Full.from_matrices"):
        Diagonal.from_matrices(*MODELS["full-1-h1"].matrices(), num_examples=CONTEXT)
    with pytest.raises(ValueError, match=r"q_y = 0.*Diagonal.from_matrices"):
        GDPlusPlus.from_matrices(*MODELS["diag-1-h1"].matrices(), num_examples=CONTEXT)


@pytest.mark.parametrize("family", FAMILIES.values())
@pytest.mark.parametrize("name", ["num_layers", "num_heads", "dim", "num_examples"])
def test_a_model_of_no_size_is_refused(family, name):
    sizes = {"num_layers": 2, "num_heads": 1, "dim": 3, "num_examples": 5} | {name: 0}
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 1, got 0"):
        family.random(**sizes, key=KEY)


@pytest.mark.parametrize(
    "change", [{"W_K": (2, 1, 3, 4)}, {"W_P": (2, 1, 5, 3)}, {"W_Q": (1, 1, 3, 5)}, {"W_V": (5, 5)}]
)
def test_attention_matrices_that_do_not_fit_are_refused(change):
    shapes = {"W_K": (2, 1, 3, 5), "W_Q": (2, 1, 3, 5), "W_V": (2, 1, 2, 5), "W_P": (2, 1, 5, 2)} | change
    with pytest.raises(ValueError, match="`W_"):
        Full.from_attention(**{name: np.ones(shape) for name, shape in shapes.items()}, num_examples=5)


def test_only_models_can_be_rescaled():
    with pytest.raises(ValueError, match="`model` must be a linear transformer, got LeastSquares"):
        Rescaled(LeastSquares())  # pyright: ignore[reportArgumentType]


def test_own_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"`p` and `q`.*\(3, 2\)"):
        Diagonal(np.ones((3, 2)), np.ones((3, 1, 2)), num_examples=5, dim=2)
    with pytest.raises(ValueError, match=r"`rates`.*\(3, 2\)"):
        GDPlusPlus(np.ones((3, 2)), num_examples=5, dim=2)


def test_weights_can_be_differentiated_and_compiled(model, getkey):
    stats, _ = sample_statistics(PROBLEM, (5,), key=getkey())

    @jax.jit
    def loss(model):
        return jnp.sum(model.weights(stats) ** 2)

    gradient = jax.grad(loss)(model)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))
    assert any(bool((leaf != 0).any()) for leaf in jax.tree.leaves(gradient))


def test_full_has_no_omega_and_serves_its_own_number_of_inputs_alone():
    model = Full.random(1, dim=2, key=jax.random.key(0))
    assert not hasattr(model, "omega")
    with pytest.raises(AttributeError, match=r"`lintra\.anatomy\.omegas`"):
        _ = model.omega
    assert model.with_dim(2) is model
    with pytest.raises(ValueError, match="`dim` must be 2"):
        model.with_dim(3)
