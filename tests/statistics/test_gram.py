import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lintra.baselines import oracle_weights
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_data, sample_statistics


def test_the_gram_matrix_is_the_sum_over_tokens(getkey):
    x, y, _ = sample_data(NoisyRegression(dim=3, num_examples=7), key=getkey())
    stats = GramStatistics.from_data(x, y)
    tokens = np.column_stack([x, y])
    assert np.allclose(stats.gram, sum(np.outer(e, e) for e in tokens), rtol=1e-13)
    assert np.allclose(stats.xx, x.T @ x)
    assert np.allclose(stats.xy, x.T @ y)
    assert np.allclose(stats.yy, y @ y)
    assert stats.num_examples == 7
    assert stats.dim == 3


def test_a_batch_a_stream_and_a_merge_say_the_same(getkey):
    x, y, _ = sample_data(NoisyRegression(dim=3, num_examples=12), (2, 5), key=getkey())
    batch = GramStatistics.from_data(x, y)
    assert batch.gram.shape == (2, 5, 4, 4)
    one = GramStatistics.from_data(x[1, 2], y[1, 2])
    stream = GramStatistics.from_chunks((x[1, 2, i : i + 5], y[1, 2, i : i + 5]) for i in range(0, 12, 5))
    halves = GramStatistics.from_data(x[..., :6, :], y[..., :6]).merge(
        GramStatistics.from_data(x[..., 6:, :], y[..., 6:])
    )
    for other in (jax.tree.map(lambda leaf: leaf[1, 2], batch), stream, jax.tree.map(lambda a: a[1, 2], halves)):
        assert np.allclose(one.gram, other.gram, rtol=1e-13)
        assert one.num_examples == other.num_examples == 12


def test_a_gram_matrix_from_elsewhere_is_taken_as_it_is(getkey):
    stats, _ = sample_statistics(NoisyRegression(dim=3, num_examples=7), (4,), key=getkey())
    again = GramStatistics.from_gram(np.asarray(stats.gram), 7)
    assert np.array_equal(again.gram, stats.gram)
    assert np.array_equal(again.num_examples, stats.num_examples)


finite = hnp.arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(-1e3, 1e3))


@given(finite, st.integers(0, 6))
def test_labels_that_do_not_fit_are_rejected_with_both_shapes(x, length):
    y = np.zeros(length)
    if length == len(x):
        assert GramStatistics.from_data(x, y).dim == x.shape[1]
    else:
        with pytest.raises(ValueError, match=rf"`x` and `y` must have shapes.*{length}"):
            GramStatistics.from_data(x, y)


@given(finite, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_data_that_is_not_finite_is_rejected(x, value, data):
    row, column = data.draw(st.integers(0, x.shape[0] - 1)), data.draw(st.integers(0, x.shape[1] - 1))
    y = np.zeros(len(x))
    bad_x, bad_y = x.copy(), y.copy()
    bad_x[row, column], bad_y[row] = value, value
    with pytest.raises(ValueError, match="`x` must be finite, got 1 NaN or infinite"):
        GramStatistics.from_data(bad_x, y)
    with pytest.raises(ValueError, match="`y` must be finite, got 1 NaN or infinite"):
        GramStatistics.from_data(x, bad_y)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_empty_context_is_rejected(shape):
    with pytest.raises(ValueError, match="at least one example"):
        GramStatistics.from_data(np.zeros(shape), np.zeros(shape[0]))


def test_data_whose_squares_overflow_is_rejected():
    with pytest.raises(ValueError, match="overflows; scale the data down"):
        GramStatistics.from_data(np.full((3, 2), 1e200), np.ones(3))


def test_data_in_32_bits_is_summed_in_64(getkey):
    x, y, _ = sample_data(NoisyRegression(), (), jnp.float32, key=getkey())
    assert GramStatistics.from_data(x, y).gram.dtype == jnp.float64


def test_batches_of_unequal_shape_are_not_merged(getkey):
    many, one = (sample_statistics(NoisyRegression(), shape, key=getkey())[0] for shape in ((5,), ()))
    with pytest.raises(ValueError, match=r"Batches of shapes \(5,\) and \(\)"):
        many.merge(one)


def test_an_empty_stream_and_unequal_merges_are_rejected(getkey):
    with pytest.raises(ValueError, match="got none"):
        GramStatistics.from_chunks([])
    small, large = (sample_statistics(NoisyRegression(dim=d), key=getkey())[0] for d in (2, 3))
    with pytest.raises(ValueError, match="2 and 3 inputs"):
        small.merge(large)


@pytest.mark.parametrize(
    ("gram", "count", "says"),
    [
        (np.ones((2, 3)), 1, "shape"),
        (np.ones((1, 1)), 1, "d ≥ 1"),
        (np.eye(3), 0, "`num_examples`"),
        (np.eye(3), 1.5, "`num_examples`"),
        (np.eye(3), [1, 2], "`num_examples`"),
        (np.triu(np.ones((3, 3))), 1, "symmetric"),
        (-np.eye(3), 5, "negative eigenvalue"),
        (np.eye(3), "a", "`num_examples`"),
    ],
)
def test_a_gram_matrix_that_is_none_is_rejected(gram, count, says):
    with pytest.raises(ValueError, match=says):
        GramStatistics.from_gram(gram, count)


@pytest.mark.parametrize(
    ("gram", "count", "says"),
    [
        ((4, 3, 2), (4,), r"`gram` must have shape .* got \(4, 3, 2\)"),
        ((3,), (), r"`gram` must have shape .* got \(3,\)"),
        ((4, 1, 1), (4,), "d ≥ 1"),
        ((4, 3, 3), (), r"`num_examples` must have the leading axes \(4,\) of `gram`, got shape \(\)"),
        ((4, 3, 3), (5,), r"`num_examples` must have the leading axes \(4,\) of `gram`, got shape \(5,\)"),
    ],
)
def test_statistics_of_shapes_that_do_not_fit_are_rejected(gram, count, says):
    with pytest.raises(ValueError, match=says):
        GramStatistics(jnp.ones(gram), jnp.ones(count, int))
    with pytest.raises(ValueError, match=says):
        jax.eval_shape(GramStatistics, jnp.ones(gram), jnp.ones(count, int))


def test_an_empty_batch_of_gram_matrices_is_rejected():
    with pytest.raises(ValueError, match=r"`gram` must hold at least one matrix, got shape \(0, 3, 3\)"):
        GramStatistics.from_gram(np.ones((0, 3, 3)), 5)


def test_statistics_go_through_transformations(getkey):
    stats, _ = sample_statistics(NoisyRegression(dim=3), (4, 2), key=getkey())
    axes = GramStatistics(gram=0, num_examples=0)  # pyright: ignore[reportArgumentType] # a tree of axes
    doubled = jax.jit(jax.vmap(lambda one: one.merge(one), in_axes=(axes,)))(stats)
    assert np.array_equal(doubled.gram, 2 * stats.gram)
    assert jax.tree.map(lambda leaf: leaf[:, :, None], stats).gram.shape == (4, 2, 1, 4, 4)
    dimensions = GramStatistics(4, 2)  # pyright: ignore[reportArgumentType] # a tree of numbers
    assert jax.tree.map(jnp.ndim, stats) == dimensions
    gradient = jax.grad(lambda gram: GramStatistics(gram, stats.num_examples).label_rms.sum())(stats.gram)
    assert np.isfinite(gradient).all()


def test_known_data_can_be_collected_inside_a_transformation(getkey):
    x, y, truth = sample_data(NoisyRegression(), (3,), key=getkey())

    @jax.jit
    def inside():
        stats = GramStatistics.from_data(x, y)
        return oracle_weights(GramStatistics.from_gram(stats.gram, 20), truth.noise_std)

    assert np.allclose(inside(), oracle_weights(GramStatistics.from_data(x, y), truth.noise_std))
