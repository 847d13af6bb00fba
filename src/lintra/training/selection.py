"""Model selection: of several candidates, the one with the smallest mean loss, rare sequences included."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from lintra.models.base import AbstractModel
from lintra.models.families import FAMILIES, num_used_layers, pad_layers, smallest_family, stack, to_family
from lintra.models.spec import ModelSpec
from lintra.problem.loss import half_square
from lintra.training.batch import Batch
from lintra.training.perturbations import PROPOSAL_SCALE, ScaledInputs
from lintra.training.sampling import BLOCK, sample_with_importance
from lintra.training.stage import AbstractStage, Models, fingerprint
from lintra.training.tail_mean import TailMean
from lintra.training.warm_starts import NO_WARM_STARTS, WarmStarts

IGNORED_PROBABILITY = 1e-7
"""Total probability of the worst sequences, which do not count."""

_PROPOSALS = (ScaledInputs(1.0), ScaledInputs(PROPOSAL_SCALE))  # used in turn
_MAX_BYTES = 2**30  # of blocks that are kept in memory
_TIE_MARGIN = 1e-4  # relative; a trained model must be better than a simpler one by more than this
_WARM_STARTS = {"fewer_heads": "warm start with a head less", "shallower": "warm start with a layer less"}

WeightedBatch = tuple[Batch, Float[Array, " b"]]
"""Sequences with the oracle's weights as targets, and their importance ρ."""


class SelectionState(eqx.Module):
    """Candidates, and their mean losses so far.

    Attributes:
        block: Number of blocks of sequences seen.
        models: The candidates, stacked.
        means: A mean for each proposal and candidate.
        names: Names of the candidates.
    """

    block: Int[Array, ""]
    models: AbstractModel
    means: TailMean
    names: tuple[str, ...] = eqx.field(static=True)


class Selection(AbstractStage[SelectionState, list[WeightedBatch] | None]):
    """Selects one of the models of earlier stages and of the warm starts.

    Sequences on which a model diverges can be too rare for a pool and still dominate its mean loss. So the mean is
    estimated twice: from the problem's sequences, and by importance sampling from sequences whose inputs are 1.1
    times as long. Longer inputs show divergence that hundreds of thousands of plain sequences do not show. Still
    rarer sequences are left out: every deep model diverges somewhere, so the worst sequences with a total
    probability of 1e-7 do not count. The larger estimate is compared. The first candidate, which was trained, is
    selected only if it is better than the others by more than these sequences can tell.

    Args:
        name: Name under which the selected model is known.
        key: Randomness.
        spec: The model that is trained.
        candidates: Names of the stages whose models are compared: the trained one first, then simpler ones. All
            warm starts are compared too.
        num_blocks: Number of blocks of 8,192 sequences, an even number. Default: 64.
    """

    name: str = eqx.field(static=True)
    key: Key[Array, ""]
    spec: ModelSpec = eqx.field(static=True)
    candidates: tuple[str, ...] = eqx.field(static=True)
    num_blocks: int = eqx.field(static=True, default=64)

    @property
    def cache_key(self) -> Hashable:
        """The problem, the key and the number of blocks."""
        return "selection", fingerprint(self.spec.problem, self.key), self.num_blocks

    def prepare(self) -> list[WeightedBatch] | None:
        """Draw all blocks, from each proposal in turn, if they fit into memory."""
        size = self.num_blocks * BLOCK * (self.spec.problem.dim + 1) ** 2 * 8
        return [self._block(number) for number in range(self.num_blocks)] if size < _MAX_BYTES else None

    def _block(self, number: int) -> WeightedBatch:
        batch, log_importance = sample_with_importance(
            self.spec.problem,
            objective="oracle",
            num_sequences=BLOCK,
            perturbation=_PROPOSALS[number % len(_PROPOSALS)],
            key=jax.random.fold_in(self.key, number),
        )
        assert log_importance is not None
        return batch, jnp.exp(log_importance)

    def start(self, models: Models, warm_starts: WarmStarts = NO_WARM_STARTS) -> SelectionState:
        """No sequences seen."""
        candidates = {name: models[name] for name in self.candidates} | warm_starts.candidates()
        num_layers = max(model.num_layers for model in candidates.values())
        stacked = stack(
            [
                pad_layers(to_family(model, self.spec.family, self.spec.num_heads), num_layers)
                for model in candidates.values()
            ]
        )
        means = TailMean.empty((len(_PROPOSALS), len(candidates)))
        return SelectionState(jnp.zeros((), int), stacked, means, tuple(candidates))

    def advance(self, state: SelectionState, data: list[WeightedBatch] | None) -> SelectionState:
        """Measure all candidates on the same blocks, one of each proposal."""
        first = int(state.block)
        numbers = range(first, first + len(_PROPOSALS))
        blocks = [self._block(number) if data is None else data[number] for number in numbers]
        updated = [
            _update(state.models, jax.tree.map(lambda leaf, row=row: leaf[row], state.means), *block)
            for row, block in enumerate(blocks)
        ]
        means = jax.tree.map(lambda *rows: jnp.stack(rows), *updated)
        return replace(state, block=state.block + len(_PROPOSALS), means=means)

    def progress(self, state: SelectionState) -> tuple[int, int]:
        """In blocks."""
        return int(state.block), self.num_blocks

    def metrics(self, state: SelectionState) -> dict[str, Any]:
        """Adjusted loss of the selected model, and the estimates of all candidates by proposal."""
        means = state.means.mean(IGNORED_PROBABILITY)
        by_name = {name: means[:, column].tolist() for column, name in enumerate(state.names)}
        return {"validation_loss": float(means[0, self.best(state)]), "candidates": by_name}

    def finish(self, state: SelectionState) -> AbstractModel:
        """The selected model."""
        return jax.tree.map(lambda leaf: leaf[self.best(state)], state.models)

    def best(self, state: SelectionState) -> int:
        """Index of the candidate with the smallest loss, by the larger of its two estimates."""
        return _best(state.means.mean(IGNORED_PROBABILITY).max(axis=0))


def _best(estimates: Float[np.ndarray, " candidates"]) -> int:
    """Index of the smallest estimate, where that of the trained model is a little larger."""
    factors = np.ones(len(estimates))
    factors[0] += _TIE_MARGIN
    return int(np.argmin(estimates * factors))


def selection_remark(model: AbstractModel, estimates: Mapping[str, Sequence[float | None]]) -> str:
    """A sentence on why a selected model is not the trained one of all layers. Empty if it is.

    Args:
        model: The selected model.
        estimates: Mean losses by candidate, as `Selection.metrics` has them under `candidates`, with `None` for
            infinity. Empty: the weights alone decide.

    Returns:
        Up to three sentences: on the selected candidate, the family of its weights, and the layers it uses.
    """
    losses = np.asarray([max(np.inf if mean is None else mean for mean in means) for means in estimates.values()])
    best = _best(losses) if estimates else 0
    selected, sentences = model.family, []
    if best:
        name = list(estimates)[best]
        selected = name if name in FAMILIES else model.family
        origin = _WARM_STARTS.get(name, f"{name.upper()} model")
        sentences.append(f"The selected model is the {origin}: {_comparison(model, losses[0], losses[best])}.")
    if (smallest := smallest_family(model)) != selected:
        sentences.append(f"The weights of the selected model are those of a {smallest.upper()} model.")
    if (used := num_used_layers(model)) < model.num_layers:
        sentences.append(f"The selected model uses {used} of its {model.num_layers} layers, the others are zero.")
    return " ".join(sentences)


def _comparison(model: AbstractModel, trained: float, selected: float) -> str:
    """Say why the trained model was not selected, with both estimates."""
    numbers = " against ".join(f"{loss:.4g}" if np.isfinite(loss) else "infinite" for loss in (trained, selected))
    is_larger = trained > selected * (1 + _TIE_MARGIN)
    verdict = "has a larger tail mean" if is_larger else f"is not better by more than {_TIE_MARGIN:.2%}"
    return f"the trained {model.family.upper()} model {verdict} ({numbers})"


@jax.jit
def _update(models: AbstractModel, means: TailMean, batch: Batch, importance: Float[Array, " b"]) -> TailMean:
    """Measure all candidates on one block; an overflow is an infinite loss."""

    def update(model: AbstractModel, mean: TailMean) -> TailMean:
        losses = half_square(model.final_weights(batch.mean_gram) - batch.target)
        return mean.update(jnp.where(jnp.isnan(losses), jnp.inf, losses), importance)

    return jax.vmap(update)(models, means)
