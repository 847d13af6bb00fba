"""What is best: one layer, polynomials in Σ, known noise and unknown noise; and what more heads are worth."""

import jax
import jax.numpy as jnp
import numpy as np

from lintra import zoo
from lintra.baselines import baseline
from lintra.baselines.bayes import Bayes
from lintra.baselines.ridge import ConstantRidge
from lintra.evaluation import closed_form, paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.bayes_excess import excess
from lintra.models import families
from lintra.models.full import Full
from lintra.models.gdpp import GDPlusPlus
from lintra.predictor import AbstractContextwise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.statistics.eigenvalue_density import wishart_quadrature
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import sample_statistics
from lintra.statistics.spectrum import Spectrum
from lintra.theory.check import Check, ClaimResult

_NOISE = "uniform(0,5)"
_ERRORS = 4
_SEQUENCES = 65_536


def one_layer(extra: float = 1.0) -> ClaimResult:
    """The best single layer is `ω_yx = −1/(n + d + 1 + E[σ²])`, for all three families; nearby ones are worse."""
    problem = NoisyRegression(noise=_NOISE)
    n, d, moment = problem.num_examples, problem.dim, problem.noise.second_moment
    rate = -1 / (n + d + extra + moment)

    closed = closed_form.one_layer_loss(problem)

    def loss(rate: float) -> float:
        return exact_loss(GDPlusPlus(np.asarray([[[0.0, n * rate]]]), n, d), problem)

    step = 1e-3 * abs(rate)
    gradient = (loss(rate + step) - loss(rate - step)) / (2 * step) * abs(rate) / loss(rate)
    claims = [
        Check("one-layer", "loss of the best rate, against the closed form", loss(rate), closed, 1e-9),
        Check("one-layer", "slope of the loss there", gradient, 0.0, 1e-8),
    ]
    model = GDPlusPlus(np.asarray([[[0.0, n * rate]]]), n, d).to_full()
    statement = "largest slope in an entry of FULL's P or Q there, in standard errors"
    claims.append(Check("one-layer", statement, _full_gradient(model), 0.0, 5.0))
    for family in families.PAPER_FAMILIES:
        card = zoo.card(f"{family}-1-{_NOISE}")
        best = closed_form.adjusted(closed, problem)
        statement = f"adjusted loss of the published {family}-1-{_NOISE}"
        claims.append(Check("one-layer", statement, card["adjusted_loss"], best, _ERRORS * card["standard_error"]))
    return ClaimResult(claims)


def _full_gradient(model: Full) -> float:
    """The largest slope of the loss in an entry of P or Q, in standard errors."""
    problem = NoisyRegression(noise=_NOISE)

    @jax.jit
    def gradient(key: jax.Array) -> jax.Array:
        stats, truth = sample_statistics(problem, (4096,), key=key)
        gradients = jax.grad(lambda model: model.loss(stats.gram / model.num_examples, truth.weights))(model)
        return jnp.concatenate([jnp.ravel(gradients.p), jnp.ravel(gradients.q)])

    values = np.asarray([gradient(key) for key in jax.random.split(jax.random.key(5), 64)])
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return float((np.abs(values.mean(axis=0)) / np.where(error > 0, error, 1.0)).max())


class Shrinkage(AbstractContextwise):
    """Any `w = f(Σ) α`, here `f(s) = 1/(s + E[σ²])` bent around one eigenvalue."""

    moment: float
    cauchy_scale: float
    centre: float

    def solve(self, stats: GramStatistics) -> jax.Array:
        """The weights for one context."""
        spectrum = Spectrum.from_statistics(stats)
        s = spectrum.values
        bump = 1 + self.cauchy_scale * jnp.exp(-(((s - self.centre) / 5) ** 2))
        return spectrum.to_inputs(spectrum.alpha * bump / (s + self.moment))


def best_polynomial(factor: float = 1.0) -> ClaimResult:
    """Among all `f(Σ) α` the best is `1/(s + E[σ²])`, so that ConstRR is a floor for GD++ at every depth."""
    problem = NoisyRegression(noise=_NOISE)
    moment = factor * problem.noise.second_moment
    bent = {f"{b:+g} at {p:g}": Shrinkage(moment, b, p) for b in (-0.3, 0.3) for p in (4.0, 12.0, 30.0)}
    straight = {"straight": ConstantRidge(moment)}
    measured = evaluate(straight | bent, problem, num_sequences=_SEQUENCES, key=jax.random.key(6))
    gaps = {name: measured.difference(name, "straight") for name in bent}
    name, gap = min(gaps.items(), key=lambda item: item[1].mean)
    statement = f"least loss of six bent f above the straight one's (bent by {name})"
    claims = [Check("gd++-floor", statement, gap.mean, 0.0, -_ERRORS * gap.standard_error, "≥")]
    floor = closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)
    exact = measured.adjusted("straight")
    claims.append(
        Check("gd++-floor", "its loss against the closed form", exact.mean, floor, _ERRORS * exact.standard_error)
    )
    for noise in paper.NOISES[1:]:
        problem = NoisyRegression(noise=noise)
        floor = closed_form.constant_ridge_loss(problem)
        models = [zoo.load(f"gd++-{depth}-{noise}") for depth in range(1, 8)]
        losses = [exact_loss(model, problem) for model in models if isinstance(model, GDPlusPlus)]
        statement = f"least exact loss of GD++ with 1 to 7 layers above the floor, {noise}"
        claims.append(Check("gd++-floor", statement, min(losses) - floor, 0.0, 1e-12, "≥"))
    return ClaimResult(claims)


def exact_loss(model: GDPlusPlus, problem: NoisyRegression) -> float:
    """The loss over all contexts, by the eigenvalue density of Σ."""
    nodes, weights = (jnp.asarray(values) for values in wishart_quadrature(problem.num_examples, problem.dim))
    return float(model.spectral_loss(nodes, weights, problem.noise.second_moment))


def known_noise(factor: float = 1.0) -> ClaimResult:
    """With σ known no method beats ridge regression with the penalty σ²."""
    problem = NoisyRegression(noise="fixed(2)")
    penalties = {f"{share:g}": ConstantRidge(4.0 * factor * share) for share in (0.5, 0.8, 1.0, 1.25, 2.0)}
    measured = evaluate(penalties, problem, num_sequences=_SEQUENCES, key=jax.random.key(7))
    losses = {name: measured.adjusted(name).mean for name in penalties}
    others = [value for name, value in losses.items() if name != "1"]
    return ClaimResult(
        [
            Check("oracle", "adjusted loss of ridge with σ²", losses["1"], 0.0, 1e-20),
            Check("oracle", "least adjusted loss with ½, ⅘, 5/4 and 2 times σ²", min(others), 1e-4, 0.0, "≥"),
        ]
    )


def unknown_noise(assumed: str | None = None) -> ClaimResult:
    """The Bayes predictor is below every method that does not know σ, baselines and published models.

    `assumed` is the noise prior of the predictor, by default the problem's. With another one the claim is false.
    """
    claims = []
    for noise in (_NOISE, "choice(1,3)"):
        problem = NoisyRegression(noise=noise)
        methods = {
            name: baseline(name, problem, key=jax.random.key(8))
            for name in ("const-ridge", "ada-ridge", "tuned-ridge")
        }
        methods |= {f"{v}-7": zoo.load(f"{v}-7-{noise}") for v in families.PAPER_FAMILIES}
        bayes = {"bayes": Bayes(assumed or problem.noise)}
        measured = evaluate(methods | bayes, problem, num_sequences=_SEQUENCES, key=jax.random.key(9))
        above = excess(methods, problem, num_sequences=_SEQUENCES, key=jax.random.key(10))
        for name in methods:
            gap = measured.difference(name, "bayes")
            error = (gap.standard_error**2 + above[name].standard_error ** 2) ** 0.5
            statement = f"loss of {name} above Bayes at {noise}, against ½E‖w − w_B‖²"
            claims.append(Check("bayes-floor", statement, gap.mean, above[name].mean, _ERRORS * error))
            claims.append(
                Check(
                    "bayes-floor",
                    f"loss of {name} above Bayes at {noise}",
                    gap.mean,
                    0.0,
                    2 * gap.standard_error,
                    "≥",
                )
            )
    return ClaimResult(claims)


def more_heads(gain: float = 0.0) -> ClaimResult:
    """§5: more heads set the four ω free; what two are worth in loss, after training."""
    claims = []
    for noise in (_NOISE, "choice(1,3)"):
        problem = NoisyRegression(noise=noise)
        for depth in range(2, 8):
            name = f"diag-{depth}-{noise}"
            first = f"{name}-seed0" if f"{name}-seed0" in zoo.names() else name  # two heads have one seed only
            pair = {"one": zoo.load(first), "two": zoo.load(f"{name}-h2")}
            measured = evaluate(pair, problem, num_sequences=_SEQUENCES, key=jax.random.key(11))
            gap = measured.difference("one", "two")
            losses = " → ".join(f"{measured.adjusted(heads).mean:.4f}" for heads in pair)
            statement = f"gain by a second head, {name}: {losses}"
            claims.append(Check("more-heads", statement, gap.mean, gain, 2 * gap.standard_error, "≥"))
    return ClaimResult(claims)
