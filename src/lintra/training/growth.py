"""Depth continuation: a layer that does almost nothing is put at every place, and the best fit is kept.

A layer of exact zeros would stay so, since P and Q multiply; a small one finds its use.
"""

import abc
import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from lintra.evaluation import closed_form
from lintra.models.base import AbstractModel
from lintra.models.diagonal import Diagonal
from lintra.models.families import split_heads, to_family
from lintra.models.gdpp import GDPlusPlus
from lintra.models.spec import Task
from lintra.training.batch import Lesson
from lintra.training.least_squares import AbstractFit, SequenceFit, SpectralFit, levenberg_marquardt
from lintra.training.sampling import sample_with_rare
from lintra.training.stage import AbstractStage, Models, State, TrainingFailedError, token
from lintra.training.validation import HeldOut, sample_held_out

_TRIAL = 10  # iterations for every place
_CHOICE = 15  # iterations for the few best places
_KEPT = 3
_POLISH = 20  # iterations for the best one, at the last depth
_BEND = 100.0  # a loss far above what a good model has
_WORTH = 0.999  # times the value near by, below which what was found farther away is polished too
_PROMISING = 2.0  # times the best value, at which a hop is not far behind
_DISTURBANCES = 0.05, 0.2, 0.5  # of numbers, as shares, when something better is looked for farther away
_PERTURBATIONS = 3  # folded into a stage's key; `DiagonalGrowth.prepare` uses its children 0, 1 and 2

Fitted = tuple[Float[Array, "layers heads k"], Float[Array, ""]]
"""Numbers, and the value of the fit there."""

Perturbation = tuple[Float[np.ndarray, "layers heads k"], Int[np.ndarray, " layers"]]
"""Factors for all numbers, and the order in which layers are taken."""

Sequences = tuple[list[SequenceFit], HeldOut]
"""Fits to more and more sequences, and held-out ones."""


class AbstractGrowth(AbstractStage):
    """Layers are added one at a time; a piece of work is one depth."""

    task: eqx.AbstractVar[Task]
    hops: eqx.AbstractVar[int]
    glance: eqx.AbstractVar[int]
    hop: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def seedlings(self) -> Float[np.ndarray, "c k"]:
        """Layers that do almost nothing, in the family's own numbers."""

    @abc.abstractmethod
    def model(self, numbers: Float[Array, "layers heads k"]) -> AbstractModel:
        """The model with these numbers."""

    @abc.abstractmethod
    def numbers(self, model: AbstractModel) -> Float[Array, "layers heads k"]:
        """The numbers of this model."""

    @abc.abstractmethod
    def fits(self, material: Any) -> Sequence[AbstractFit]:
        """Fits for trying every place, for choosing among the best, and one or more for the last depth."""

    def start(self, models: Models) -> State:
        """No layers, or those of a shallower model."""
        shape = self.task.layers, self.task.heads, self.seedlings.shape[-1]
        known = self.known(models)
        numbers = jnp.zeros((0, *shape[1:]))
        if "shallower" in models:
            numbers = self.numbers(models["shallower"])
            numbers = numbers[np.asarray(numbers).any(axis=(1, 2))]  # layers of zeros would stay so
        return {
            "depth": jnp.asarray(len(numbers), int),
            "numbers": jnp.zeros(shape).at[: len(numbers)].set(numbers),
            "known": jnp.stack(known) if known else jnp.zeros((0, *shape)),
            "held_out": jnp.asarray(jnp.inf),
        }

    def known(self, models: Models) -> list[Float[Array, "layers heads k"]]:
        """Numbers of models of full depth that are worth trying too."""
        return []

    def advance(self, state: State, material: Any) -> State:
        """Add one layer."""
        first, second, *polishing = self.fits(material)
        depth = int(state["depth"]) + 1
        starts = self._starts(np.asarray(state["numbers"]), depth)
        if depth == self.task.layers:
            starts += list(np.asarray(state["known"]))
        mask = jnp.zeros(state["numbers"].shape).at[:depth].set(1.0)
        tried = [levenberg_marquardt(first, jnp.asarray(start), mask, _TRIAL) for start in starts]
        tried = [levenberg_marquardt(second, numbers, mask, _CHOICE) for numbers, _ in _best(tried, _KEPT)]
        if depth == self.task.layers:
            near = levenberg_marquardt(second, _best(tried, 1)[0][0], mask, _POLISH)
            far = self.search(second, *near)
            found = [near, far] if far[1] < _WORTH * near[1] else [near]
            tried = [self._polish(polishing, numbers, mask) for numbers, _ in found]
            if depth > 1:  # what is there, with a layer that does nothing
                tried.append((state["numbers"], polishing[-1].value(state["numbers"])))
        numbers, value = _best(tried, 1)[0]
        if not np.isfinite(value):
            raise TrainingFailedError(
                f"No place for layer {depth} gives a finite loss. Try fewer layers, or another seed."
            )
        return state | {
            "depth": jnp.asarray(depth, int),
            "numbers": numbers,
            "held_out": self.judge(numbers, material),
        }

    def _polish(self, fits: Sequence[AbstractFit], numbers: Float[Array, "layers heads k"], mask: Array) -> Fitted:
        """Fit to more and more, at last to all as they are."""
        for fit in fits[:-1]:
            numbers, _ = levenberg_marquardt(fit, numbers, mask, _POLISH // 2)
        return levenberg_marquardt(fits[-1], numbers, mask, _POLISH)

    def search(self, fit: AbstractFit, numbers: Float[Array, "layers heads k"], value: Float[Array, ""]) -> Fitted:
        """Fit again and again from the best numbers so far, perturbed as `perturbations` says."""
        mask = jnp.ones_like(numbers)
        for factors, order in self.perturbations(numbers.shape):
            found, reached = levenberg_marquardt(fit, (numbers * factors)[order], mask, self.glance)
            if reached < _PROMISING * value:
                found, reached = levenberg_marquardt(fit, found, mask, self.hop)
            if reached < value:
                numbers, value = found, reached
        return numbers, value

    def perturbations(self, shape: tuple[int, ...]) -> Iterator[Perturbation]:
        """Draw `hops` perturbations from the stage's key.

        Arguments:
            shape: Shape of the numbers, (layers, heads, k).

        Yields:
            Factors `1 + s z` with a random size s and standard normal z, and an order of the layers, which is a
            random permutation half the time. The same key gives the same sequence.
        """
        # All words of the key seed the generator, so that different keys give independent streams.
        key = jax.random.fold_in(self.key, _PERTURBATIONS)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        for _ in range(self.hops):
            factors = 1 + rng.choice(_DISTURBANCES) * rng.normal(size=shape)
            order = rng.permutation(shape[0]) if rng.random() < 0.5 else np.arange(shape[0])
            yield factors, order

    @abc.abstractmethod
    def judge(self, numbers: Float[Array, "layers heads k"], material: Any) -> Float[Array, ""]:
        """Adjusted loss of these numbers."""

    def _starts(self, numbers: Float[np.ndarray, "layers heads k"], depth: int) -> list[np.ndarray]:
        """A seedling at every place; heads share a layer's numbers unevenly, so that they can part."""
        shares = split_heads(self.task.heads)[:, None] ** 0.5
        return [
            np.insert(numbers, place, seedling * shares, axis=0)[: len(numbers)]
            for place in range(depth)
            for seedling in self.seedlings
        ]

    def progress(self, state: State) -> tuple[int, int]:
        """In layers."""
        return int(state["depth"]), self.task.layers

    def metrics(self, state: State) -> dict[str, Any]:
        """The adjusted loss."""
        return {"depth": int(state["depth"]), "held_out": float(state["held_out"])}

    def finish(self, state: State) -> AbstractModel:
        """The grown model."""
        return self.model(state["numbers"])


class GDPlusPlusGrowth(AbstractGrowth):
    """GD++, on the density of eigenvalues.

    Arguments:
        name: What the model will be called.
        key: Randomness of the perturbations; the fit itself needs no sequences.
        task: What to train.
        tail: Eigenvalues rarer than this are left out. A smaller one makes rarer sequences safe, at the
            price of a larger loss on the usual ones.
        hops: How often a better fit is looked for, at the last depth.
        glance: Iterations for each.
        hop: Iterations more for each that is not far behind.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    task: Task = eqx.field(static=True)
    tail: float = eqx.field(static=True, default=1e-8)
    hops: int = eqx.field(static=True, default=200)
    glance: int = eqx.field(static=True, default=60)
    hop: int = eqx.field(static=True, default=0)

    @property
    def seedlings(self) -> Float[np.ndarray, "c k"]:
        """`(ω_xx, ω_yx)`."""
        return np.asarray([[-0.1, -0.1], [-0.1, -0.5], [0.05, -0.1], [0.05, -0.5]])

    @property
    def material(self) -> Hashable:
        """The problem and the tail."""
        return "spectral", token(self.task.problem, self.key), self.tail

    def prepare(self) -> SpectralFit:
        """Nodes and weights of the density."""
        return SpectralFit.of(self.task.problem, self.tail)

    def fits(self, material: SpectralFit) -> Sequence[SpectralFit]:
        """The same for all."""
        return material, material, material

    def model(self, numbers: Float[Array, "layers heads k"]) -> GDPlusPlus:
        """GD++ with these rates."""
        return GDPlusPlus(numbers, self.task.context, self.task.dim)

    def numbers(self, model: AbstractModel) -> Float[Array, "layers heads k"]:
        """Its rates."""
        (rates,) = model.parameters().values()
        return rates

    def judge(self, numbers: Float[Array, "layers heads k"], material: SpectralFit) -> Float[Array, ""]:
        """The fit's value plus the loss of the best response, which is that of constant ridge regression."""
        problem = self.task.problem
        return material.value(numbers) + closed_form.adjusted(closed_form.constant_ridge_loss(problem), problem)


class DiagonalGrowth(AbstractGrowth):
    """DIAG, on a pool of sequences.

    Arguments:
        name: What the model will be called.
        key: Randomness.
        task: What to train.
        pool: Number of sequences, a multiple of 32,768; places are compared on a sixteenth of them.
        objective: `bayes`, `truth` or `query`.
        held_out: Number of held-out sequences.
        hops: How often a better fit is looked for, at the last depth.
        glance: Iterations for each.
        hop: Iterations more for each that is not far behind.
        own_units: Whether the labels of every sequence are divided by their root mean square first.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    task: Task = eqx.field(static=True)
    pool: int = eqx.field(static=True, default=32_768)
    objective: str = eqx.field(static=True, default="bayes")
    held_out: int = eqx.field(static=True, default=16_384)
    hops: int = eqx.field(static=True, default=24)
    glance: int = eqx.field(static=True, default=8)
    hop: int = eqx.field(static=True, default=25)
    own_units: bool = eqx.field(static=True, default=False)

    @property
    def seedlings(self) -> Float[np.ndarray, "c k"]:
        """`(p_x, p_y, q_x, q_y)`."""
        return np.asarray([[0.15, -0.15, 0.3, 0.3], [-0.15, -0.15, 0.3, -0.3]])

    @property
    def material(self) -> Hashable:
        """The problem, the key, and how many sequences of what kind."""
        kind = self.pool, self.objective, self.held_out, self.own_units
        return "sequences", token(self.task.problem, self.key), *kind

    def prepare(self) -> Sequences:
        """Draw sequences."""
        pool_key, signs_key, held_out_key = jax.random.split(self.key, 3)
        pool = sample_with_rare(self.task.problem, pool_key, objective=self.objective, size=self.pool)
        held_out = sample_held_out(self.task.problem, held_out_key, self.held_out)
        if self.own_units:
            pool, held_out = (
                pool.in_own_units(),
                eqx.tree_at(lambda h: h.lesson, held_out, replace_fn=Lesson.in_own_units),
            )

        def fit(part: int, bend: float = math.inf) -> SequenceFit:
            return SequenceFit.of(pool.pick(jnp.arange(self.pool // part)), signs_key, bend)

        return [fit(16), fit(8), fit(4, _BEND), fit(1, _BEND), fit(1)], held_out

    def fits(self, material: Sequences) -> Sequence[SequenceFit]:
        """On few sequences, more, and all."""
        return material[0]

    def known(self, models: Models) -> list[Float[Array, "layers heads k"]]:
        """GD++ is a DIAG model, and so is one with fewer heads."""
        return [self.numbers(models[name]) for name in ("gd++", "fewer-heads") if name in models]

    def numbers(self, model: AbstractModel) -> Float[Array, "layers heads k"]:
        """Its p and q."""
        diagonal = to_family(model, self.task.variant, self.task.heads)
        assert isinstance(diagonal, Diagonal)
        return jnp.concatenate([diagonal.p, diagonal.q], axis=-1)

    def model(self, numbers: Float[Array, "layers heads k"]) -> Diagonal:
        """DIAG with these p and q."""
        return Diagonal(numbers[..., :2], numbers[..., 2:], self.task.context, self.task.dim)

    def judge(self, numbers: Float[Array, "layers heads k"], material: Sequences) -> Float[Array, ""]:
        """Measured on held-out sequences."""
        return _held_out_loss(material[1], self.model(numbers))


_held_out_loss = jax.jit(HeldOut.loss)


def _best(tried: list[Fitted], count: int) -> list[Fitted]:
    return sorted(tried, key=lambda fitted: float(jnp.nan_to_num(fitted[1], nan=jnp.inf)))[:count]
