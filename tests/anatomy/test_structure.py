import numpy as np
import pytest

from anatomy_helpers import contexts, small
from lintra.anatomy import matrix_structures, omegas
from lintra.models import Full


def test_omegas_of_full_are_the_average_over_all_bases():
    model = small("full", num_heads=2)
    gram, layer = np.asarray(contexts(1).gram[0]), 0
    P, Q = (matrix[layer] for matrix in model.matrices())
    draws, rng = 40_000, np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(draws, 4, 4)))
    block = np.tile(np.eye(5), (draws, 1, 1))
    block[:, :4, :4] = turns[0] * np.sign(np.einsum("bii->bi", turns[1]))[:, None, :]
    block[:, 4, 4] = rng.choice([-1.0, 1.0], size=draws)
    seen = block.transpose(0, 2, 1) @ gram @ block
    total = np.sum([block @ p @ seen @ q @ block.transpose(0, 2, 1) for p, q in zip(P, Q, strict=True)], axis=0)
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
    assert isinstance(model, Full)
    assert all(one.diagonal_share > 1 - 1e-12 for one in matrix_structures(model))
    u, v = np.asarray([1.0, -1.0, 1.0, -1.0, 0.0]), np.asarray([1.0, 1.0, -1.0, -1.0, 0.0])
    bent = Full(model.p + 0.1 * np.outer(u, v), model.q, model.num_examples)
    first = next(one for one in matrix_structures(bent) if (one.layer, one.matrix) == (1, "P"))
    assert first.diagonal_share < 1
    assert first.rest_rank == pytest.approx(1.0, abs=1e-9)
