"""Very many regressions at once: the same numbers as one by one, from any source, and safe on any data."""

import re
import warnings
from typing import ClassVar

import jax
import numpy as np
import pytest

from lintra import GramStatistics, solve, zoo
from lintra.baselines import Bayes
from lintra.models import FAMILIES, Rescaled
from lintra.regression.soundness import UnsoundWarning, is_typical
from lintra.runtime.progress import Progress
from regression_helpers import FULL, KEY, NAME, contexts


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
    model = Rescaled(zoo.load(NAME).with_damping())
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


@pytest.mark.parametrize(("dtype", "label_scale"), [(np.float32, 1e-25), (np.float32, 1e30), (np.float64, 1e-170)])
def test_labels_may_be_very_small_and_very_large(dtype, label_scale):
    x, y, _ = contexts(dtype=dtype)
    np.testing.assert_allclose(
        solve(x, y * dtype(label_scale)) / dtype(label_scale), solve(x, y), rtol=1e-3, atol=1e-4
    )


def test_what_explodes_is_answered_by_the_bayes_predictor_and_reported():
    x, y, _ = contexts(30)
    wild = FAMILIES["diag"].random(6, dim=10, num_examples=20, scale=3.0, key=KEY)
    with pytest.warns(UnsoundWarning, match=r"On 30 of 30 contexts \(the first is number 0\)"):
        found = solve(x, y, model=wild)
    np.testing.assert_allclose(found, Bayes("uniform(0,5)").weights(GramStatistics.from_data(x, y)), rtol=1e-9)


def test_progress_is_reported_after_each_chunk(monkeypatch):
    class Recorded(Progress):
        calls: ClassVar = []

        def start(self, text, total=None):
            self.calls.append((text, total))

        def update(self, done, **fields):
            self.calls.append(done)

    x, y, _ = contexts(10)
    monkeypatch.setattr("lintra.regression.chunked._MAX_BYTES", 4 * (x[0].nbytes + y[0].nbytes))
    solve(x, y, model=NAME, progress=Recorded())
    assert Recorded.calls == [("contexts", 3), 1, 2, 3]


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


@pytest.mark.parametrize("model", [None, 3, Rescaled(zoo.load(NAME))])
def test_what_is_no_model_is_rejected_in_a_sentence(model):
    with pytest.raises(TypeError, match="`model` must be `auto`, a published name, a model file or a model, got"):
        solve(np.ones((1, 2, 3)), np.ones((1, 2)), model=model)
