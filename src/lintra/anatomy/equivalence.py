"""Whether two models are one function, or one up to a rotation of the inputs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.anatomy.canonical import effective_tensor
from lintra.kernel.precision import in_64_bits
from lintra.models.base import AbstractModel
from lintra.models.full import Full


@dataclass(frozen=True)
class Equivalence:
    """How two models are the same.

    Attributes:
        kind: `same function`, `same up to a symmetry of the problem`, or `different`.
        difference: What is left between their tensors, as a share of the larger.
        rotation: The change of basis that takes the first to the second.
    """

    kind: str
    difference: float
    rotation: Float[np.ndarray, "d d"]


def compare(first: AbstractModel, second: AbstractModel, tolerance: float = 1e-8) -> Equivalence:
    """Whether two models are one function, or one up to a change of basis.

    >>> import jax
    >>> model = Full.random(2, dim=3, key=jax.random.key(0))
    >>> compare(model, rotate_inputs(model, np.eye(3)[[2, 0, 1]])).kind
    'same up to a symmetry of the problem'
    """
    if (first.num_layers, first.dim) != (second.num_layers, second.dim):
        raise ValueError("`first` and `second` must have the same number of layers and inputs.")
    one, other = effective_tensor(first), effective_tensor(second)
    difference = _relative_difference(one, other)
    if difference <= tolerance:
        return Equivalence("same function", difference, np.eye(first.dim))
    turned = {
        _relative_difference(_turned(one, rotation), other): rotation
        for rotation in [np.eye(first.dim), *_rotations(one, other)]
    }
    difference = min(turned)
    kind = "same up to a symmetry of the problem" if difference <= tolerance else "different"
    return Equivalence(kind, difference, turned[difference])


def rotate_inputs(model: AbstractModel, rotation: Float[np.ndarray, "d d"]) -> Full:
    """The model that does in another basis of the inputs what this one does."""
    P, Q = model.matrices()
    turn = _block(rotation)
    with in_64_bits():
        return Full.from_matrices(turn @ P @ turn.T, turn @ Q @ turn.T, model.num_examples)


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
        fixed = np.flatnonzero(signs)
        strength = np.abs(one[np.ix_(fixed, left)])
        row, column = np.unravel_index(strength.argmax(), strength.shape)
        here, there, left = fixed[row], left[column], np.delete(left, column)
        signs[there] = signs[here] * (np.sign(one[here, there] * other[here, there]) or 1.0)
    return signs


def _relative_difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one - other) / max(np.linalg.norm(one), np.linalg.norm(other), 1e-300))
