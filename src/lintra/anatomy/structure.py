"""A model's numbers, read: the four ω of every layer, and how diagonal P and Q are, Figure 4 in numbers."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lintra.anatomy.canonical import canonical_form, effective_tensor
from lintra.display import Row
from lintra.models.base import AbstractModel

OMEGAS = ("xx", "xy", "yx", "yy")
"""The four ω of Eq. (9): what moves, and by what."""
_ROUNDING = 1e-12  # of the size of a matrix


def omegas(model: AbstractModel) -> Float[np.ndarray, "layers 4"]:
    """`ω_xx, ω_xy, ω_yx, ω_yy` per layer as printed, on unscaled tokens; zero where a last layer's is never read.

    For FULL they are the average over all bases of the inputs and both signs of the label, which is the member of
    DIAG that the layer acts like on the whole.

    >>> import jax
    >>> from lintra.models import Diagonal
    >>> model = Diagonal.random(2, key=jax.random.key(0))
    >>> bool(np.allclose(omegas(model)[0], np.ravel(model.omega[0]) / model.num_examples))
    True
    """
    tensor = effective_tensor(model)
    dim = model.dim
    inner = tensor[:, :-1, :-1, :-1, :-1]
    along, across = np.einsum("laabb->l", inner), np.einsum("laiia->l", inner)
    # an average over bases is t (δ_ai δ_jb + δ_aj δ_ib) + s δ_ab δ_ij, found from its two traces
    t = (dim * along - across) / (dim * (dim * (dim + 1) - 2)) if dim > 1 else along / 2
    xy = _trace(tensor[:, :-1, :-1, -1, -1])
    yx = _trace(tensor[:, -1, -1, :-1, :-1])
    return np.column_stack([2 * t, 2 * xy / dim, 2 * yx / dim, tensor[:, -1, -1, -1, -1]])


def _trace(matrices: Float[np.ndarray, "layers d d"]) -> Float[np.ndarray, " layers"]:
    return np.einsum("laa->l", matrices)


@dataclass(frozen=True)
class MatrixStructure:
    """How diagonal one matrix is.

    Attributes:
        layer: From 1.
        head: From 1, the largest first.
        matrix: `P` or `Q`.
        size: Its Frobenius norm.
        diagonal_share: Of its square, what lies on the diagonal of Eq. (8), one number for all inputs and one for
            the label.
        rest: Singular values of what is left, as shares of its size.
    """

    layer: int
    head: int
    matrix: str
    size: float
    diagonal_share: float
    rest: tuple[float, ...]

    @property
    def rest_rank(self) -> float:
        """Effective number of singular values of the rest, `(Σ s²)² / Σ s⁴`; 0 if the rest is rounding."""
        squares = np.where(np.asarray(self.rest) > _ROUNDING, self.rest, 0.0) ** 2
        return float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else 0.0

    def to_row(self) -> Row:
        """Return a row of a table."""
        names = ("layer", "head", "matrix", "size", "diagonal_share", "rest_rank")
        return {name: getattr(self, name) for name in names} | {"largest_rest": self.rest[0]}


def matrix_structures(model: AbstractModel) -> list[MatrixStructure]:
    """Return the structure of every P and Q in canonical form, without those that are zero."""
    structures = []
    for name, matrices in zip("PQ", canonical_form(model), strict=True):
        for layer, heads in enumerate(matrices, 1):
            structures += [
                _structure(layer, head, name, matrix) for head, matrix in enumerate(heads, 1) if matrix.any()
            ]
    return sorted(structures, key=lambda one: (one.layer, one.head, one.matrix))


def _structure(layer: int, head: int, name: str, matrix: np.ndarray) -> MatrixStructure:
    ends = np.diag(matrix)
    diagonal = np.diag(np.append(np.full(len(ends) - 1, ends[:-1].mean()), ends[-1]))
    size = float(np.linalg.norm(matrix))
    rest = np.linalg.svd(matrix - diagonal, compute_uv=False) / size
    return MatrixStructure(
        layer, head, name, size, float((np.linalg.norm(diagonal) / size) ** 2), tuple(map(float, rest))
    )
