import numpy as np
import pytest

from lintra import solve
from lintra.regression.contexts import group_contexts, padded_chunks
from lintra.statistics.examples import Examples


def test_wide_contexts_are_read_a_few_at_a_time():
    grouped = group_contexts(np.zeros((4096, 1, 150)), np.zeros((4096, 1)), by=lambda dim, n: None)
    (group,) = grouped.groups
    assert max(chunk.num_real for chunk in padded_chunks(group, 2**24)) * 151**2 * 8 <= 2**24


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
def test_bad_contexts_are_rejected_in_a_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve(x, y)
