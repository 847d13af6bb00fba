import numpy as np
import pytest
from scipy import integrate

from lintra.baselines import ConstantRidge
from lintra.evaluation import closed_form, paper
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.estimate import Estimate
from lintra.models import GDPlusPlus
from lintra.problem.noisy_regression import NoisyRegression


@pytest.mark.parametrize("problem", [
    NoisyRegression(), NoisyRegression(noise="choice(1,3)"), NoisyRegression(6, 4, "fixed(0)"),
    NoisyRegression(6, 4, "uniform(0,2)"), NoisyRegression(5, 50, "fixed(3)"),
], ids=str)  # fmt: skip
def test_closed_losses_are_those_measured(problem, getkey):
    n, d = problem.num_examples, problem.dim
    step = 1 / (n + d + 1 + problem.noise.second_moment)
    layer = GDPlusPlus(np.asarray([[[0.0, -n * step]]]), num_examples=n, dim=d)
    predictors = {"const": ConstantRidge.tuned(problem), "layer": layer}
    measured = evaluate(predictors, problem, num_sequences=65_536, key=getkey())  # to 0.4 %, at most
    for name, exact in (
        ("oracle", closed_form.oracle_loss(problem)),
        ("const", closed_form.constant_ridge_loss(problem)),
        ("layer", closed_form.one_layer_loss(problem)),
    ):
        loss = measured.unadjusted(name)
        assert abs(loss.mean - exact) < 4 * loss.standard_error + 1e-12, name


@pytest.mark.parametrize("noise_std", [1e-3, 1e-2, 1.0])
def test_the_oracle_loss_at_one_input_and_one_example(noise_std):
    """Σ is a χ² variable there: ½E[σ²/(s+σ²)] is an integral anyone can do."""
    v = noise_std**2
    exact, _ = integrate.quad(lambda r: 0.5 * v / (r**2 + v) * np.sqrt(2 / np.pi) * np.exp(-(r**2) / 2), 0, np.inf,
                              points=None, limit=500, epsabs=0, epsrel=1e-11)  # fmt: skip
    problem = NoisyRegression(dim=1, num_examples=1, noise=f"fixed({noise_std})")
    assert closed_form.oracle_loss(problem) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise", paper.NOISES)
def test_the_first_rows_of_table_1_are_the_one_layer_optimum(noise, getkey):
    """Within three standard errors of the paper's protocol, 100,000 sequences with a sampled query.

    The standard error is scaled from that of fewer sequences, which tell it to a few percent.
    """
    problem = NoisyRegression(noise=noise)
    layer = GDPlusPlus(np.asarray([[[0.0, -20 / (31 + problem.noise.second_moment)]]]), num_examples=20, dim=10)
    measured = evaluate({"layer": layer}, problem, num_sequences=16_384, protocol=True, key=getkey())
    protocol = Estimate.from_values(measured.protocol_losses["layer", None])
    standard_error = protocol.standard_error * (16_384 / 100_000) ** 0.5
    exact = closed_form.adjusted(closed_form.one_layer_loss(problem), problem)
    for family in ("gd++", "diag", "full"):
        printed = paper.printed_table1()[family, 1, noise]
        assert abs(exact - printed.value) < 3 * standard_error + printed.rounding, family


def test_an_input_covariance_is_rejected():
    problem = NoisyRegression(dim=3, covariance=np.ones(3))
    for loss in (closed_form.oracle_loss, closed_form.constant_ridge_loss, closed_form.one_layer_loss):
        with pytest.raises(ValueError, match="`problem` has an input covariance"):
            loss(problem)
