"""The members of every kind that tests run over, taken from the registries.

Models, adapters and baselines appear by themselves. What needs an example here has one table for its kind; a
member that is missing in it fails `test_batteries.py` with a sentence that says what to add.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jax
import numpy as np
from scipy import stats as laws

import lintra
from lintra.baselines import BASELINES as BASELINE_REGISTRY
from lintra.baselines import TABLE1_BASELINES, UnitBlindBayes, baseline
from lintra.baselines.bayes import Bayes
from lintra.evaluation.bayes_excess import Excess
from lintra.evaluation.estimate import Estimate, ProtocolQuantiles, Tail
from lintra.evaluation.layers import Layers
from lintra.evaluation.measurement import AbstractMeasurement, Results
from lintra.evaluation.noise_profile import Profile
from lintra.evaluation.robustness import CONTEXT_KINDS, Robustness
from lintra.evaluation.table1_column import DEPTHS, Column, Table1Column, Table1Row
from lintra.evaluation.trimmed_losses import TrimmedLosses
from lintra.experiments import stored_rows
from lintra.experiments.free_diagonal import FreeDiagonal
from lintra.figures import FIGURES
from lintra.figures.figure4 import Matrices
from lintra.models import FAMILIES, AbstractModel, GDPlusPlus, adapters
from lintra.models.families import PAPER_FAMILIES
from lintra.models.spec import ModelSpec
from lintra.predictor import AbstractLayered, AbstractPredictor
from lintra.problem.noise import PRIORS, parse_noise
from lintra.problem.noisy_regression import NoisyRegression
from lintra.registry import Registry
from lintra.report.statements import STATEMENTS
from lintra.report.statements.anatomy import ImpliedNoise, ModelDistance, Structures, WithoutOmega
from lintra.report.statements.convergence import IterativeSteps
from lintra.theory import CLAIMS, convergence
from lintra.theory.optima import Shrinkage
from lintra.training import RECIPES, AbstractRecipe, Fast, Paper
from lintra.training.descent.batch_source import BatchSource
from lintra.training.descent.descent import Descent
from lintra.training.descent.schedule import Schedule
from lintra.training.descent.step import OPTIMISERS
from lintra.training.growth.diagonal import DiagonalGrowth
from lintra.training.growth.gdpp import GDPlusPlusGrowth
from lintra.training.perturbations import (
    AbstractPerturbation,
    HalfScaledInputs,
    ScaledInputs,
    Unperturbed,
    Widened,
)
from lintra.training.selection import Selection
from lintra.training.stage import AbstractStage, Models
from lintra.training.starts import RandomStarts
from statement_examples import STATEMENT_EXAMPLES, Constructed
from untrained_zoo import quick_tuning

DIM, NUM_EXAMPLES = 4, 9
KEY = jax.random.key(17)
PROBLEM = NoisyRegression(dim=DIM, num_examples=NUM_EXAMPLES, noise="uniform(0,2)")


def random_rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
    return q * np.sign(np.diag(r))


# Noise priors


@dataclass(frozen=True)
class PriorExample:
    """A noise prior with its law.

    Attributes:
        text: The prior as text, as it is printed.
        law: A continuous law of SciPy, or the probabilities of the values of σ.
    """

    text: str
    law: Any

    @property
    def is_discrete(self) -> bool:
        return isinstance(self.law, dict)

    def moment(self, power: int) -> float:
        """E[σ^power] in closed form."""
        if isinstance(self.law, dict):
            return sum(probability * value**power for value, probability in self.law.items())
        return float(self.law.moment(power))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Values of σ and probabilities: the atoms, or the middles of very many equally likely intervals."""
        if isinstance(self.law, dict):
            return np.asarray(list(self.law)), np.asarray(list(self.law.values()))
        count = 100_000
        return self.law.ppf((np.arange(count) + 0.5) / count), np.full(count, 1 / count)


PRIOR_EXAMPLES: dict[str, tuple[PriorExample, ...]] = {
    "fixed": (PriorExample("fixed(2)", {2.0: 1.0}), PriorExample("fixed(0)", {0.0: 1.0})),
    "uniform": (
        PriorExample("uniform(0,5)", laws.uniform(0, 5)),
        PriorExample("uniform(1,4)", laws.uniform(1, 3)),
        PriorExample("uniform(2,2)", {2.0: 1.0}),
        PriorExample("uniform(0,0)", {0.0: 1.0}),
    ),
    "choice": (
        PriorExample("choice(1,3)", {1.0: 0.5, 3.0: 0.5}),
        PriorExample("choice(1,3,5)", {1.0: 1 / 3, 3.0: 1 / 3, 5.0: 1 / 3}),
        PriorExample("choice(0.5:1,2:3)", {0.5: 0.25, 2.0: 0.75}),
    ),
}
"""Noise priors by name, with their laws."""

REJECTED_PRIORS: dict[str, tuple[tuple[str, str], ...]] = {
    "fixed": (
        ("fixed(1,2)", "takes 1 number"),
        ("fixed(-1)", "finite and not negative"),
        ("fixed(x)", "'x' is not a number"),
    ),
    "uniform": (
        ("uniform(0)", "takes 2 numbers"),
        ("uniform(5,0)", "low ≤ high"),
        ("uniform(0,x)", "'x' is not a number"),
        ("uniform(0,inf)", "finite and not negative"),
    ),
    "choice": (
        ("choice()", "not a number"),
        ("choice(1,1)", "different values"),
        ("choice(1:0,2:1)", "positive"),
        ("choice(1:1e308,2:1e308)", "neither tiny nor huge"),
        ("choice(1:1,2)", "not a number"),
        ("choice(nan,1)", "finite and not negative"),
    ),
}
"""Texts of each prior that are rejected, and what the sentence says."""

# Predictors


def random_model(
    family: str, num_layers: int, num_heads: int, problem: NoisyRegression = PROBLEM
) -> AbstractModel:
    """A model with weights of about the labels' size."""
    size = {"dim": problem.dim, "num_examples": problem.num_examples}
    return FAMILIES[family].random(num_layers, num_heads=num_heads, scale=0.3, key=KEY, **size)


def models(
    problem: NoisyRegression = PROBLEM, sizes: Iterable[tuple[int, int]] = ((1, 1), (4, 1), (4, 2))
) -> dict[str, AbstractModel]:
    """A random model of every family, for each number of layers and heads."""
    return {
        f"{family}-{num_layers}-h{num_heads}": random_model(family, num_layers, num_heads, problem)
        for num_layers, num_heads in sizes
        for family in FAMILIES
    }


def adapted(model: AbstractModel) -> dict[str, AbstractPredictor]:
    """The model in every adapter of `lintra.models.adapters`, by the adapter's name."""
    kinds: list[Any] = [kind for kind in concrete(AbstractPredictor) if kind.__module__ == adapters.__name__]
    return {kind.__name__: kind(model) for kind in kinds}


def baselines(problem: NoisyRegression = PROBLEM) -> dict[str, AbstractPredictor]:
    """Every baseline of the registry, predictors that are in none, and Bayes with every kind of prior."""
    with quick_tuning():
        found = {name: baseline(name, problem, key=KEY) for name in BASELINE_REGISTRY}
    found |= {
        "unit-blind bayes": UnitBlindBayes("uniform(0,2)"),
        "shrinkage": Shrinkage(2.0, 0.3, 4.0),
        "free diagonals": FreeDiagonal.random(
            2, dim=problem.dim, num_examples=problem.num_examples, scale=0.3, key=KEY
        ),
    }
    others = [name for name in PRIORS if name in PRIOR_EXAMPLES and name != problem.noise.name]
    return found | {f"bayes {text}": Bayes(text) for text in (PRIOR_EXAMPLES[name][0].text for name in others)}


def concrete(kind: type) -> list[type]:
    """The classes of lintra below `kind` that are not abstract, each once."""
    found = {} if inspect.isabstract(kind) or not kind.__module__.startswith("lintra.") else {kind: None}
    for child in kind.__subclasses__():
        found |= dict.fromkeys(concrete(child))
    return list(found)


def _import_all() -> None:
    for module in pkgutil.walk_packages(lintra.__path__, "lintra."):
        if not module.name.rpartition(".")[2].startswith("_"):  # programs, and the kernel
            importlib.import_module(module.name)


_import_all()
MODELS = models()
ADAPTED = adapted(MODELS["diag-4-h1"])
BASELINES = baselines()
PREDICTORS: dict[str, AbstractPredictor] = {**MODELS, **ADAPTED, **BASELINES}
LAYERED = {name: value for name, value in PREDICTORS.items() if isinstance(value, AbstractLayered)}

NOT_EQUIVARIANT = frozenset({"full"})
"""Families that have parameters of their own for each input, and so depend on the basis and on signs."""

ODD_IN_LABELS = {
    name: value for name, value in PREDICTORS.items() if not any(family in name for family in NOT_EQUIVARIANT)
}
"""Predictors that have the opposite weights for the opposite labels."""

ROTATION_EQUIVARIANT = {name: value for name, value in ODD_IN_LABELS.items() if name != "free diagonals"}

FOLLOWS_THE_UNIT = frozenset(
    {
        *(name for name, model in MODELS.items() if isinstance(model, GDPlusPlus)),
        *(name for name in MODELS if name.startswith("diag-1-")),  # one layer is linear in the labels
        *("ols", "const-ridge", "bayes fixed(2)", "shrinkage"),
        *("unit-blind bayes", "UnitBlind"),
    }
)
"""Predictors whose weights are c times as large where labels are c times as large."""

# Training

TRAINING_PROBLEM = NoisyRegression(dim=2, num_examples=5, noise="choice(1,3)")


@dataclass(frozen=True)
class StageExample:
    """A small stage, and the models of the stages before it."""

    stage: AbstractStage
    models: Models


def spec_of(family: str, num_layers: int = 2) -> ModelSpec:
    """A small model to train."""
    return ModelSpec(family, num_layers, TRAINING_PROBLEM)


def _descent(family: str, optimiser: str, **source: Any) -> Descent:
    return Descent(
        family,
        KEY,
        BatchSource(TRAINING_PROBLEM, batch_size=8, num_validation=64, **source),
        starts=RandomStarts(spec_of(family, 1), 2, scale=0.1),
        num_steps=6,
        schedule=Schedule(1e-2),
        optimiser=optimiser,
        validate_every=2,
    )


STAGES: dict[str, StageExample] = {
    "adam": StageExample(_descent("diag", "adam", objective="query"), {}),
    "soap": StageExample(_descent("full", "soap", pool_size=64, num_widened=8, label_scale=2.0), {}),
    "growth of gd++": StageExample(
        GDPlusPlusGrowth("gd++", KEY, spec_of("gd++"), num_restarts=2, screening_steps=2), {}
    ),
    "growth of diag": StageExample(
        DiagonalGrowth(
            "diag",
            KEY,
            spec_of("diag"),
            pool_size=512,
            num_validation=64,
            num_restarts=1,
            screening_steps=2,
            from_stages=("gd++",),
        ),
        {"gd++": random_model("gd++", 2, 1, TRAINING_PROBLEM)},
    ),
    "selection": StageExample(
        Selection("selected", KEY, spec_of("full"), ("full", "gd++"), num_blocks=6),
        {family: random_model(family, 2, 1, TRAINING_PROBLEM) for family in ("full", "gd++")},
    ),
}
"""Small stages, of every class and with every optimiser, with at least two units of work each."""

RECIPE_EXAMPLES: dict[str, AbstractRecipe] = {"fast": Fast(num_starts=2), "paper": Paper(num_starts=2)}
"""Recipes by name, with a setting that is not the default."""

PERTURBATIONS: dict[str, AbstractPerturbation] = {
    "unperturbed": Unperturbed(),
    "scaled": ScaledInputs(1.1),
    "half scaled": HalfScaledInputs(),
    "widened": Widened(),
}

# Claims


def changed_rows(experiment: str, **values: Any) -> list[dict[str, Any]]:
    """The stored rows of an experiment, as they would be if it had found something else."""
    return [row | values for row in stored_rows(experiment)]


BROKEN_CLAIMS: dict[str, tuple[dict[str, Any], ...]] = {
    "theorem-4.1": ({"readout": 1.0},),
    "theorem-4.2": ({"power": -1.0},),
    "lemma-4.3": ({"sign": 1.0},),
    "lemma-4.4": ({"power": 1}, {"half": -1.0}),
    "eqs-8-10": ({"index": "lhj,lhi->lij"},),
    "equation-8": ({"rows": changed_rows("equation-8", spread=0.3)},),
    "more-heads": ({"gain": 0.01},),
    "equation-6": ({"rows": changed_rows("equation-6", gdpp_share=0.5)},),
    "theorem-5.1": ({"shrink": lambda excess: convergence.spread(excess) * Decimal("1.1")},),
    "lemma-a.2": ({"error": 0.5},),
    "lemma-a.3": ({"third": 0.3}, {"limit": 2.0}),
    "appendix-a.4": ({"power": 1.0}, {"step_inputs": "x"}),
    "section-5.2": ({"exponent": 1.0},),
    "theorem-5.2": ({"sign": 1.0}, {"power": -0.5}),
    "section-5.3": ({"term": "Σr²"},),
    "section-6": ({"rows": changed_rows("starts", above_published_full=-0.01)},),
    "one-layer": ({"extra": 0.0},),
    "gd++-floor": ({"factor": 1.5},),
    "oracle": ({"factor": 1.2},),
    "bayes-floor": ({"assumed": "fixed(1)"},),
    "damping": ({"share": 0.1},),
}
"""Arguments with which a claim is false: each argument of each claim, a sign, an index, a factor or a power."""

SLOW_CLAIMS = frozenset(
    {"theorem-4.2", "more-heads", "theorem-5.2", "section-5.2", "one-layer", "gd++-floor", "bayes-floor"}
)
"""Claims that take longer than a few seconds to check."""

# Measurements

_LOSSES = {"gd++": 0.505, "const-ridge": 0.5, "ada-ridge": 0.2, "tuned-ridge": 0.15, "bayes": 0.04}


def _loss(method: str, num_layers: int | None) -> float:
    """A loss as the paper has it: GD++ near ConstRR, the others better with depth."""
    return _LOSSES.get(method) or {"diag": 0.4, "full": 0.44}[method] / (num_layers or 1)


def _at_level(method: str, noise_std: float, middle: float = 2.5) -> float:
    """A factor with its minimum at `middle`, where TunedRR is worse than the others."""
    bump = np.exp(-((noise_std - middle) ** 2)) if method == "tuned-ridge" else 0.0
    scale = 1.1 if method == "full" else 1.0
    return float(scale * ((noise_std - middle) ** 2 + 0.5) * (1 + bump))


def _cells(depths: Iterable[int]) -> list[tuple[str, int | None]]:
    depths = tuple(depths)
    return [
        *((family, depth) for family in PAPER_FAMILIES for depth in depths),
        *((b, None) for b in TABLE1_BASELINES),
    ]


def _column(need: Column, power: float) -> Table1Column:
    quantiles, tail = ProtocolQuantiles(0.5, 0.4, 0.6), Tail(0.5, 0.5, 0.0, 1.0, 0.0)
    rows = [
        Table1Row(
            method, depth, need.noise, loss, 0.1, None, 0.04, quantiles, "", tail, 0.5,
            median_of_means=Estimate(loss, 0.1), num_sequences=1000,
        )
        for method, depth in _cells(DEPTHS)
        for loss in [_loss(method, depth) ** power]
    ]  # fmt: skip
    return Table1Column(need.noise, rows, [])


def _robust(loss: float) -> dict[str, Any]:
    """What `Comparison.robust_summary` has, where few sequences dominate no mean."""
    of_means = {"median_of_means": loss, "median_of_means_error": 0.1}
    return {
        "median": loss,
        "median_error": 0.1,
        **of_means,
        "worst": loss,
        "num_exploded": 0,
        "num_sequences": 8192,
    }


def _profile(need: Profile, power: float) -> list[dict[str, Any]]:
    return [
        {"noise": need.noise, "method": method, "layers": depth, "noise_std": noise_std}
        | {"adjusted_loss": (loss := _at_level(method, noise_std) ** power), "standard_error": 0.1}
        | {"unadjusted_loss": loss + 1}
        | _robust(loss)
        for noise_std in parse_noise(need.noise).grid()
        for method, depth in _cells(need.depths)
    ]


def _layers(need: Layers, power: float) -> list[dict[str, Any]]:
    """After the first layer the best noise level is high, after the last one it is low."""
    rows = []
    for noise in need.noises:
        noise_std = parse_noise(noise).support()[1]
        for method, depth, seed in [(f, d, s) for f in PAPER_FAMILIES for d in need.depths for s in (0, 1)]:
            rows += [
                {"noise": noise, "method": method, "layers": depth, "seed": seed, "layer": layer}
                | {"adjusted_loss": (loss := ((noise_std - 9 + layer) ** 2 + 0.5) ** power), "standard_error": 0.1}
                | _robust(loss)
                for layer in range(1, depth + 1)
            ]
        floor = {"noise": noise, "method": "bayes", "layers": None, "seed": None, "layer": None}
        rows.append(floor | {"adjusted_loss": 0.04, "standard_error": 0.001} | _robust(0.04))
    return rows


def _excess(need: Excess, power: float) -> list[dict[str, Any]]:
    cells = [(spec.family, spec.num_heads, spec.num_layers) for spec in need.specs]
    cells += [(name, None, None) for name in TABLE1_BASELINES if name != "bayes"]
    return [
        {"noise": need.noise, "method": method, "heads": heads, "layers": depth}
        | {"excess": (loss := _loss(method, depth) ** power), "standard_error": 0.1, "bayes_floor": 0.04}
        | {"median_of_means": loss, "median_of_means_error": 0.1, "worst": loss, "num_sequences": 1000}
        for method, heads, depth in cells
    ]


def _matrices(need: Matrices, power: float) -> tuple[np.ndarray, np.ndarray]:
    return random_model("full", 4, 1, NoisyRegression()).matrices()


ROBUSTNESS_COLUMNS = ("exploded", "exploded_error", "median", "median_error", "mean", "mean_error", "worst")


def _robustness(need: Robustness, power: float) -> list[dict[str, Any]]:
    spec = ModelSpec.from_name(need.name)
    sizes = {"method": spec.family, "layers": spec.num_layers, "noise": str(spec.problem.noise)}
    columns = (*ROBUSTNESS_COLUMNS, *(f"oracle_{column}" for column in ROBUSTNESS_COLUMNS))
    losses = dict.fromkeys(columns, 0.5**power)
    return [
        sizes | {"contexts": kind, "damped": is_damped} | losses
        for kind in CONTEXT_KINDS
        for is_damped in (False, True)
    ]


def _constructed(need: AbstractMeasurement[Any], power: float) -> Any:
    return Constructed(broken=power < 0)[need]


@dataclass(frozen=True)
class MeasurementExample:
    """A measurement that takes little time on a small zoo.

    Attributes:
        need: The measurement.
        other: One of the same class that is not equal to it.
        invent: Gives a result of the same form for any measurement of the class, with losses as in the paper, to a
            power.
    """

    need: AbstractMeasurement[Any]
    other: AbstractMeasurement[Any]
    invent: Callable[[Any, float], Any]


MEASUREMENTS: dict[type, MeasurementExample] = {
    Column: MeasurementExample(Column("choice(1,3)"), Column("choice(1,5)"), _column),
    Profile: MeasurementExample(
        Profile("choice(1,3)", range(1, 3)), Profile("choice(1,3)", range(1, 4)), _profile
    ),
    Layers: MeasurementExample(
        Layers(("choice(1,3)",), range(1, 3)), Layers(("choice(1,3)",), range(1, 2)), _layers
    ),
    Excess: MeasurementExample(
        Excess("choice(1,3)", (ModelSpec("diag", 1, "choice(1,3)"),)), Excess("choice(1,3)", ()), _excess
    ),
    Robustness: MeasurementExample(
        Robustness("diag-1-choice(1,3)", 100), Robustness("diag-1-choice(1,3)", 200), _robustness
    ),
    Matrices: MeasurementExample(Matrices("diag-1-choice(1,3)"), Matrices("full-1-choice(1,3)"), _matrices),
    TrimmedLosses: MeasurementExample(
        TrimmedLosses("choice(1,3)", ("diag-1-choice(1,3)",), ("ada-ridge",), ("choice(1,3)", "fixed(1)"), 2000),
        TrimmedLosses("choice(1,3)", ("diag-1-choice(1,3)",), (), ("choice(1,3)",), 2000, every_layer=True),
        _constructed,
    ),
    Structures: MeasurementExample(
        Structures("full-1-choice(1,3)"), Structures("full-2-choice(1,3)"), _constructed
    ),
    ImpliedNoise: MeasurementExample(
        ImpliedNoise("diag-1-choice(1,3)"), ImpliedNoise("full-1-choice(1,3)"), _constructed
    ),
    WithoutOmega: MeasurementExample(
        WithoutOmega("diag-1-choice(1,3)"), WithoutOmega("full-1-choice(1,3)"), _constructed
    ),
    ModelDistance: MeasurementExample(
        ModelDistance("full-1-choice(1,3)", "diag-1-choice(1,3)"),
        ModelDistance("full-1-choice(1,3)", "gd++-1-choice(1,3)"),
        _constructed,
    ),
    IterativeSteps: MeasurementExample(IterativeSteps("choice(1,3)"), IterativeSteps("fixed(1)"), _constructed),
}
"""Measurements by class."""


class InventedResults(Results):
    """Results of any measurements, invented where they are asked for.

    Args:
        power: Losses are those of the paper's kind to this power, so that -1 reverses their order.
    """

    def __init__(self, power: float = 1.0):
        super().__init__({})
        self.power = power

    def __getitem__(self, need: AbstractMeasurement[Any]) -> Any:
        if need not in self._values:
            self._values[need] = MEASUREMENTS[type(need)].invent(need, self.power)
        return self._values[need]


OF_MEANS = ("median_of_means", "median_of_means_error")
PROTOCOL_COLUMNS = ("protocol_median", "protocol_5", "protocol_95", "is_dominated", *OF_MEANS)
PROFILE_COLUMNS = (
    *("noise", "method", "layers", "noise_std"),
    *("adjusted_loss", "standard_error", "unadjusted_loss"),
)
ROBUST_COLUMNS = tuple(_robust(0.0))
FIGURE_COLUMNS: dict[str, tuple[str, ...]] = {
    "1": ("noise", "method", "layers", "adjusted_loss", "standard_error", *PROTOCOL_COLUMNS),
    "2": (*PROFILE_COLUMNS, *ROBUST_COLUMNS),
    "3": (
        *("noise", "method", "layers", "adjusted_loss", "standard_error", "noise_std"),
        *PROTOCOL_COLUMNS,
    ),
    "4": ("layer", "matrix", "row", "column", "value"),
    "5": ("noise", "method", "layers", "seed", "layer", "adjusted_loss", "standard_error", *ROBUST_COLUMNS),
    "6": (*PROFILE_COLUMNS, *ROBUST_COLUMNS),
    "7": (
        *("method", "layers", "layer", "noise_std", "std_over_seeds", "adjusted_loss"),
        *("median", "median_low", "median_high"),
    ),
    "8": (
        *("noise", "method", "heads", "layers", "excess", "standard_error", "bayes_floor"),
        *(*OF_MEANS, "worst", "num_sequences"),
    ),
    "dynamics": (
        *("method", "layers", "noise", "step", "layer", "ω_xx", "ω_xy", "ω_yx", "ω_yy"),
        *("adjusted_loss", "standard_error", "published_loss"),
    ),
    "robustness": (
        *("method", "layers", "noise", "contexts", "damped"),
        *ROBUSTNESS_COLUMNS,
        *(f"oracle_{column}" for column in ROBUSTNESS_COLUMNS),
    ),
}
"""Columns of each figure's CSV file."""

# Completeness


@dataclass(frozen=True)
class Kind:
    """A kind of members.

    Attributes:
        source: The registry, or the abstract class whose concrete subclasses are the members.
        covered: The members that tests use.
        remedy: What to add where one is missing.
    """

    source: Registry[Any] | Mapping[str, Any] | type
    covered: Collection[Any]
    remedy: str

    def check(self) -> None:
        """Fail with a sentence where the registered members are not exactly those that tests use."""
        registered = concrete(self.source) if isinstance(self.source, type) else list(self.source)
        missing = [_name(member) for member in registered if member not in self.covered]
        assert not missing, f"No test uses {', '.join(missing)}: {self.remedy} in tests/members.py."
        unknown = [_name(member) for member in self.covered if member not in registered]
        assert not unknown, (
            f"{', '.join(unknown)} is used in tests/members.py and is not a member: remove it there."
        )


def _name(member: Any) -> str:
    return member.__name__ if isinstance(member, type) else str(member)


KINDS = {
    "families": Kind(FAMILIES, {model.family for model in MODELS.values()}, "add the family to `MODELS`"),
    "predictors": Kind(
        AbstractPredictor,
        {type(value) for value in PREDICTORS.values()},
        "add a predictor of the class to `baselines`",
    ),
    "baselines": Kind(
        BASELINE_REGISTRY,
        [name for name in BASELINES if name in BASELINE_REGISTRY],
        "add the baseline to `BASELINES`",
    ),
    "priors": Kind(PRIORS, PRIOR_EXAMPLES, "add examples with their law to `PRIOR_EXAMPLES`"),
    "rejected priors": Kind(PRIORS, REJECTED_PRIORS, "add texts that it rejects to `REJECTED_PRIORS`"),
    "stages": Kind(
        AbstractStage, {type(example.stage) for example in STAGES.values()}, "add a small stage to `STAGES`"
    ),
    "optimisers": Kind(
        OPTIMISERS,
        {example.stage.optimiser for example in STAGES.values() if isinstance(example.stage, Descent)},
        "add a descent with the optimiser to `STAGES`",
    ),
    "recipes": Kind(RECIPES, RECIPE_EXAMPLES, "add the recipe to `RECIPE_EXAMPLES`"),
    "recipe classes": Kind(
        AbstractRecipe,
        {type(value) for value in RECIPE_EXAMPLES.values()},
        "register the recipe, and add it to `RECIPE_EXAMPLES`",
    ),
    "perturbations": Kind(
        AbstractPerturbation, {type(value) for value in PERTURBATIONS.values()}, "add one to `PERTURBATIONS`"
    ),
    "figures": Kind(FIGURES, FIGURE_COLUMNS, "add the columns of the figure to `FIGURE_COLUMNS`"),
    "measurements": Kind(AbstractMeasurement, MEASUREMENTS, "add an example to `MEASUREMENTS`"),
    "claims": Kind(CLAIMS, BROKEN_CLAIMS, "add arguments that break the claim to `BROKEN_CLAIMS`"),
    "statements": Kind(
        {statement.check.__name__: statement for statement in STATEMENTS},
        STATEMENT_EXAMPLES,
        "add what breaks the statement to `STATEMENT_EXAMPLES` of tests/statement_examples.py, which is used",
    ),
}
"""What is registered, and what tests use.

Objectives, grids, cases and commands are not here: tests run over their registries.
"""
