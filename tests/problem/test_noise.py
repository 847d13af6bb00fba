import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as laws

from lintra.problem.noise import Choice, Fixed, Uniform, parse_noise


def test_noise_levels_go_one_beyond_the_prior():
    assert parse_noise("choice(1,3)").grid()[-1] == 6.0
    assert parse_noise("uniform(0,7)").grid()[-1] == 8.0
    assert parse_noise("uniform(0,0)").grid()[-1] == 1.0


noise_stds = st.floats(0, 1e6, allow_nan=False)
bad_noise_stds = st.one_of(st.floats(max_value=-1e-9), st.just(float("nan")), st.just(float("inf")))
positive = st.floats(1e-3, 1e3)


@given(noise_stds)
def test_fixed_prints_back_to_itself(noise_std):
    assert parse_noise(str(Fixed(noise_std))) == Fixed(noise_std)


@given(noise_stds, noise_stds)
def test_uniform_prints_back_to_itself(a, b):
    prior = Uniform(min(a, b), max(a, b))
    assert parse_noise(str(prior)) == prior


@given(st.lists(noise_stds, min_size=1, max_size=5, unique=True), st.data())
def test_choice_prints_back_to_itself(values, data):
    weights = data.draw(st.none() | st.tuples(*[positive] * len(values)))
    prior = Choice(tuple(values), weights)
    assert str(parse_noise(str(prior))) == str(prior)
    assert hash(parse_noise(str(prior))) == hash(prior)


@pytest.mark.parametrize(
    "text", ["uniform(0,5)", "choice(1,3,5)", "fixed(2)", "uniform(0,0)", "choice(0.5:1,2:3)"]
)
def test_the_text_people_write_is_the_text_printed(text):
    assert str(parse_noise(text)) == text


kinds = st.sampled_from(["fixed", "uniform", "choice", "gauss", ""])


@given(st.text(max_size=20) | st.builds("{}({})".format, kinds, st.text("0123456789.,:-e inf", max_size=9)))
def test_text_is_read_or_rejected_by_a_sentence_that_shows_it(text):
    def read():
        assert parse_noise(str(parse_noise(text))) == parse_noise(text)

    def reject():
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            parse_noise(text)

    readable = True
    try:
        parse_noise(text)
    except ValueError:
        readable = False
    read() if readable else reject()


@given(bad_noise_stds)
def test_a_negative_or_infinite_noise_std_is_rejected(noise_std):
    for build in (Fixed, lambda s: Uniform(s, 1.0), lambda s: Choice((s, 1.0))):
        with pytest.raises(ValueError, match="finite and not negative"):
            build(noise_std)


@given(noise_stds, st.floats(1e-3, 1e3))
def test_reversed_bounds_are_rejected(low, gap):
    with pytest.raises(ValueError, match="low ≤ high"):
        Uniform(low + gap, low)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gauss(0,1)", "must look like"),
        ("uniform(0)", "takes 2 numbers"),
        ("fixed(1,2)", "takes 1 number"),
        ("uniform(5,0)", "low ≤ high"),
        ("uniform(0,x)", "'x' is not a number"),
        ("choice()", "not a number"),
        ("choice(1,1)", "different values"),
        ("choice(1:0,2:1)", "positive"),
        ("choice(1:1e308,2:1e308)", "neither tiny nor huge"),
        ("choice(1:1,2)", "not a number"),
    ],
)
def test_a_prior_that_cannot_be_read_says_why(text, says):
    with pytest.raises(ValueError, match=says):
        parse_noise(text)


def test_weights_that_do_not_fit_are_rejected():
    with pytest.raises(ValueError, match="as many as"):
        Choice((1.0, 2.0), (1.0,))


def test_something_that_is_not_text_is_rejected():
    with pytest.raises(ValueError, match="must look like"):
        parse_noise(5)  # pyright: ignore[reportArgumentType]


def test_samples_follow_the_prior(getkey):
    draws = np.asarray(Uniform(1, 4).sample(getkey(), (20_000,)))
    assert laws.kstest(draws, laws.uniform(1, 3).cdf).pvalue > 1e-3
    draws = np.asarray(Choice((1, 3), (1, 3)).sample(getkey(), (20_000,)))
    assert laws.binomtest(int((draws == 3).sum()), draws.size, 0.75).pvalue > 1e-3
    assert set(np.unique(draws)) == {1.0, 3.0}
    assert (Fixed(2).sample(getkey(), (5,)) == 2).all()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("fixed(3)", 9),
        ("uniform(0,5)", 25 / 3),
        ("choice(1,3)", 5),
        ("choice(1:3,3:1)", 3),
    ],
)
def test_second_moment(text, moment):
    assert parse_noise(text).second_moment == pytest.approx(moment, rel=1e-14)


def test_priors_of_one_kind_share_one_compiled_program(getkey):
    traced = []

    @jax.jit
    def draw(prior, key):
        traced.append(prior)
        return prior.sample(key, (3,))

    for top in range(1, 5):
        assert (draw(Uniform(0, top), getkey()) <= jnp.asarray(float(top))).all()
    assert len(traced) == 1
