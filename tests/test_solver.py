"""Very many regressions at once: the same numbers as one by one, from any source, and safe on any data."""

import re
import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lintra import GramStatistics, NoisyRegression, oracle_weights, sample_data, solve, zoo
from lintra.baselines import Bayes
from lintra.kernel import library, operations
from lintra.models import FAMILIES, Rescaled, UnitBlind
from lintra.predictor import AbstractLayered
from lintra.regression import specialists
from lintra.regression.contexts import group_contexts, padded_chunks
from lintra.regression.solver import Solver
from lintra.regression.soundness import UnsoundWarning, is_typical
from lintra.runtime.progress import Progress
from lintra.statistics.examples import Examples, statistics

KEY = jax.random.key(0)
NAME = "diag-7-uniform(0,5)"
FULL = "full-7-uniform(0,5)"
PENALTIES = np.logspace(-6, 6, 40)


def contexts(count=50, n=20, d=10, dtype=np.float64):
    x, y, truth = sample_data(NoisyRegression(dim=d, num_examples=n), (count,), dtype, key=KEY)
    return np.asarray(x), np.asarray(y), truth


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 5), (20, 10), (64, 3), (65, 16), (200, 11)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices_of_the_kernel_are_those_of_plain_jax(n, d, dtype):
    x, y, _ = contexts(37, n, d, dtype)
    tokens = np.concatenate([x, y[..., None]], axis=-1).astype(float)
    expected = np.einsum("bni,bnj->bij", tokens, tokens)
    assert library.supports(jnp.asarray(x), jnp.asarray(y))
    found = np.asarray(operations.gram(jnp.asarray(x), jnp.asarray(y)))
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_without_the_kernel_gram_matrices_are_the_same(monkeypatch):
    x, y, _ = contexts(5)
    given = Examples(jnp.asarray(x), jnp.asarray(y), jnp.full(len(x), x.shape[1]))
    fast = statistics(given)
    monkeypatch.setattr(library, "supports", lambda *arrays: False)
    np.testing.assert_allclose(fast.gram, statistics(given).gram, rtol=1e-12)


@pytest.mark.parametrize("name", [NAME, FULL, "gd++-3-choice(1,3)"])
def test_many_at_once_are_what_the_model_says_one_by_one(name):
    x, y, _ = contexts()
    typical = np.asarray(is_typical(GramStatistics.from_data(x, y)))
    x, y, model = x[typical], y[typical], zoo.load(name)
    assert len(x) > 40
    expected = [model.weights(GramStatistics.from_data(*context)) for context in zip(x, y, strict=True)]
    np.testing.assert_allclose(solve(x, y, model=name), expected, rtol=1e-9)
    in_single = solve(x.astype(np.float32), y.astype(np.float32), model=model)
    assert in_single.dtype == np.float32
    np.testing.assert_allclose(in_single, expected, atol=2e-3)


def test_chunks_lengths_and_statistics_make_no_difference(monkeypatch):
    x, y, _ = contexts()
    whole = solve(x, y, model=NAME)
    np.testing.assert_allclose(solve(GramStatistics.from_data(x, y), model=NAME), whole, rtol=1e-9)
    np.testing.assert_allclose(solve(list(x), list(y), model=NAME), whole, rtol=1e-9)
    monkeypatch.setattr("lintra.regression.chunked._MAX_BYTES", 24_000)
    np.testing.assert_allclose(solve(x, y, model=NAME), whole, rtol=1e-12)
    assert solve(x[:0], y[:0], model=NAME).shape == (0, 10)


def test_contexts_of_many_lengths_are_averaged_each_over_its_own():
    x, y, _ = contexts(40)
    lengths = np.random.default_rng(0).integers(5, 21, size=40)
    xs, ys = [a[:n] for a, n in zip(x, lengths, strict=True)], [b[:n] for b, n in zip(y, lengths, strict=True)]
    model = Rescaled(zoo.load(NAME))
    expected = [model.weights(GramStatistics.from_data(*context)) for context in zip(xs, ys, strict=True)]
    with pytest.warns(UnsoundWarning) as warned:
        found = solve(xs, ys, model=NAME)
    (num_replaced,) = re.findall(r"On (\d+) of 40", str(warned[0].message))
    same = np.isclose(found, expected, rtol=1e-8).all(axis=1)
    assert same.sum() == 40 - int(num_replaced) > 30


def test_what_a_context_is_answered_does_not_depend_on_the_others():
    lengths, rng = (4, 9, 16, 17, 40, 300, 2000), np.random.default_rng(0)
    xs = [rng.normal(size=(n, 10)) for n in lengths]
    ys = [rng.normal(size=n) for n in lengths]
    with pytest.warns(
        UnsoundWarning, match=r"4 examples of 10 inputs are fewer .* least trained for, 5; 2000 examp"
    ):
        together = solve(xs, ys)
    grams = [np.column_stack(context).T @ np.column_stack(context) for context in zip(xs, ys, strict=True)]
    with pytest.warns(UnsoundWarning):
        by_statistics = solve(GramStatistics.from_gram(np.stack(grams), np.asarray(lengths)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundWarning)
        alone = [solve(x[None], y[None])[0] for x, y in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9)
    np.testing.assert_allclose(by_statistics, alone, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1e-25), (np.float32, 1e30), (np.float64, 1e-170)])
def test_labels_may_be_very_small_and_very_large(dtype, unit):
    x, y, _ = contexts(dtype=dtype)
    np.testing.assert_allclose(solve(x, y * dtype(unit)) / dtype(unit), solve(x, y), rtol=1e-3, atol=1e-4)


def test_warnings_point_to_who_called():
    with pytest.warns(UnsoundWarning) as found:
        solve(np.ones((1, 2, 8)), np.ones((1, 2)))
    assert {warning.filename for warning in found} == {__file__}


def test_wide_contexts_are_read_a_few_at_a_time():
    grouped = group_contexts(np.zeros((4096, 1, 150)), np.zeros((4096, 1)), by=lambda dim, n: None)
    (group,) = grouped.groups
    assert max(chunk.num_real for chunk in padded_chunks(group, 2**24)) * 151**2 * 8 <= 2**24


@pytest.mark.filterwarnings("ignore::lintra.regression.soundness.UnsoundWarning")
def test_specialists_do_not_know_the_unit_of_labels_and_are_far_better_than_least_squares():
    x, y, truth = contexts(4000)
    found = solve(x, y)
    np.testing.assert_allclose(solve(x, 1e6 * y), 1e6 * found, rtol=1e-9)
    oracle = np.asarray(oracle_weights(GramStatistics.from_data(x, y), truth.noise_std))
    ols = np.asarray([np.linalg.lstsq(a, b)[0] for a, b in zip(x, y, strict=True)])
    ours, theirs = (np.mean(np.sum((weights - oracle) ** 2, axis=1)) for weights in (found, ols))
    assert ours < theirs / 10


def test_what_explodes_is_answered_by_the_bayes_predictor_and_told():
    x, y, _ = contexts(30)
    wild = FAMILIES["diag"].random(6, dim=10, num_examples=20, scale=3.0, key=KEY)
    with pytest.warns(UnsoundWarning, match=r"On 30 of 30 contexts \(the first is number 0\)"):
        found = solve(x, y, model=wild)
    np.testing.assert_allclose(found, Bayes("uniform(0,5)").weights(GramStatistics.from_data(x, y)), rtol=1e-9)


def test_the_bayes_predictor_of_a_specialist_does_not_know_units_either():
    x, y, _ = contexts(10)
    safe = Solver(UnitBlind(Rescaled(zoo.load(NAME))), "uniform(0,5)")
    weights = jnp.zeros((10, 10))
    one, thousand = (safe.compare(GramStatistics.from_data(x, unit * y), weights)[0] for unit in (1.0, 1000.0))
    np.testing.assert_allclose(thousand, 1000 * np.asarray(one), rtol=1e-9)


@dataclass(eq=False)
class Passes:
    """Names of the forward passes that were made, with the hash of an object, which static fields need."""

    names: list[str] = field(default_factory=list)


class Counted(AbstractLayered):
    """A predictor that counts its forward passes while programs are compiled."""

    predictor: AbstractLayered
    passes: Passes = eqx.field(static=True)

    def weights(self, stats):
        self.passes.names.append("weights")
        return self.predictor.weights(stats)

    def layer_weights(self, stats):
        self.passes.names.append("layer_weights")
        return self.predictor.layer_weights(stats)


@pytest.mark.parametrize("path", [False, True])
def test_an_answer_takes_one_forward_pass_and_the_bayes_predictor_where_that_is_not_sound(path):
    x, y, _ = contexts(12)
    x = np.concatenate([x[:6], 3 * x[6:]])  # the last six are unlike training
    stats, model, passes = GramStatistics.from_data(x, y), Rescaled(zoo.load(NAME)), Passes()
    answer = Solver(Counted(model, passes), "uniform(0,5)").answer(stats, path=path)
    assert passes.names == ["layer_weights" if path else "weights"]
    replaced = sorted(answer.fallback)
    assert 0 < len(replaced) < 12
    own, bayes = np.asarray(model.weights(stats)), np.asarray(Bayes("uniform(0,5)").weights(stats))
    is_replaced = np.isin(np.arange(12), replaced)
    np.testing.assert_allclose(answer.weights, np.where(is_replaced[:, None], bayes, own), rtol=1e-9)
    if answer.path is not None:
        assert path
        steps = np.where(is_replaced[:, None, None], bayes[:, None], np.asarray(model.layer_weights(stats)))
        np.testing.assert_allclose(answer.path, steps, rtol=1e-9)
    else:
        assert not path


def test_contexts_are_in_one_chunk_each_and_chunks_are_padded_to_powers_of_two():
    rng, lengths = np.random.default_rng(0), [3, 7, 4, 30, 5, 8, 29, 6, 7]
    xs, ys = [rng.normal(size=(n, 2)) for n in lengths], [rng.normal(size=n) for n in lengths]
    seen = []
    for group in group_contexts(xs, ys, by=lambda dim, n: n < 7).groups:
        for chunk in padded_chunks(group, 4 * group.num_bytes):
            assert isinstance(chunk.data, Examples)
            assert len(chunk.data.x) in (1, 2, 4)
            assert len(chunk.indices) == chunk.num_real <= len(chunk.data.x) < 2 * chunk.num_real
            rows = [*range(chunk.num_real), *[chunk.num_real - 1] * (len(chunk.data.x) - chunk.num_real)]
            for row, data_row in enumerate(rows):
                index = chunk.indices[data_row]
                n = int(chunk.data.num_examples[row])
                assert n == lengths[index]
                np.testing.assert_array_equal(chunk.data.x[row, :n], xs[index])
                np.testing.assert_array_equal(chunk.data.y[row, :n], ys[index])
                assert not np.asarray(chunk.data.x[row, n:]).any()
            seen.extend(chunk.indices)
    assert sorted(seen) == list(range(len(lengths)))


def test_progress_is_told_after_each_chunk(monkeypatch):
    class Recorded(Progress):
        told: ClassVar = []

        def start(self, text, total=None):
            self.told.append((text, total))

        def update(self, done, **fields):
            self.told.append(done)

    x, y, _ = contexts(10)
    monkeypatch.setattr("lintra.regression.chunked._MAX_BYTES", 4 * (x[0].nbytes + y[0].nbytes))
    solve(x, y, model=NAME, progress=Recorded())
    assert Recorded.told == [("contexts", 3), 1, 2, 3]


def correlated(rng, shape, correlation):
    common = rng.normal(size=(*shape[:-1], 1))
    return correlation**0.5 * common + (1 - correlation) ** 0.5 * rng.normal(size=shape)


def uniform_inputs(rng, shape):
    return rng.uniform(size=shape)


def half_correlated_inputs(rng, shape):
    return correlated(rng, shape, 0.5)


def inputs_on_other_scales(rng, shape):
    scale = np.asarray([1e-2, 0.3, 5.0, 40.0, 1e3, 2.0])
    return scale * (rng.normal(size=shape) + np.asarray([0.0, 1.0, -2.0, 0.5, 3.0, 0.0]))


def prediction_errors(draw, noise, *, intercept=0.0, num_contexts=200, **settings):
    """Squared errors of `solve` and of RidgeCV at fresh inputs, on the same draws, and the warnings of `solve`."""
    rng, (n, d) = np.random.default_rng(0), (30, 6)
    x, queries = (draw(rng, (num_contexts, size, d)) for size in (n, 50))
    w = rng.normal(size=(num_contexts, d)) / x.std(axis=(0, 1))
    f, truth = (np.einsum("bnd,bd->bn", inputs, w) + intercept for inputs in (x, queries))
    y = f + noise * rng.normal(size=f.shape)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        weights = solve(x, y, **settings)
    ours, ridge = np.einsum("bnd,bd->bn", queries, weights[:, :d]), RidgeCV(PENALTIES, fit_intercept=False)
    if settings.get("fit_intercept"):
        ours, ridge = ours + weights[:, d:], make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
    theirs = np.asarray([ridge.fit(*context).predict(q) for *context, q in zip(x, y, queries, strict=True)])
    errors = [float(np.mean((prediction - truth) ** 2)) for prediction in (ours, theirs)]
    return *errors, [str(warning.message) for warning in found]


def test_inputs_on_other_scales_with_an_intercept_are_solved_as_well_as_by_ridge():
    settings = {"standardise": True, "fit_intercept": True}
    ours, theirs, _ = prediction_errors(inputs_on_other_scales, 1.0, intercept=3.0, **settings)
    assert ours < 1.3 * theirs


@pytest.mark.parametrize(
    ("draw", "noise", "cause", "remedy"),
    [
        (uniform_inputs, 0.05, "inputs are not standardised", "pass `standardise=True`"),
        (half_correlated_inputs, 0.5, "inputs are strongly correlated", "drop inputs that repeat one another"),
    ],
)
def test_inputs_unlike_those_of_training_are_answered_by_the_bayes_predictor(draw, noise, cause, remedy):
    ours, theirs, (sentence,) = prediction_errors(draw, noise)
    assert ours < 1.3 * theirs
    assert cause in sentence
    assert remedy in sentence
    assert "the Bayes predictor answered" in sentence


@pytest.mark.parametrize("correlation", [0.1, 0.2, 0.3, 0.7, 0.9, 0.99])
def test_no_correlation_of_inputs_makes_answers_much_worse_than_ridge(correlation):
    ours, theirs, _ = prediction_errors(lambda rng, shape: correlated(rng, shape, correlation), 0.3)
    assert ours < 1.3 * theirs


def test_labels_larger_than_in_training_are_told():
    x, y, _ = contexts(30)
    with pytest.warns(UnsoundWarning, match=r"labels are larger than in training.*divide them by their standard"):
        found = solve(x, 1000 * y, model=NAME)
    np.testing.assert_allclose(found, Bayes("uniform(0,5)").weights(GramStatistics.from_data(x, 1000 * y)))


@pytest.mark.parametrize(("n", "d"), [(4, 1), (20, 10), (5, 10)])
@pytest.mark.parametrize("standardise", [False, True])
def test_contexts_as_in_training_are_seldom_doubted(n, d, standardise):
    rng, count = np.random.default_rng(0), 4000
    x, w = rng.normal(size=(count, n, d)), rng.normal(size=(count, d))
    noise = rng.uniform(0, 2 * d**0.5, size=(count, 1)) * rng.normal(size=(count, n))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnsoundWarning)
        solve(x, np.einsum("bnd,bd->bn", x, w) + noise, standardise=standardise, fit_intercept=standardise)
    doubted = int(re.findall(r"On (\d+) of", str(found[0].message))[0]) if found else 0
    assert doubted <= 0.01 * count


def test_typical_contexts_are_those_of_independent_inputs_of_variance_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 20, 10))
    for inputs, share in ((x, (0.9, 0.999)), (0.5 * x, (0, 0.01)), (2 * x, (0, 0)), (x + 1, (0, 0))):
        typical = np.asarray(is_typical(GramStatistics.from_data(inputs, x[..., 0])))
        assert share[0] <= typical.mean() <= share[1]


def test_standardised_contexts_are_those_that_were_standardised_by_hand():
    x, y, _ = contexts(20, 15, 4)
    scale, shift = np.asarray([1e-3, 1.0, 20.0, 1e5]), np.asarray([0.0, 5.0, -100.0, 1e5])
    x, y = x * scale + shift, y + 7
    mean, std = x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)
    by_hand = solve((x - mean) / std, y - y.mean(axis=1, keepdims=True)) / std[:, 0]
    found = solve(x, y, standardise=True, fit_intercept=True)
    np.testing.assert_allclose(found[:, :4], by_hand, rtol=1e-9)
    np.testing.assert_allclose(found[:, 4], y.mean(axis=1) - np.sum(by_hand * mean[:, 0], axis=1), rtol=1e-9)
    root = np.sqrt(np.mean(x**2, axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundWarning)
        only_scaled, expected = solve(x, y, standardise=True), solve(x / root[:, None], y) / root
        by_statistics = solve(GramStatistics.from_data(x, y), standardise=True)
    np.testing.assert_allclose(only_scaled, expected, rtol=1e-6)
    np.testing.assert_allclose(by_statistics, expected, rtol=1e-6)


def test_standardised_contexts_of_many_lengths_do_not_see_their_padding():
    rng = np.random.default_rng(0)
    xs = [3 + 10 * rng.normal(size=(n, 3)) for n in (5, 9, 17, 30)]
    ys = [x.sum(axis=1) + rng.normal(size=len(x)) for x in xs]
    together = solve(xs, ys, standardise=True, fit_intercept=True)
    alone = [solve(x[None], y[None], standardise=True, fit_intercept=True)[0] for x, y in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_input_has_weight_zero(dtype):
    x, y, _ = contexts(5, 12, 3, dtype)
    x = x.copy()
    x[..., 1] = 0.1
    found = solve(x, y, standardise=True, fit_intercept=True)
    assert (found[:, 1] == 0).all()
    assert np.isfinite(found).all()


def test_statistics_cannot_be_centred():
    x, y, _ = contexts(2)
    with pytest.raises(ValueError, match="`fit_intercept` needs the examples"):
        solve(GramStatistics.from_data(x, y), fit_intercept=True)


def test_another_number_of_contexts_compiles_nothing_new():
    x, y, _ = contexts(60)
    wild = FAMILIES["diag"].random(6, dim=10, num_examples=20, scale=3.0, key=KEY)
    compiled = []

    def note(event: str, duration_secs: float, **_: str | int | float) -> None:
        compiled.append(event) if event.endswith("backend_compile_duration") else None

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        counts = []
        for number in (60, 47, 33):
            with pytest.warns(UnsoundWarning, match=f"On {number} of {number} contexts"):
                solve(x[:number], y[:number], model=wild)
            counts.append(len(compiled))
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert counts[0] > 0
    assert counts == [counts[0]] * 3


def adversarial(rng, count, n, d, dtype):
    """Contexts of every kind that goes wrong: collinear, constant, huge, tiny, repeated, empty, spiky."""
    x, y = rng.normal(size=(count, n, d)), rng.normal(size=(count, n))
    kind = rng.integers(0, 9, size=count)
    size = 1e15 if dtype == np.float32 else 1e70
    x[kind == 1] = x[kind == 1][..., :1]
    x[kind == 2] = 1.0
    x[kind == 3] *= size
    x[kind == 4] /= size
    x[kind == 5] = x[kind == 5][:, :1]
    x[kind == 6] = 0.0
    y[kind == 7] *= size
    x[kind == 8] *= np.exp(3 * rng.normal(size=x[kind == 8].shape))
    return x.astype(dtype), y.astype(dtype)


def count_of_bad_answers(batches, size, dtype):
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundWarning)
        return sum(
            int(
                (
                    ~np.isfinite(
                        solve(
                            *adversarial(rng, size, n, d, dtype),
                            model=model,
                            standardise=number % 2 == 1,
                            fit_intercept=number % 2 == 1,
                        )
                    )
                ).sum()
            )
            for number in range(batches)
            for n, d, model in ((20, 10, NAME), (20, 10, FULL), (1, 3, "auto"), (5, 8, "auto"), (12, 3, "auto"))
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_answer_is_not_finite(dtype):
    assert count_of_bad_answers(2, 1000, dtype) == 0


@pytest.mark.slow
def test_no_answer_of_ten_million_is_not_finite():
    assert count_of_bad_answers(40, 25_000, np.float32) == 0
    assert count_of_bad_answers(40, 25_000, np.float64) == 0


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (np.ones((3, 4)), np.ones(3), r"must have shapes \(contexts, n, d\)"),
        (np.ones((3, 4, 2)), np.ones((3, 5)), r"got \(3, 4, 2\) and \(3, 5\)"),
        (np.ones((3, 4, 2)), None, "`y` must be given"),
        (np.full((3, 4, 2), np.nan), np.ones((3, 4)), "Context 0 has values that are not finite"),
        (np.full((3, 4, 2), "a"), np.ones((3, 4)), "`x` must hold real numbers"),
        ([np.ones((3, 2)), np.ones((4, 3))], [np.ones(3), np.ones(4)], r"of context 1 must have shapes \(n, 2\)"),
        ([np.ones((3, 2))], [np.ones(3), np.ones(4)], "got 1 and 2"),
        ([np.ones((3, 2))], 3, "got 1 and int"),
        ([np.ones((3, 2)), np.ones(2)], [np.ones(3), 1.0], "`x` must be an array of numbers, or a list"),
    ],
)
def test_bad_contexts_are_refused_in_a_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve(x, y)


@pytest.mark.parametrize("model", [None, 3, Rescaled(zoo.load(NAME))])
def test_what_is_no_model_is_refused_in_a_sentence(model):
    with pytest.raises(TypeError, match="`model` must be `auto`, a published name, a model file or a model, got"):
        solve(np.ones((1, 2, 3)), np.ones((1, 2)), model=model)


def test_every_specialist_is_there():
    cards = specialists.published().cards
    expected = {specialists.name(d, n) for d in specialists.DIMS for n in specialists.trained_num_examples(d)}
    assert set(cards) == expected
    for name, card in cards.items():
        each = 0.1 if card["context"] < 4 * card["dim"] else 0.04  # of a weight's variance
        assert card["bayes_floor"] < card["adjusted_loss"] < each * card["dim"], name
