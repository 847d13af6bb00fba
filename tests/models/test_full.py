import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintra.models import Full
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics
from members import DIM, MODELS, NUM_EXAMPLES
from models_helpers import PROBLEM, close


def test_attention_matrices_of_eq_1(sequence, getkey):
    x, y, query = sequence
    shapes = [(3, 2, 3, DIM + 1), (3, 2, 3, DIM + 1), (3, 2, 2, DIM + 1), (3, 2, DIM + 1, 2)]
    W_K, W_Q, W_V, W_P = (0.1 * jax.random.normal(getkey(), shape) for shape in shapes)
    state = np.concatenate([np.column_stack([x, y]), np.append(query, 0.0)[None]])
    for layer in range(3):
        change = np.zeros_like(state)
        for head in range(2):
            for i, j in np.ndindex(len(state), NUM_EXAMPLES):
                score = (W_Q[layer, head] @ state[i]) @ (W_K[layer, head] @ state[j])
                change[i] += W_P[layer, head] @ (score * (W_V[layer, head] @ state[j]))
        state = state + change
    model = Full.from_attention(W_K, W_Q, W_V, W_P, num_examples=NUM_EXAMPLES)
    assert close(model.predict(GramStatistics.from_data(x, y), query), -state[-1, -1])


def test_the_last_layers_first_rows_never_reach_the_output(getkey):
    P, Q = MODELS["full-4-h2"].matrices()
    other = P.copy()
    other[-1, :, :DIM] += 1.0
    stats, _ = sample_statistics(PROBLEM, key=getkey())
    assert close(
        Full.from_matrices(other, Q, NUM_EXAMPLES).weights(stats),
        Full.from_matrices(P, Q, NUM_EXAMPLES).weights(stats),
    )


axes = st.integers(0, 3)


@given(st.tuples(axes, axes, axes, axes), st.tuples(axes, axes, axes, axes))
def test_matrices_that_do_not_fit_are_rejected(shape_p, shape_q):
    good = shape_p == shape_q and min(shape_p) > 0 and shape_p[2] == shape_p[3] > 1
    if good:
        assert Full.from_matrices(np.ones(shape_p), np.ones(shape_q), 5).num_layers == shape_p[0]
    else:
        with pytest.raises(ValueError, match=r"`[PQ]`.* must have .*shape"):
            Full.from_matrices(np.ones(shape_p), np.ones(shape_q), 5)


@given(st.sampled_from("PQ"), st.sampled_from([np.nan, np.inf]))
def test_matrices_that_are_not_finite_are_rejected(name, value):
    matrices = {"P": np.ones((1, 1, 3, 3)), "Q": np.ones((1, 1, 3, 3))}
    matrices[name][0, 0, 1, 2] = value
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        Full.from_matrices(**matrices, num_examples=5)


@pytest.mark.parametrize(
    "change", [{"W_K": (2, 1, 3, 4)}, {"W_P": (2, 1, 5, 3)}, {"W_Q": (1, 1, 3, 5)}, {"W_V": (5, 5)}]
)
def test_attention_matrices_that_do_not_fit_are_rejected(change):
    shapes = {"W_K": (2, 1, 3, 5), "W_Q": (2, 1, 3, 5), "W_V": (2, 1, 2, 5), "W_P": (2, 1, 5, 2)} | change
    with pytest.raises(ValueError, match="`W_"):
        Full.from_attention(**{name: np.ones(shape) for name, shape in shapes.items()}, num_examples=5)


def test_full_has_no_omega_and_serves_its_own_number_of_inputs_alone():
    model = Full.random(1, dim=2, key=jax.random.key(0))
    assert not hasattr(model, "omega")
    with pytest.raises(AttributeError, match=r"`lintra\.anatomy\.omegas`"):
        _ = model.omega
    assert model.with_dim(2) is model
    with pytest.raises(ValueError, match="`dim` must be 2"):
        model.with_dim(3)
