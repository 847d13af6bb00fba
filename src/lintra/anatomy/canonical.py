"""P and Q in a canonical form, free of what changes no prediction, and the effective tensor."""

import numpy as np
from jaxtyping import Float

from lintra.models.base import AbstractModel

Matrices = Float[np.ndarray, "layers heads e e"]


def canonical_form(model: AbstractModel) -> tuple[Matrices, Matrices]:
    """P and Q of Eq. (3) with heads that are orthogonal, of equal size in P and Q, the largest first.

    Heads that do nothing are zero; the largest entry of every P is positive; rows of the last layer that are never
    read are zero.

    >>> import jax
    >>> from lintra.models import Full
    >>> P, Q = canonical_form(Full.random(2, num_heads=2, key=jax.random.key(0)))
    >>> bool(np.isclose(np.linalg.norm(P[0, 0]), np.linalg.norm(Q[0, 0])))
    True
    """
    P, Q = _read(model)
    for layer in range(len(P)):
        P[layer], Q[layer] = _orthogonal_heads(P[layer], Q[layer])
    return P, Q


def _read(model: AbstractModel) -> tuple[Matrices, Matrices]:
    """P and Q with zeros where the last layer's rows are never read."""
    P, Q = (np.array(matrix) for matrix in model.matrices())
    P[-1, :, :-1] = 0
    return P, Q


def _orthogonal_heads(P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The heads of one layer by singular values of `Σₖ vec(Pₖ) vec(Qₖ)ᵀ`, which mixing leaves as it is."""
    heads, shape = len(P), P.shape
    left, right = np.linalg.qr(P.reshape(heads, -1).T), np.linalg.qr(Q.reshape(heads, -1).T)
    u, sizes, v = np.linalg.svd(left[1] @ right[1].T)
    new_p = (left[0] @ u * np.sqrt(sizes)).T.reshape(shape)
    new_q = (right[0] @ v.T * np.sqrt(sizes)).T.reshape(shape)
    largest = np.abs(new_p).reshape(heads, -1).argmax(axis=1)
    sign = np.sign(new_p.reshape(heads, -1)[np.arange(heads), largest])
    sign = np.where(sign == 0, 1.0, sign)[:, None, None]
    return sign * new_p, sign * new_q


def effective_tensor(model: AbstractModel) -> Float[np.ndarray, "layers e e e e"]:
    """The tensor S of every layer, without what is never read: equal for two models that are one function.

    >>> import jax
    >>> from lintra.models import Full
    >>> model = Full.random(2, dim=3, key=jax.random.key(0))
    >>> doubled = Full(2 * model.p, model.q / 2, model.num_examples)
    >>> bool(np.allclose(effective_tensor(model), effective_tensor(doubled)))
    True
    """
    P, Q = _read(model)
    outer = np.einsum("lhai,lhjb->laijb", P, Q)
    return (outer + outer.transpose(0, 1, 3, 2, 4)) / 2
