"""What the layers of a model consist of: ω of DIAG, of which GD++ has two, and what is in none of them.

A layer `P G Q` with a symmetric G is the tensor `S_aijb = ½ (P_ai Q_jb + P_aj Q_ib)`. Its orthogonal projection on
the tensors of DIAG, `P = I_x` or `e_y e_yᵀ` and Q alike, gives the four ω of any model, and those of DIAG exactly.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lintra.models.base import AbstractModel
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus

Tensors = Float[np.ndarray, "layers e e e e"]


@dataclass(frozen=True)
class LayerTensors:
    """Projection of a model's layers on those of DIAG.

    Attributes:
        omega: `[[ω_xx, ω_xy], [ω_yx, ω_yy]]` per layer, for a Gram matrix divided by n.
        gdpp_share: Share of ω_xx and ω_yx in ‖S‖², all layers together.
        label_share: Share of ω_xy and ω_yy, by which a model attends to labels.
        rest_share: Share of what is not of DIAG's form, such as entries off the diagonal.
    """

    omega: Float[np.ndarray, "layers 2 2"]
    gdpp_share: float
    label_share: float
    rest_share: float

    @classmethod
    def from_model(cls, model: AbstractModel, label_scale: float = 1.0) -> "LayerTensors":
        """Project a model.

        Args:
            model: The model, of any family.
            label_scale: Labels are divided by this before shares are measured: with their standard deviation,
                entries of x and y count alike. Default: 1.
        """
        full = model.for_label_scale(1 / label_scale).to_full()
        assert isinstance(full, Full)
        P, Q = np.array(full.p, float), np.array(full.q, float)
        P[-1, :, :-1] = 0  # of the last layer only the label is read
        if len(P) == 1:
            Q[..., -1] = 0  # the query's label, which is zero
        S, forms = _tensors(P, Q), _forms(P.shape[-1])
        omega = np.stack(  # (2, 2, layers)
            [[np.tensordot(S, form, axes=4) / np.sum(form**2) for form in row] for row in forms]
        )
        sizes = np.asarray([[np.sum(form**2) for form in row] for row in forms])
        gdpp, labels = (np.sum(omega**2, axis=-1) * sizes / np.sum(S**2)).sum(axis=0).tolist()
        return cls(np.moveaxis(omega, -1, 0), gdpp, labels, 1 - gdpp - labels)

    def to_gdpp(self, num_examples: int, dim: int) -> GDPlusPlus:
        """GD++ with the same ω_xx and ω_yx, which do not depend on the scale of labels."""
        return GDPlusPlus(jnp.asarray(self.omega[:, None, :, 0]), num_examples, dim)


def _tensors(P: np.ndarray, Q: np.ndarray) -> Tensors:
    outer = np.einsum("lhai,lhjb->laijb", P, Q)
    return (outer + outer.transpose(0, 1, 3, 2, 4)) / 2


def _forms(token_dim: int) -> list[list[Float[np.ndarray, "e e e e"]]]:
    """The tensors of ω_xx, ω_xy, ω_yx and ω_yy, which are orthogonal, by rows of P and columns of Q."""
    label = np.zeros((token_dim, token_dim))
    label[-1, -1] = 1.0
    blocks = np.eye(token_dim) - label, label
    return [[_tensors(p[None, None], q[None, None])[0] for q in blocks] for p in blocks]
