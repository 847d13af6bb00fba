"""Every member of every registry, crossed with the checks of its kind.

A check is written once and runs over all members of `members.py`, which takes them from the registries. The last
part fails where a member of a registry is not among them.
"""

import inspect
import io
import json
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import members
from lintra import zoo
from lintra.baselines import Bayes, TunedRidge, UnitBlindBayes
from lintra.bench import CASES, THREADED, cases
from lintra.evaluation.layers import SEEDED
from lintra.evaluation.measurement import AbstractMeasurement
from lintra.figures import FIGURES, draw_figure
from lintra.figures.style import styled
from lintra.kernel import library
from lintra.models import FAMILIES, AbstractModel, Full, tokens
from lintra.models.families import PAPER_FAMILIES, to_family
from lintra.predictor import AbstractLayered, AbstractPredictor
from lintra.problem.loss import half_square
from lintra.problem.noise import AbstractNoisePrior, parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.report.report import needs as needs_of_the_report
from lintra.report.statements import STATEMENTS, check_statement
from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth, sample_data, sample_statistics
from lintra.sweep import GRIDS
from lintra.theory import CLAIMS, check_claims
from lintra.training import batch as training_batch
from lintra.training import least_squares
from lintra.training.batch import OBJECTIVES
from lintra.training.checkpoints import RunFolder
from lintra.training.recipes import recipe_name
from lintra.training.sampling import sample_batch
from lintra.zoo import model_file
from members import (
    BROKEN_CLAIMS,
    DIM,
    FIGURE_COLUMNS,
    FOLLOWS_THE_UNIT,
    KEY,
    KINDS,
    LAYERED,
    MEASUREMENTS,
    MODELS,
    NOT_EQUIVARIANT,
    NUM_EXAMPLES,
    ODD_IN_LABELS,
    PERTURBATIONS,
    PREDICTORS,
    PRIOR_EXAMPLES,
    PROBLEM,
    RECIPE_EXAMPLES,
    REJECTED_PRIORS,
    ROTATION_EQUIVARIANT,
    SLOW_CLAIMS,
    STAGES,
    TRAINING_PROBLEM,
    InventedResults,
    MeasurementExample,
    PriorExample,
    StageExample,
    random_rotation,
    spec_of,
)
from statement_examples import STATEMENT_EXAMPLES, Constructed

Value = TypeVar("Value")
LABEL_SCALE = 3.0
SIGNIFICANCE = 1e-3  # of the statistical tests, whose keys are fixed


def rounding(dtype: Any, factor: float = 1e4) -> float:
    """Largest relative difference that rounding explains after some hundreds of operations."""
    return factor * float(jnp.finfo(dtype).eps)


def distance(value: Any, expected: Any) -> float:
    """The largest difference, relative to the largest expected number or to one."""
    value, expected = np.asarray(value, np.float64), np.asarray(expected, np.float64)
    assert value.shape == expected.shape
    return float(np.abs(value - expected).max() / max(np.abs(expected).max(), 1.0)) if value.size else 0.0


def assert_close(value: Any, expected: Any, dtype: Any = np.float64, factor: float = 1e4) -> None:
    assert distance(value, expected) <= rounding(dtype, factor)


# Predictors: models of every family, depth and number of heads, adapters and baselines


class Probes(NamedTuple, Generic[Value]):
    """What belongs to one context, and to others that follow from it. As a batch they need one program."""

    context: Value
    permuted: Value
    merged: Value
    negated: Value
    without_labels: Value
    scaled: Value
    rotated: Value


@cache
def examples() -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Inputs, labels and a query of one context, and a rotation."""
    x, y, _ = sample_data(PROBLEM, key=KEY)
    rotation = jnp.asarray(random_rotation(np.random.default_rng(0), DIM))
    return x, y, jax.random.normal(KEY, (DIM,)), rotation


@cache
def probes() -> Probes[GramStatistics]:
    x, y, _, rotation = examples()
    order = np.random.default_rng(1).permutation(NUM_EXAMPLES)
    parts = GramStatistics.from_data(x[:3], y[:3]), GramStatistics.from_data(x[3:], y[3:])
    return Probes(
        context=GramStatistics.from_data(x, y),
        permuted=GramStatistics.from_data(x[order], y[order]),
        merged=parts[0].merge(parts[1]),
        negated=GramStatistics.from_data(x, -y),
        without_labels=GramStatistics.from_data(x, jnp.zeros_like(y)),
        scaled=GramStatistics.from_data(x, LABEL_SCALE * y),
        rotated=GramStatistics.from_data(x @ rotation.T, y),
    )


@cache
def batch() -> GramStatistics:
    """All probes, with two leading axes."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[None], *probes())


@cache
def batch_weights(name: str) -> jax.Array:
    """The weights of a predictor on every probe."""
    return PREDICTORS[name].weights(batch())


def probe_weights(name: str) -> Probes[jax.Array]:
    return Probes(*batch_weights(name)[0])


@pytest.fixture(params=PREDICTORS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def predictor(name: str) -> AbstractPredictor:
    return PREDICTORS[name]


def test_leading_axes_are_contexts(name, predictor):
    assert batch_weights(name).shape == (1, len(probes()), DIM)
    assert batch_weights(name).dtype == batch().gram.dtype
    assert_close(predictor.weights(probes().context), probe_weights(name).context)


def test_no_contexts_have_no_weights(predictor):
    nothing = jax.tree.map(lambda leaf: leaf[:0, 0], batch())
    assert predictor.weights(nothing).shape == (0, DIM)


def test_the_order_and_the_parts_of_a_context_change_nothing(name):
    weights = probe_weights(name)
    assert_close(weights.permuted, weights.context, factor=1e5)
    assert_close(weights.merged, weights.context, factor=1e5)


def test_weights_have_the_precision_of_the_statistics(name, predictor):
    single = GramStatistics(gram=batch().gram.astype(jnp.float32), num_examples=batch().num_examples)
    weights = predictor.weights(single)
    assert weights.dtype == jnp.float32
    assert_close(weights, batch_weights(name), jnp.float32)


def test_weights_are_compiled_and_mapped(name, predictor):
    assert_close(jax.jit(jax.vmap(predictor.weights))(batch()), batch_weights(name))


def test_a_prediction_is_the_weights_times_the_query(name, predictor):
    query = examples()[2]
    assert_close(predictor.predict(probes().context, query), probe_weights(name).context @ query)


@pytest.mark.parametrize("name", ROTATION_EQUIVARIANT)
def test_rotating_the_inputs_rotates_the_weights(name):
    weights = probe_weights(name)
    assert_close(weights.rotated, examples()[3] @ weights.context, factor=1e6)


@pytest.mark.parametrize("name", ODD_IN_LABELS)
def test_the_opposite_labels_have_the_opposite_weights(name):
    weights = probe_weights(name)
    assert_close(weights.negated, -weights.context)


@pytest.mark.parametrize("name", ODD_IN_LABELS)
def test_labels_that_are_all_zero_have_weights_zero(name):
    assert not probe_weights(name).without_labels.any()


@pytest.mark.parametrize("noise", [group[0].text for group in PRIOR_EXAMPLES.values()])
@pytest.mark.parametrize("kind", [Bayes, UnitBlindBayes])
def test_the_bayes_predictor_has_a_derivative_where_all_labels_are_zero(kind, noise):
    stats = GramStatistics.from_data(examples()[0], jnp.zeros(NUM_EXAMPLES))

    def total(gram):
        return kind(noise).weights(GramStatistics(gram, stats.num_examples)).sum()

    assert jnp.isfinite(jax.grad(total)(stats.gram)).all()


@pytest.mark.parametrize("name", [name for name in PREDICTORS if name not in ODD_IN_LABELS])
def test_families_with_parameters_for_each_input_have_no_symmetry(name):
    weights = probe_weights(name)
    assert distance(weights.rotated, examples()[3] @ weights.context) > 1e-3
    assert distance(weights.negated, -weights.context) > 1e-3
    assert weights.without_labels.any()


def test_weights_follow_the_unit_of_the_labels_exactly_where_it_is_claimed(name):
    weights = probe_weights(name)
    follows = distance(weights.scaled, LABEL_SCALE * weights.context) <= rounding(float, 1e5)
    hint = f"`FOLLOWS_THE_UNIT` of tests/members.py must {'' if follows else 'not '}have {name!r}."
    assert follows == (name in FOLLOWS_THE_UNIT), hint


@pytest.mark.parametrize("name", LAYERED)
def test_the_weights_are_those_after_the_last_layer(name):
    layered = PREDICTORS[name]
    assert isinstance(layered, AbstractLayered)
    weights = layer_weights(name)
    assert weights.shape[-1] == DIM
    assert_close(weights[..., -1, :], batch_weights(name))


@cache
def layer_weights(name: str) -> jax.Array:
    """The weights of a predictor after every layer, on every probe."""
    layered: Any = PREDICTORS[name]
    return layered.layer_weights(batch())


# Models


@pytest.fixture(params=MODELS)
def model_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def model(model_name: str) -> AbstractModel:
    return MODELS[model_name]


@cache
def token_history(model_name: str) -> list[jax.Array]:
    """All tokens of the context and the query after every layer, by Eq. (3) as printed."""
    x, y, query, _ = examples()
    P, Q = map(jnp.asarray, MODELS[model_name].matrices())
    return tokens.forward(P, Q, x, y, query)


def test_the_gram_recursion_is_the_token_by_token_pass_in_every_layer(model_name):
    predicted = layer_weights(model_name)[0, 0] @ examples()[2]
    assert_close(predicted, jnp.stack([-layer[-1, -1] for layer in token_history(model_name)]))


def test_theorem_4_1_reproduces_every_token(model_name, model):
    x, y, query, _ = examples()
    implicit = jax.tree.map(lambda leaf: leaf[0, 0], model.implicit(batch()))
    for layer, moved in enumerate(token_history(model_name)):
        M, u, w, a = (value[layer] for value in (implicit.M, implicit.u, implicit.w, implicit.a))
        assert_close(x @ M.T + y[:, None] * u, moved[:-1, :-1])
        assert_close(a * y - x @ w, moved[:-1, -1])
        assert_close(M @ query, moved[-1, :-1])
        assert_close(-w @ query, moved[-1, -1])


def test_matrices_go_out_and_come_back(model_name, model):
    P, Q = model.matrices()
    assert P.shape == Q.shape == (model.num_layers, model.num_heads, DIM + 1, DIM + 1)
    assert isinstance(P, np.ndarray)
    again = FAMILIES[model.family].from_matrices(P, Q, num_examples=NUM_EXAMPLES)
    assert type(again) is type(model)
    assert_close(again.weights(batch()), batch_weights(model_name))
    for before, after in zip((P, Q), again.matrices(), strict=True):
        assert_close(after, before, factor=4)


def test_parameters_go_out_and_come_back(model):
    again = type(model).from_parameters(model.parameters(), NUM_EXAMPLES, DIM)
    assert eqx.tree_equal(again, model)


def test_a_model_is_a_member_of_every_larger_family(model_name, model):
    full = model.to_full()
    assert isinstance(full, Full)
    larger = [full, model]
    while (family := next((f for f in FAMILIES.values() if f.smaller == larger[-1].family), None)) is not None:
        larger.append(to_family(larger[-1], family.family, model.num_heads))
        assert type(larger[-1]) is family
    for same in larger:
        assert (same.num_layers, same.num_heads) == (model.num_layers, model.num_heads)
        assert_close(same.weights(batch()), batch_weights(model_name))


def test_a_model_comes_back_from_a_file_bit_for_bit(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model_file.save(model, path, noise="uniform(0,5)")
    again = model_file.load(path)
    assert type(again) is type(model)
    assert jax.tree.structure(again) == jax.tree.structure(model)
    for before, after in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        assert np.array_equal(before, after)
    metadata = model_file.read_metadata(path)
    assert (metadata["family"], metadata["layers"]) == (model.family, str(model.num_layers))
    assert (metadata["heads"], metadata["dim"]) == (str(model.num_heads), str(model.dim))
    assert (metadata["context"], metadata["noise"]) == (str(model.num_examples), "uniform(0,5)")


def test_a_model_for_another_unit_predicts_in_that_unit(model_name, model):
    moved = model.for_label_scale(LABEL_SCALE)
    assert type(moved) is type(model)
    assert_close(moved.weights(probes().scaled), LABEL_SCALE * probe_weights(model_name).context)


def test_numbers_as_printed_are_taken_to_the_familys_own(model):
    P, Q = model.from_printed().matrices()
    assert_close(P, NUM_EXAMPLES * model.matrices()[0])
    assert np.array_equal(Q, model.matrices()[1])


def test_the_training_loss_is_the_mean_squared_distance_to_the_target(model_name, model):
    mean_gram, weights = batch().gram[0] / NUM_EXAMPLES, batch_weights(model_name)[0]
    target = jax.random.normal(KEY, weights.shape)
    assert_close(model.loss(mean_gram, target), half_square(weights - target).mean())
    assert_close(model.final_weights(mean_gram), weights)


def test_weights_can_be_differentiated_and_compiled(model):
    """For every predictor `test_derivatives.py` compares derivatives with finite differences."""

    @jax.jit
    def loss(model):
        return jnp.sum(model.weights(batch()) ** 2)

    gradient = jax.grad(loss)(model)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))
    assert all(bool((leaf != 0).any()) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_gives_one_model_and_another_key_another(family):
    first, same, other = (FAMILIES[family].random(2, dim=2, num_examples=5, key=key) for key in (3, 3, 4))
    assert eqx.tree_equal(first, same)
    assert not eqx.tree_equal(first, other)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", ["num_layers", "num_heads", "dim", "num_examples"])
def test_a_model_of_no_size_is_refused(family, size):
    sizes: dict[str, Any] = {"num_layers": 2, "num_heads": 1, "dim": 3, "num_examples": 5} | {size: 0}
    with pytest.raises(ValueError, match=f"`{size}` must be a whole number of at least 1, got 0"):
        FAMILIES[family].random(**sizes, key=KEY)


# Noise priors

PRIORS_BY_TEXT = {example.text: example for group in PRIOR_EXAMPLES.values() for example in group}


@pytest.fixture(params=PRIORS_BY_TEXT)
def example(request: pytest.FixtureRequest) -> PriorExample:
    return PRIORS_BY_TEXT[request.param]


@cache
def draws(text: str) -> np.ndarray:
    return np.asarray(parse_noise(text).sample(KEY, (20_000,)))


def test_the_text_of_a_prior_is_parsed_to_the_same_prior(example):
    prior = parse_noise(example.text)
    assert str(prior) == example.text
    assert parse_noise(str(prior)) == prior
    assert parse_noise(f" {example.text.replace(',', ' , ')} ") == prior


def test_a_prior_is_frozen_and_hashable(example):
    prior = parse_noise(example.text)
    assert hash(prior) == hash(parse_noise(example.text))
    with pytest.raises(FrozenInstanceError):
        setattr(prior, fields(prior)[0].name, 1.0)


def test_samples_follow_the_law(example):
    """By Kolmogorov and Smirnov, or by chi-square for values with probabilities, at the level 0.001."""
    sample = draws(example.text)
    if not example.is_discrete:
        assert laws.kstest(sample, example.law.cdf).pvalue > SIGNIFICANCE
        return
    values, probabilities = example.nodes()
    assert set(np.unique(sample)) == set(values)
    if len(values) > 1:
        counts = [int((sample == value).sum()) for value in values]
        assert laws.chisquare(counts, sample.size * probabilities).pvalue > SIGNIFICANCE


def test_samples_have_the_shape_and_the_precision_asked_for(example):
    sample = parse_noise(example.text).sample(KEY, (2, 3), jnp.float32)
    assert sample.shape == (2, 3)
    assert sample.dtype == jnp.float32


@pytest.mark.parametrize("num_nodes", [8, 64])
def test_the_quadrature_has_the_moments_of_the_law(example, num_nodes):
    prior = parse_noise(example.text)
    nodes, weights = (np.asarray(values) for values in prior.quadrature(num_nodes))
    sample = draws(example.text)
    for power in range(4):
        moment = weights @ nodes**power
        assert moment == pytest.approx(example.moment(power), rel=rounding(float, 100), abs=1e-14)
        error = (sample**power).std() / len(sample) ** 0.5
        assert abs((sample**power).mean() - moment) <= 4 * error + 1e-14
    assert prior.second_moment == pytest.approx(example.moment(2), rel=rounding(float, 100), abs=1e-14)


def test_the_support_has_all_samples_and_the_grid_goes_beyond_it(example):
    prior, sample = parse_noise(example.text), draws(example.text)
    low, high = prior.support()
    assert low <= sample.min() <= sample.max() <= high
    grid = prior.grid()
    assert grid[0] == 0.0
    assert grid[-1] > high
    assert grid == sorted(set(grid))


def test_the_posterior_is_that_of_a_dense_grid(example):
    """For the likelihood of seven residuals with mean square 2, and of as many that are nearly zero."""
    noise_std, prior_probability = example.nodes()
    noise_var = np.maximum(noise_std**2, LOWEST_NOISE_VAR)
    for mean_square in (2.0, 0.02):
        nodes, probabilities = posterior(parse_noise(example.text), mean_square)
        assert float(probabilities.sum()) == pytest.approx(1.0, rel=rounding(float))
        assert (probabilities >= 0).all()
        log_density = np.log(prior_probability) + np.asarray(log_likelihood(mean_square, noise_var))
        density = np.exp(log_density - log_density.max())
        expected = density @ (1 / (1 + noise_var)) / density.sum()
        tolerance = rounding(float) if example.is_discrete else 1e-6  # of the grid's intervals
        assert float(probabilities @ (1 / (1 + nodes))) == pytest.approx(expected, rel=tolerance)


LOWEST_NOISE_VAR = 1e-6


def log_likelihood(mean_square: Any, noise_var: Any) -> Any:
    return -3.5 * (jnp.log(noise_var) + mean_square / noise_var)


@jax.jit
def posterior(prior: AbstractNoisePrior, mean_square: jax.Array) -> tuple[jax.Array, jax.Array]:
    likelihood = jax.tree_util.Partial(log_likelihood, mean_square)
    return prior.posterior(likelihood, jnp.asarray(LOWEST_NOISE_VAR))


@pytest.mark.parametrize(("text", "says"), [pair for pairs in REJECTED_PRIORS.values() for pair in pairs])
def test_a_prior_that_is_rejected_says_why(text, says):
    with pytest.raises(ValueError, match=f"`noise` {re.escape(repr(text))} cannot be read.*{says}"):
        parse_noise(text)


# Training: stages, recipes, objectives and perturbations


@pytest.fixture
def _small_blocks(monkeypatch):
    """Blocks of 32 sequences in least squares, so that a small pool has several."""
    monkeypatch.setattr(least_squares, "_BLOCK", 32)


@pytest.fixture(params=STAGES)
def stage_example(request: pytest.FixtureRequest, _small_blocks: None) -> StageExample:
    return STAGES[request.param]


def stage_bytes(tree: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    return [(str(leaf.dtype), leaf.shape, np.asarray(leaf).tobytes()) for leaf in jax.tree.leaves(tree)]


def test_a_stage_interrupted_after_each_unit_of_work_ends_in_the_same_bytes(stage_example, tmp_path):
    stage, models = stage_example.stage, stage_example.models
    data, state = stage.prepare(), stage.start(models)
    stored, num_units = stage.start(models), 0
    while (done := stage.progress(state))[0] < done[1]:
        state, stored = stage.advance(state, data), stage.advance(stored, data)
        num_units += 1
        run = RunFolder(tmp_path, {}, {})
        run.checkpoint(0, stored, models, now=True)
        run.close()
        run = RunFolder(tmp_path, {}, {})  # as another process would
        stored = run.state(stage.start(models))
        run.close()
        assert stage_bytes(run.models) == stage_bytes(models)
        assert stage_bytes(stored) == stage_bytes(state)
        assert json.loads(json.dumps(stage.metrics(stored))) == json.loads(json.dumps(stage.metrics(state)))
    assert num_units > 1
    assert stage_bytes(stage.finish(stored)) == stage_bytes(stage.finish(state))


def test_the_state_of_a_stage_is_a_tree_of_arrays(stage_example):
    stage, models = stage_example.stage, stage_example.models
    state = stage.start(models)
    leaves, structure = jax.tree.flatten(state)
    assert leaves
    assert all(eqx.is_array(leaf) for leaf in leaves)
    assert stage_bytes(stage.start(models)) == stage_bytes(state)
    assert jax.tree.structure(stage.start(models)) == structure
    assert stage.progress(jax.tree.unflatten(structure, leaves)) == stage.progress(state)
    assert 0 == stage.progress(state)[0] < stage.progress(state)[1]


def test_the_settings_of_a_stage_are_frozen_and_its_data_follow_from_its_cache_key(stage_example):
    stage = stage_example.stage
    for field in fields(stage):
        with pytest.raises(FrozenInstanceError):
            setattr(stage, field.name, None)
    same, other = replace(stage), replace(stage, key=jax.random.key(18))
    assert hash(same.cache_key) == hash(stage.cache_key)
    assert same.cache_key == stage.cache_key != other.cache_key
    assert stage_bytes(same.prepare()) == stage_bytes(stage.prepare())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("recipe_key", RECIPE_EXAMPLES)
def test_a_recipe_makes_stages_of_every_family(recipe_key, family):
    recipe = RECIPE_EXAMPLES[recipe_key]
    stages = recipe.stages(spec_of(family), KEY)
    names = [stage.name for stage in stages]
    assert names
    assert len(set(names)) == len(names)
    assert {type(stage) for stage in stages} <= {type(example.stage) for example in STAGES.values()}
    keys = {bytes(np.asarray(jax.random.key_data(stage.key))) for stage in stages}
    assert len(keys) == len(stages)
    assert recipe.unused(spec_of(family)) <= recipe.settings().keys()


@pytest.mark.parametrize("recipe_key", RECIPE_EXAMPLES)
def test_a_recipe_is_frozen_settings(recipe_key):
    recipe = RECIPE_EXAMPLES[recipe_key]
    assert recipe_name(recipe) == recipe_key
    assert type(recipe)(**json.loads(json.dumps(recipe.settings()))) == recipe
    assert hash(replace(recipe)) == hash(recipe)
    assert recipe != type(recipe)()
    for field in fields(recipe):
        with pytest.raises(FrozenInstanceError):
            setattr(recipe, field.name, None)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_of_an_objective_is_the_mean_over_its_sequences(objective):
    settings: dict[str, Any] = {"objective": objective, "num_sequences": 8192, "key": KEY}
    drawn = sample_batch(TRAINING_PROBLEM, **settings)
    model = members.random_model("diag", 2, 1, TRAINING_PROBLEM)
    difference = np.asarray(model.final_weights(drawn.mean_gram) - drawn.target)
    if drawn.sqrt_metric is not None:
        difference = np.einsum("bkd,bd->bk", drawn.sqrt_metric, difference)
    assert_close(training_batch.loss(model, drawn), 0.5 * (difference**2).sum(axis=1).mean())
    assert eqx.tree_equal(sample_batch(TRAINING_PROBLEM, **settings), drawn)


@pytest.mark.parametrize("perturbation", PERTURBATIONS.values(), ids=PERTURBATIONS.keys())
def test_perturbed_sequences_are_sequences_and_their_importance_has_mean_one(perturbation):
    """Mean importance and the mean square of an input, weighted by it, within four of their standard errors."""
    data_key, _, perturbation_key = perturbation.split(KEY)
    stats, truth = sample_statistics(TRAINING_PROBLEM, (8192,), key=data_key)
    perturbed, log_importance = perturbation(TRAINING_PROBLEM, stats, truth, perturbation_key)
    gram = np.asarray(perturbed.gram) / TRAINING_PROBLEM.num_examples
    assert_close(gram, np.swapaxes(gram, -1, -2))
    assert np.linalg.eigvalsh(gram).min() > -rounding(float)
    assert np.array_equal(perturbed.num_examples, stats.num_examples)
    if log_importance is None:
        return
    importance = np.exp(np.asarray(log_importance))
    for values in (importance, importance * gram[:, 0, 0]):
        assert abs(values.mean() - 1) < 4 * values.std() / len(values) ** 0.5 + rounding(float)


@pytest.mark.parametrize("grid", GRIDS)
def test_every_cell_of_a_grid_comes_after_its_parents_or_is_of_another_chain(grid):
    chains = GRIDS[grid]()
    everything = {cell for cells in chains for cell in cells}
    for cells in chains:
        for position, cell in enumerate(cells):
            for parent in cell.parents().values():
                assert parent in everything
                assert parent not in cells or cells.index(parent) < position


# Claims, statements, measurements and figures

BREAKS = [(claim, change) for claim, changes in BROKEN_CLAIMS.items() for change in changes]


@cache
def invented(power: float = 1.0) -> InventedResults:
    return InventedResults(power)


def slow_if(claim: str) -> Any:
    return pytest.mark.slow if claim in SLOW_CLAIMS else ()


@pytest.mark.parametrize("claim", [pytest.param(claim, marks=slow_if(claim)) for claim in CLAIMS])
def test_a_claim_holds(claim):
    found = check_claims([claim])[claim].checks
    assert found
    assert [check for check in found if not check.expected] == []


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        pytest.param(claim, change, marks=slow_if(claim), id=f"{claim}-{next(iter(change))}")
        for claim, change in BREAKS
    ],
)
def test_a_broken_claim_is_seen(claim, change):
    assert not all(check.expected for check in CLAIMS[claim](**change).checks)


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_argument_of_a_claim_is_broken_once(claim):
    arguments = set(inspect.signature(CLAIMS[claim]).parameters)
    broken = {argument for change in BROKEN_CLAIMS[claim] for argument in change}
    assert broken == arguments, f"Break {arguments ^ broken} of {claim} in `BROKEN_CLAIMS` of tests/members.py."
    assert arguments, f"{claim} cannot fail: give it an argument that breaks it."


statements = pytest.mark.parametrize(
    "statement", STATEMENTS, ids=[statement.check.__name__ for statement in STATEMENTS]
)


@statements
def test_a_statement_holds_on_some_results_and_not_on_others(statement):
    example = STATEMENT_EXAMPLES[statement.check.__name__]
    holds = check_statement(statement, Constructed(example.holds))
    assert (holds.statement, holds.source, holds.holds) == (statement.text, statement.source, True)
    assert holds.measured.endswith(".")
    for results in [Constructed(change) for change in example.breaks] or [Constructed(broken=True)]:
        assert check_statement(statement, results).holds is False


@statements
def test_a_statement_is_not_decided_by_losses_within_their_errors(statement):
    """The results for which it holds, with errors a hundred times as large as losses."""
    example = STATEMENT_EXAMPLES[statement.check.__name__]
    found = check_statement(statement, Constructed(example.holds, error=100.0))
    assert found.holds is (True if example.is_exact else None)
    assert found.measured.startswith("Not decided") is not example.is_exact


@statements
def test_a_statement_about_missing_models_is_not_measured(statement):
    found = check_statement(statement, Constructed(missing=True))
    assert (found.holds, found.measured) == (None, "Not measured, since everything is missing.")


@pytest.fixture(params=MEASUREMENTS, ids=lambda kind: kind.__name__)
def measurement(request: pytest.FixtureRequest) -> MeasurementExample:
    return MEASUREMENTS[request.param]


def test_a_measurement_is_a_frozen_value(measurement):
    need = measurement.need
    assert is_dataclass(need)
    again = pickle.loads(pickle.dumps(need))
    assert again == need
    assert hash(again) == hash(need)
    assert measurement.other != need
    assert {need: 1, again: 2} == {need: 2}
    for field in fields(need):
        with pytest.raises(FrozenInstanceError):
            setattr(need, field.name, None)


@pytest.fixture(scope="module")
def small_zoo(tmp_path_factory):
    """Untrained models for two inputs, under the names that measurements ask for."""
    problem = NoisyRegression(dim=2, num_examples=5)
    names = {f"{family}-1-choice(1,3)": family for family in PAPER_FAMILIES}
    names |= {f"{family}-1-{SEEDED}-seed0": family for family in PAPER_FAMILIES if family != "gd++"}
    path = tmp_path_factory.mktemp("zoo") / "zoo.safetensors"
    zoo.write(
        path,
        {
            name: (members.random_model(family, 1, 1, problem), {"seconds": 1.0, "noise": "choice(1,3)"})
            for name, family in names.items()
        },
    )
    return zoo.Zoo(path)


@pytest.fixture
def _two_inputs(monkeypatch):
    """Problems with two inputs and five examples, so that measurements take little time."""

    def small(dim=2, num_examples=5, noise="choice(1,3)", covariance=None):
        return NoisyRegression(dim, num_examples, noise, covariance)

    for kind in MEASUREMENTS:
        if hasattr(module := inspect.getmodule(kind), "NoisyRegression"):
            monkeypatch.setattr(module, "NoisyRegression", small)
    tuned = TunedRidge.tuned
    monkeypatch.setattr(TunedRidge, "tuned", partial(tuned, num_sequences=4096))


def shape_of_result(result: Any) -> Any:
    """What the results of one class of measurements have in common: types, and columns of rows."""
    if isinstance(result, list):
        return {frozenset(row) for row in result}
    if hasattr(result, "rows"):
        return {frozenset(vars(row)) for row in result.rows}, {frozenset(row) for row in result.to_rows()}
    return [value.ndim for value in result] if isinstance(result, tuple) else type(result)


@pytest.mark.usefixtures("_two_inputs")
def test_a_measurement_is_deterministic_and_its_invented_results_have_the_same_form(measurement, small_zoo):
    first, second = (measurement.need.measure(small_zoo, num_sequences=1000, key=3) for _ in range(2))
    assert pickle.dumps(first) == pickle.dumps(second)
    assert shape_of_result(measurement.invent(measurement.need, 1.0)) == shape_of_result(first)


def test_the_report_measures_what_figures_and_statements_need_once():
    stated = [need for module in FIGURES.values() for need in module.NEEDS]
    stated += [need for statement in STATEMENTS for need in statement.needs]
    assert set(stated) <= set(needs_of_the_report())
    assert len(needs_of_the_report()) == len(set(needs_of_the_report()))


@pytest.mark.parametrize("figure", FIGURES)
def test_the_needs_of_a_figure_are_measurements(figure):
    needs = FIGURES[figure].NEEDS
    assert isinstance(needs, tuple)
    assert all(isinstance(need, AbstractMeasurement) for need in needs)
    assert len(set(needs)) == len(needs)
    assert pickle.loads(pickle.dumps(needs)) == needs  # they are sent to processes
    assert FIGURES[figure].CAPTION.endswith(".")
    assert inspect.getdoc(FIGURES[figure].compute)


@pytest.mark.parametrize("figure", FIGURES)
def test_the_rows_of_a_figure_have_its_columns(figure):
    rows = FIGURES[figure].compute(invented())
    assert rows
    assert tuple(rows[0]) == FIGURE_COLUMNS[figure]  # the first line of the CSV file
    assert all(row.keys() == rows[0].keys() for row in rows)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_drawn_from_its_rows(figure):
    with styled():
        drawn = FIGURES[figure].draw(FIGURES[figure].compute(invented()))
        picture = io.BytesIO()
        drawn.savefig(picture, format="png", dpi=20)
    assert picture.getvalue().startswith(b"\x89PNG")
    assert drawn.axes
    assert all(panel.lines or panel.images or panel.collections for panel in drawn.axes)


@pytest.fixture
def _no_sequences(monkeypatch):
    """Sequences of zeros, since none are timed here."""

    def statistics(problem, shape=(), dtype=float, *, key):
        gram = jnp.zeros((*shape, problem.dim + 1, problem.dim + 1), dtype)
        truth = Truth(jnp.zeros((*shape, problem.dim), dtype), jnp.zeros(shape, dtype))
        return GramStatistics(gram, jnp.full(shape, problem.num_examples)), truth

    def data(problem, shape=(), dtype=float, *, key):
        y = jnp.zeros((*shape, problem.num_examples), dtype)
        return jnp.zeros((*y.shape, problem.dim), dtype), y, statistics(problem, shape, dtype, key=key)[1]

    monkeypatch.setattr(cases, "sample_statistics", statistics)
    monkeypatch.setattr(cases, "sample_data", data)


@pytest.mark.usefixtures("_no_sequences")
@pytest.mark.parametrize("case", CASES)
def test_both_sides_of_a_case_can_be_traced(case):
    try:
        results = [jax.tree.leaves(jax.eval_shape(side)) for side in CASES[case]()]
    finally:
        library.limit_threads(None)
    assert all(results)
    assert set(CASES) >= THREADED


# Completeness: a member that no test uses fails


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_is_used_by_tests(kind):
    KINDS[kind].check()


@contextmanager
def one_more_member(source: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A member that is registered for a while, or a class of lintra that is."""
    if not isinstance(source, type):
        monkeypatch.setitem(getattr(source, "_members", source), "temporary", object())
        yield
        return
    abstract = dict.fromkeys(getattr(source, "__abstractmethods__", ()))
    temporary: Any = type(source)("Temporary", (source,), {"__module__": "lintra.temporary", **abstract})
    try:
        yield
    finally:
        temporary.__module__ = "temporary"  # JAX keeps the classes of its trees


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_no_test_uses_is_named_with_what_to_add(kind, monkeypatch):
    with (
        one_more_member(KINDS[kind].source, monkeypatch),
        pytest.raises(AssertionError, match=r"No test uses [Tt]emporary: \w+ .* in tests/members\.py\."),
    ):
        KINDS[kind].check()
    monkeypatch.undo()
    KINDS[kind].check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_is_gone_is_named(kind):
    gone = replace(KINDS[kind], covered=[*KINDS[kind].covered, "gone"])
    with pytest.raises(AssertionError, match=r"^gone is used in tests/members\.py and is not a member"):
        gone.check()


def test_families_without_symmetry_are_families():
    assert set(FAMILIES) >= NOT_EQUIVARIANT


def test_every_module_of_a_figure_is_registered():
    files = Path(inspect.getfile(draw_figure)).parent.glob("figure*.py")
    assert {path.stem for path in files} <= {module.__name__.rpartition(".")[2] for module in FIGURES.values()}
