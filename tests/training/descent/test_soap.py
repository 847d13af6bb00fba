import jax
import jax.numpy as jnp
import numpy as np
import optax

from lintra.training.descent.soap import scale_by_soap


def test_soap_turns_into_the_eigenbasis_of_a_quadratic():
    """A quadratic that is badly scaled along turned axes: Adam crawls, SOAP does not."""
    left, right = (np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0] for seed in (0, 1))
    goal = np.random.default_rng(2).normal(size=(6, 6))
    scales = jnp.asarray(np.outer(np.logspace(0, -2, 6), np.logspace(0, -2, 6)))

    def loss(x):
        return 0.5 * jnp.sum(scales * (left.T @ (x - goal) @ right) ** 2)

    def run(transform):
        def step(state, index):
            x, inner = state
            move, inner = transform.update(jax.grad(loss)(x), inner)
            return (x - 0.03 * (1 - index / 400) * move, inner), None

        start = jnp.zeros((6, 6)), transform.init(jnp.zeros((6, 6)))
        return float(loss(jax.lax.scan(step, start, jnp.arange(400))[0][0]))

    with jax.numpy_dtype_promotion("standard"):
        assert run(scale_by_soap(every=5)) < 1e-3 * run(optax.scale_by_adam(b2=0.95))
