"""The discovered algorithm as a short program that needs NumPy alone, as pseudo-code, and as LaTeX."""

import numpy as np

from lintra.anatomy.canonical import canonical_form
from lintra.anatomy.structure import omegas
from lintra.models.base import AbstractModel
from lintra.models.damping import SCALED_RANGE
from lintra.problem.noise import parse_noise
from lintra.runtime.escaping import in_docstring, in_latex, one_line

FORMATS = ("numpy", "pseudo-code", "latex")

_HEAD = '''"""{title}: an algorithm for noisy linear regression that a linear transformer found.

It was trained on {n} examples at a time of {dim} inputs of mean 0 and variance 1, and labels with noise of
standard deviation {noise}. Weights of the inputs have variance 1. Exported by lintra; needs NumPy alone.
"""

import numpy as np

'''

_TAIL = '''

def predict(X, y, queries):
    """Labels for queries (m, d), from examples X (n, d) and y (n,)."""
    return np.asarray(queries) @ fit(X, y)
'''

_DAMPING = '''# the range of training: the sum of squared inputs of a context and, in each layer, the 4-norm of the
# eigenvalues of inputs.T @ inputs and the sum of squared residuals
TRACE = {trace}
RHO = np.array({rho})
KAPPA = np.array({kappa})


def divisor(square_inputs, square_residuals, layer):
    """How far a layer is outside of the range of training; 1 inside."""
    norm = np.linalg.norm(np.linalg.eigvalsh(square_inputs), ord=4)
    return max(1.0, norm / RHO[layer], square_residuals / KAPPA[layer])


def scaling(square_inputs):
    """The number that inputs.T @ inputs of a context are divided by; 1 inside of the range of training."""
    return max(np.trace(square_inputs) / TRACE, min(divisor(square_inputs, 0.0, 0), {scaled_range}))


'''

_DIAGONAL = '''# one row a layer: preconditioner (xx), momentum (xy), step (yx), rescaling (yy)
LAYERS = np.array({layers})


def fit(X, y):
    """Weights w that predict x @ w, from examples X (n, d) and y (n,)."""
    X, y = np.asarray(X, float), np.asarray(y, float)
{scale}    eye = np.eye(X.shape[1])
    M, u, w, a = eye, 0 * eye[0], 0 * eye[0], 1.0
    for {layer}:
        inputs = X @ M.T + np.outer(y, u)  # the examples, preconditioned and moved along u
        residuals = a * y - X @ w
{damp}        gradient = residuals @ inputs
        rescaling = 1 + yy * (residuals @ residuals)  # less than 1 where yy < 0: shrink, the more the more noise
        preconditioner = eye + xx * (inputs.T @ inputs)
        M, u, w, a = (
            preconditioner @ M - xy * np.outer(gradient, w),
            preconditioner @ u + xy * a * gradient,  # momentum
            rescaling * w - yx * M.T @ gradient,  # a step against the gradient, since yx < 0
            rescaling * a + yx * (gradient @ u),
        )
    return w
'''

_GDPP = '''# one row a layer: preconditioner (xx), step (yx)
LAYERS = np.array({layers})


def fit(X, y):
    """Weights w that predict x @ w, from examples X (n, d) and y (n,)."""
    X, y = np.asarray(X, float), np.asarray(y, float)
{scale}    M, w = np.eye(X.shape[1]), np.zeros(X.shape[1])
    for {layer}:
        inputs = X @ M.T  # the examples, preconditioned
        residuals = y - X @ w
{damp}        gradient = residuals @ inputs
        M, w = M + xx * inputs.T @ inputs @ M, w - yx * M.T @ gradient
    return w
'''

_FULL = '''# P and Q of every layer and head, of shape (layers, heads, d + 1, d + 1)
P = np.array({p})
Q = np.array({q})


def fit(X, y):
    """Weights w that predict x @ w, from examples X (n, d) and y (n,)."""
    tokens = np.column_stack([X, y]).astype(float)
    gram, moved = tokens.T @ tokens, np.eye(tokens.shape[1])
{scale}    for {layer}:
        layer = np.eye(len(gram)) + (p @ {gram} @ q).sum(axis=0)  # moves every token
        gram, moved = layer @ gram @ layer.T, layer @ moved
    return -moved[-1, :-1]
'''

_TITLE = "A model"
_UNKNOWN = "unknown"


def export(model: AbstractModel, *, title: str = _TITLE, noise: str = _UNKNOWN, form: str = "numpy") -> str:
    """The algorithm as text.

    Title and prior may come from a file of a stranger: they cannot become code of the program or of LaTeX.

    Arguments:
        model: Any linear transformer.
        title: What it is called; any text, which is escaped.
        noise: The noise prior that it was trained on, or `unknown`.
        form: `numpy`, `pseudo-code` or `latex`.

    >>> import jax
    >>> from lintra.models import GDPlusPlus
    >>> program = export(GDPlusPlus.random(2, dim=3, key=jax.random.key(0)))
    >>> space = {}
    >>> exec(program, space)
    >>> space["fit"](np.eye(3), np.ones(3)).shape
    (3,)
    """
    if form not in FORMATS:
        raise ValueError(f"`form` must be one of {', '.join(FORMATS)}, got {form!r}.")
    prior = _UNKNOWN if noise == _UNKNOWN else str(parse_noise(noise))
    title = title.strip() or _TITLE
    if form == "pseudo-code":
        return _pseudo_code(model, one_line(title))
    if form == "latex":
        return _latex(model, in_latex(title))
    head = _HEAD.format(title=in_docstring(title), n=model.num_examples, dim=model.dim, noise=prior)
    return head + _program(model) + _TAIL


def _program(model: AbstractModel) -> str:
    head = ""
    if (damping := model.damping) is not None:
        rho, kappa, trace = (_literal(np.asarray(x)) for x in (damping.rho, damping.kappa, damping.trace))
        head = _DAMPING.format(rho=rho, kappa=kappa, trace=trace, scaled_range=SCALED_RANGE)
    if model.family == "full":
        p, q = canonical_form(model)
        return head + _FULL.format(p=_literal(p), q=_literal(q), **_full_parts(damping is not None))
    if model.family == "gd++":
        layers, names = omegas(model)[:, [0, 2]], "xx, yx"
        return head + _GDPP.format(layers=_literal(layers), **_diagonal_parts(names, damping is not None))
    parts = _diagonal_parts("xx, xy, yx, yy", damping is not None)
    return head + _DIAGONAL.format(layers=_literal(omegas(model)), **parts)


def _full_parts(is_damped: bool) -> dict[str, str]:
    """The lines of FULL's program that damping changes."""
    if not is_damped:
        return {"scale": "", "layer": "p, q in zip(P, Q)", "gram": "gram"}
    return {
        "scale": "    gram = gram / scaling(gram[:-1, :-1])\n",
        "layer": "number, (p, q) in enumerate(zip(P, Q))",
        "gram": "(gram / divisor(gram[:-1, :-1], gram[-1, -1], number))",
    }


def _diagonal_parts(names: str, is_damped: bool) -> dict[str, str]:
    """The lines of DIAG's or GD++'s program that damping changes."""
    if not is_damped:
        return {"scale": "", "layer": f"{names} in LAYERS", "damp": ""}
    return {
        "scale": "    scale = scaling(X.T @ X) ** 0.5\n    X, y = X / scale, y / scale\n",
        "layer": "number, rates in enumerate(LAYERS)",
        "damp": f"        {names} = rates / divisor(inputs.T @ inputs, residuals @ residuals, number)\n",
    }


def _literal(array: np.ndarray) -> str:
    """An array as Python text that gives the same numbers back."""
    if array.ndim == 0:
        return repr(float(array)) if np.isfinite(array) else "np.inf"
    if array.ndim == 1:
        return "[" + ", ".join(map(_literal, array)) + "]"
    rows = ",\n".join(_literal(part) for part in array)
    return "[\n" + "\n".join("    " + line for line in rows.splitlines()) + ",\n]"


_STEPS = {
    "diag": (
        "inputs    ← X Mᵀ + y uᵀ",
        "residuals ← a y − X w",
        "g         ← inputsᵀ residuals",
        "r         ← 1 + ω_yy ‖residuals‖²                 (rescaling)",
        "A         ← I + ω_xx inputsᵀ inputs               (preconditioner)",
        "M, u, w, a ← A M − ω_xy g wᵀ,",
        "             A u + ω_xy a g,                      (momentum)",
        "             r w − ω_yx Mᵀ g,                     (step)",
        "             r a + ω_yx ⟨g, u⟩",
    ),
    "gd++": ("inputs ← X Mᵀ", "g ← inputsᵀ (y − X w)", "M, w ← (I + ω_xx inputsᵀ inputs) M, w − ω_yx Mᵀ g"),
    "full": ("T ← I + Σₖ Pₖ G Qₖ", "G, C ← T G Tᵀ, T C", "w ← −(last row of C, without its last entry)"),
}
_START = {
    "diag": "M, u, w, a ← I, 0, 0, 1",
    "gd++": "M, w ← I, 0",
    "full": "G, C ← Σᵢ eᵢ eᵢᵀ with eᵢ = (xᵢ, yᵢ), I",
}


_DIVISION = {
    "diag": "ω ← ω / r: Σ = inputsᵀ inputs, λ = ‖residuals‖²,",
    "gd++": "ω ← ω / r: Σ = inputsᵀ inputs, λ = ‖y − X w‖²,",
    "full": "in T, G ← G / r: Σ and λ the blocks of G for inputs and label,",
}


def _pseudo_code(model: AbstractModel, title: str) -> str:
    lines = [f"{title}", "", "input: examples X (n × d), y (n)", _START[model.family]]
    if model.damping is not None:
        trace = float(model.damping.trace)
        lines += [
            f"X, y ← X, y divided by √max(1, tr Σ / {trace:.5g}, min((tr Σ⁴)^¼ / ρ, {SCALED_RANGE})), Σ = XᵀX"
        ]
    lines += [f"for layer 1 … {model.num_layers}, with the numbers below:"]
    if model.damping is not None:
        lines += [f"    {_DIVISION[model.family]} with r = max(1, (tr Σ⁴)^¼ / ρ, λ / κ)"]
    lines += [f"    {line}" for line in _STEPS[model.family]]
    lines += ["output: w, which predicts ⟨w, x⟩", ""]
    numbers = "rotation averages of P G Q" if model.family == "full" else "as printed, for a sum over examples"
    lines += [f"ω, {numbers}:", "layer        ω_xx         ω_xy         ω_yx         ω_yy"]
    lines += [
        f"{layer:5d} " + " ".join(f"{value:12.5g}" for value in row) for layer, row in enumerate(omegas(model), 1)
    ]
    if (damping := model.damping) is not None:
        lines += ["", "thresholds of damping:", "layer           ρ            κ"]
        pairs = zip(np.asarray(damping.rho), np.asarray(damping.kappa), strict=True)
        lines += [f"{layer:5d} {rho:12.5g} {kappa:12.5g}" for layer, (rho, kappa) in enumerate(pairs, 1)]
    return "\n".join(lines) + "\n"


def _latex(model: AbstractModel, title: str) -> str:
    rows = [
        f"{layer} & " + " & ".join(f"{value:.4g}" for value in row) + r" \\"
        for layer, row in enumerate(omegas(model), 1)
    ]
    update = {
        "diag": r"""M &\gets (I + \omega_{xx}\Sigma^l) M - \omega_{xy}\,\alpha^l w^\top \\
u &\gets (I + \omega_{xx}\Sigma^l) u + \omega_{xy}\,a\,\alpha^l \\
w &\gets (1 + \omega_{yy}\lambda^l) w - \omega_{yx} M^\top \alpha^l \\
a &\gets (1 + \omega_{yy}\lambda^l) a + \omega_{yx} \langle \alpha^l, u \rangle""",
        "gd++": r"""M &\gets (I + \omega_{xx}\Sigma^l) M \\
w &\gets w - \omega_{yx} M^\top \alpha^l""",
        "full": r"""T &= I + \textstyle\sum_k P_k G Q_k \\
G &\gets T G T^\top, \qquad C \gets T C, \qquad w = -C_{d+1,1:d}""",
    }[model.family]
    damped_lines = []
    if (damping := model.damping) is not None:
        divided = r"G" if model.family == "full" else r"\omega"
        thresholds = ",\\ ".join(f"{value:.4g}" for value in np.asarray(damping.rho))
        damped_lines = [
            rf"\\ {divided} &\text{{ is divided by }}",
            r"\max(1, (\operatorname{tr} (\Sigma^l)^4)^{1/4} / \rho_l, \lambda^l / \kappa_l),",
            rf"\quad \rho = ({thresholds})",
        ]
    return "\n".join(
        [
            f"% {title}",
            r"\begin{align*}",
            update,
            *damped_lines,
            r"\end{align*}",
            r"\begin{tabular}{rrrrr}",
            r"layer & $\omega_{xx}$ & $\omega_{xy}$ & $\omega_{yx}$ & $\omega_{yy}$ \\ \hline",
            *rows,
            r"\end{tabular}",
            "",
        ]
    )
