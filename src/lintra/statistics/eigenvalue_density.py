"""The density of the eigenvalues of Σ as a quadrature, without sampling."""

import numpy as np
from jaxtyping import Float

_SMALL_PANELS = 30  # halvings of the first panel towards zero


def wishart_quadrature(
    num_examples: int, dim: int, order: int = 16
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Nodes s and weights with `E Σᵢ f(sᵢ) = Σ weights f(s)` over the eigenvalues of Σ ~ Wishart(n, I).

    The eigenvalues have the joint density `Π|sᵢ − sⱼ| Π sᵢ^((n−d−1)/2) e^(−sᵢ/2)`. De Bruijn's formula
    makes its normalisation the Pfaffian of a skew matrix of double integrals, and the derivative of the
    Pfaffian with respect to the weight is the one-point density; no sampling is involved.

    >>> s, weights = wishart_quadrature(20, 10)
    >>> round(float(weights @ s), 6)  # E tr Σ = n d
    200.0
    """
    size = min(num_examples, dim)  # for n < d the other d − n eigenvalues are zero
    r, dr = _panels(num_examples, dim, order)
    functions = _laguerre_functions(r, size, abs(num_examples - dim))
    cumulative = _cumulative(functions, r, order)
    total = functions @ dr
    psi = total[:, None] - 2 * cumulative  # ∫ sign(t − r) of each function
    skew = (functions * dr) @ psi.T
    if size % 2:  # an odd Pfaffian is bordered by the plain integrals
        psi = np.vstack([psi, np.ones_like(r)])
        functions = np.vstack([functions, np.zeros_like(r)])
        skew = np.block([[skew, total[:, None]], [-total[None], np.zeros((1, 1))]])
    inverse = np.linalg.inv((skew - skew.T) / 2)
    density = np.einsum("kj,jr,kr->r", inverse, functions, psi)
    nodes, weights = r**2, density * dr
    if not np.allclose([weights.sum(), weights @ nodes], [size, num_examples * dim], rtol=1e-10, atol=0):
        raise ValueError(
            f"The eigenvalue density for num_examples={num_examples} and dim={dim} is beyond double precision."
        )
    if num_examples < dim:
        nodes, weights = np.append(nodes, 0.0), np.append(weights, dim - num_examples)
    return nodes, weights


def _panels(num_examples: int, dim: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre panels over r = √s, on which the density lies up to a mass below 1e-20."""
    centre, spread = np.sqrt(max(num_examples, dim)), np.sqrt(min(num_examples, dim)) + 8
    num_panels = 48 + min(num_examples, dim) // 2  # enough for every oscillation
    edges = np.linspace(max(centre - spread, 0.0), centre + spread, num_panels + 1)
    if edges[0] == 0:  # eigenvalues near zero matter on every scale
        edges = np.concatenate([[0.0], edges[1] * 0.5 ** np.arange(_SMALL_PANELS, 0, -1), edges[1:]])
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


def _laguerre_functions(r: np.ndarray, size: int, num_excess: int) -> np.ndarray:
    """Functions `pⱼ(r²) r^a e^(−r²/2)`, orthonormal on r > 0: Laguerre polynomials of order a − ½."""
    from scipy.special import gammaln  # takes a third of a second

    order = num_excess - 0.5
    scale = num_excess * np.log(r) - r**2 / 2 - (gammaln(num_excess + 0.5) - np.log(2)) / 2
    previous, current = np.zeros_like(r), np.ones_like(r)
    functions = [np.exp(scale)]
    for j in range(size - 1):
        step = (2 * j + 1 + order - r**2) * current - np.sqrt(j * (j + order)) * previous
        previous, current = current, step / np.sqrt((j + 1) * (j + 1 + order))
        growth = np.maximum(np.abs(current), 1.0)  # kept apart, as the exponential alone would underflow
        previous, current, scale = previous / growth, current / growth, scale + np.log(growth)
        functions.append(current * np.exp(scale))
    return np.asarray(functions)


def _cumulative(functions: np.ndarray, r: np.ndarray, order: int) -> np.ndarray:
    """Integrals from 0 to every node, exact for the polynomial through each panel's values."""
    legendre = np.polynomial.legendre
    nodes, weights = legendre.leggauss(order)
    coefficients = np.linalg.inv(legendre.legvander(nodes, order - 1))
    integrals = np.asarray([legendre.legval(nodes, legendre.legint(c, lbnd=-1)) for c in coefficients.T])
    half = (r[order - 1 :: order] - r[::order]) / (nodes[-1] - nodes[0])
    values = functions.reshape(len(functions), -1, order)
    inside = half[:, None] * np.einsum("fpo,ok->fpk", values, integrals)
    before = np.cumsum(half * (values @ weights), axis=1)
    before = np.concatenate([np.zeros_like(before[:, :1]), before[:, :-1]], axis=1)
    return (before[..., None] + inside).reshape(functions.shape)
