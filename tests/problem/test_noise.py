import re

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_an_unknown_prior_is_refused():
    with pytest.raises(ValueError, match="must look like"):
        parse_noise("gauss(0,1)")


def test_weights_that_do_not_fit_are_rejected():
    with pytest.raises(ValueError, match="as many as"):
        Choice((1.0, 2.0), (1.0,))


def test_something_that_is_not_text_is_rejected():
    with pytest.raises(ValueError, match="must look like"):
        parse_noise(5)  # pyright: ignore[reportArgumentType]


def test_priors_of_one_kind_share_one_compiled_program(getkey):
    traced = []

    @jax.jit
    def draw(prior, key):
        traced.append(prior)
        return prior.sample(key, (3,))

    for top in range(1, 5):
        assert (draw(Uniform(0, top), getkey()) <= jnp.asarray(float(top))).all()
    assert len(traced) == 1
