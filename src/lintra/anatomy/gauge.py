"""What of a model's numbers means something: changes of P and Q that change nothing, and a form free of them.

A layer adds `Σₖ Pₖ G Qₖ` with a symmetric G. So what acts is the tensor S[a,i,j,b], the part of
`Σₖ Pₖ[a,i] Qₖ[j,b]` that is symmetric in i and j: P → cP with Q → Q/c and a mixing of heads leave it as it is. Of
the last layer only the row of the label is read. For FULL a change of basis of the inputs gives another function
with the same loss, since the problem does not change; so does a flip of the label's sign, which is turning all
inputs round.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.models import AbstractModel, Full

Matrices = Float[np.ndarray, "layers heads e e"]


def balanced(model: AbstractModel) -> tuple[Matrices, Matrices]:
    """P and Q of Eq. (3) with heads that are orthogonal, of equal size in P and Q, the largest first.

    Heads that do nothing are zero; the largest entry of every P is positive; rows of the last layer that are never
    read are zero.

    >>> import jax
    >>> P, Q = balanced(Full.random(2, num_heads=2, key=jax.random.key(0)))
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


def action(model: AbstractModel) -> Float[np.ndarray, "layers e e e e"]:
    """The tensor S of every layer, without what is never read: equal for two models that are one function.

    >>> import jax
    >>> model = Full.random(2, dim=3, key=jax.random.key(0))
    >>> doubled = Full(2 * model.p, model.q / 2, model.context)
    >>> bool(np.allclose(action(model), action(doubled)))
    True
    """
    P, Q = _read(model)
    outer = np.einsum("lhai,lhjb->laijb", P, Q)
    return (outer + outer.transpose(0, 1, 3, 2, 4)) / 2


@dataclass(frozen=True)
class Equivalence:
    """How two models are the same.

    Attributes:
        kind: `same function`, `same up to a symmetry of the problem`, or `different`.
        apart: What is left between their tensors, as a share of the larger.
        rotation: The change of basis that takes the first to the second.
    """

    kind: str
    apart: float
    rotation: Float[np.ndarray, "d d"]


def compare(first: AbstractModel, second: AbstractModel, tolerance: float = 1e-8) -> Equivalence:
    """Whether two models are one function, or one up to a change of basis.

    >>> import jax
    >>> model = Full.random(2, dim=3, key=jax.random.key(0))
    >>> compare(model, transformed(model, np.eye(3)[[2, 0, 1]])).kind
    'same up to a symmetry of the problem'
    """
    if (first.num_layers, first.dim) != (second.num_layers, second.dim):
        raise ValueError("`first` and `second` must have the same number of layers and inputs.")
    one, other = action(first), action(second)
    apart = _apart(one, other)
    if apart <= tolerance:
        return Equivalence("same function", apart, np.eye(first.dim))
    turned = {
        _apart(_turned(one, rotation), other): rotation
        for rotation in [np.eye(first.dim), *_rotations(one, other)]
    }
    apart = min(turned)
    kind = "same up to a symmetry of the problem" if apart <= tolerance else "different"
    return Equivalence(kind, apart, turned[apart])


def transformed(model: AbstractModel, rotation: Float[np.ndarray, "d d"]) -> Full:
    """The model that does in another basis of the inputs what this one does."""
    P, Q = model.matrices()
    turn = _block(rotation)
    return Full.from_matrices(turn @ P @ turn.T, turn @ Q @ turn.T, model.context)


def _block(rotation: np.ndarray) -> np.ndarray:
    """The basis of tokens: the label stays."""
    turn = np.eye(len(rotation) + 1)
    turn[:-1, :-1] = rotation
    return turn


def _turned(tensor: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    turn = _block(rotation)
    return np.einsum("az,iy,jx,bw,lzyxw->laijb", turn, turn, turn, turn, tensor, optimize=True)


def _rotations(one: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """Changes of basis that may take one to the other: by eigenvectors of a matrix that turns with them.

    Signs of eigenvectors follow from a second such matrix.
    """
    pair = []
    for tensor in (one, other):
        turning = np.einsum("laiib->lab", tensor[:, :, :-1, :-1, :])
        vectors = [tensor[layer, :-1, -1, -1, -1] for layer in range(len(tensor))]
        along = [tensor[layer, -1, :-1, -1, -1] + tensor[layer, -1, -1, -1, :-1] for layer in range(len(tensor))]
        weights = 1.0 + np.arange(len(tensor)) / len(tensor)
        matrix = np.einsum("l,lab->ab", weights, turning[:, :-1, :-1])
        inner = np.einsum("l,lij->ij", weights, tensor[:, -1, :-1, :-1, -1])
        matrix = matrix / max(np.linalg.norm(matrix), 1e-300) + inner / max(np.linalg.norm(inner), 1e-300)
        pair.append((np.linalg.eigh(matrix + matrix.T)[1], matrix - matrix.T, np.asarray(vectors + along).sum(0)))
    (from_basis, from_odd, from_vector), (to_basis, to_odd, to_vector) = pair
    signs = np.sign((from_vector @ from_basis) * (to_vector @ to_basis))
    seen = np.abs(from_vector @ from_basis) > 1e-9 * max(np.abs(from_vector).max(), 1e-300)
    by_odd = _signs(from_basis.T @ from_odd @ from_basis, to_basis.T @ to_odd @ to_basis)
    choices = [np.where(seen, signs, 1.0), by_odd, -by_odd]
    return [(to_basis * np.where(choice == 0, 1.0, choice)) @ from_basis.T for choice in choices]


def _signs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Signs s with `other[i,j] = sᵢ sⱼ one[i,j]`, along the largest entries from the first on."""
    dim = len(one)
    signs, left = np.zeros(dim), np.arange(1, dim)
    signs[0] = 1.0
    while len(left):
        known = np.flatnonzero(signs)
        strength = np.abs(one[np.ix_(known, left)])
        row, column = np.unravel_index(strength.argmax(), strength.shape)
        here, there, left = known[row], left[column], np.delete(left, column)
        signs[there] = signs[here] * (np.sign(one[here, there] * other[here, there]) or 1.0)
    return signs


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one - other) / max(np.linalg.norm(one), np.linalg.norm(other), 1e-300))
