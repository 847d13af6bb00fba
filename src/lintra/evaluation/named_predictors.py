"""What is measured: predictors given as objects or by name, and the problem they are measured on."""

from collections.abc import Mapping, Sequence

from lintra.arguments import KeyLike, random_key
from lintra.baselines import BASELINES, baseline
from lintra.evaluation.blocks import fold_in_words
from lintra.models.base import AbstractModel
from lintra.predictor import AbstractPredictor
from lintra.problem.noisy_regression import NoisyRegression
from lintra.zoo.lookup import find

Predictor = AbstractPredictor | str
Predictors = Predictor | Sequence[Predictor] | Mapping[str, Predictor]
"""One predictor or several: objects, or names of baselines and models, alone, in a sequence, or by name."""

ORACLE = "oracle"
"""Name of ridge regression with the true σ, which every loss is compared with."""


def resolve_predictors(
    predictors: Predictors, problem: NoisyRegression | None, *, key: KeyLike
) -> tuple[dict[str, AbstractPredictor], NoisyRegression]:
    """Find what is given by name, and the problem.

    Args:
        predictors: One predictor or several.
        problem: The problem. `None`: the one on which the models that are given by name were trained.
        key: Randomness for baselines that are tuned on sampled sequences.

    Returns:
        The predictors by name, and the problem.

    Raises:
        ValueError: If there is no predictor, a name stands twice, or the problem is not known.
        TypeError: If something is not a predictor.
    """
    named = _by_name(predictors)
    models, priors = {}, {}
    for name, predictor in named.items():
        if isinstance(predictor, str) and predictor not in BASELINES:
            models[name], priors[name] = find(predictor)
    if problem is None:
        problem = _training_problem(models, priors)
    resolved = {}
    for name, predictor in named.items():
        if not isinstance(predictor, str):
            resolved[name] = predictor
        elif name in models:
            resolved[name] = models[name]
        else:
            tuning_key = fold_in_words(random_key(key), "tuning", predictor)
            resolved[name] = baseline(predictor, problem, key=tuning_key)
    return resolved, problem


def _by_name(predictors: Predictors) -> dict[str, Predictor]:
    """Return predictors by name. One without a name has its text, its family and depth, or its class as name."""
    if isinstance(predictors, Mapping):
        pairs = list(predictors.items())
    elif isinstance(predictors, Sequence) and not isinstance(predictors, str):
        pairs = [(_default_name(one), one) for one in predictors]
    else:
        pairs = [(_default_name(predictors), predictors)]
    if not pairs:
        raise ValueError("`predictors` must have at least one predictor, got none.")
    for name, predictor in pairs:
        if not isinstance(name, str) or not isinstance(predictor, AbstractPredictor | str):
            raise TypeError(
                "`predictors` must be a predictor, a name such as 'bayes' or 'full-7-uniform(0,5)', a sequence of "
                f"these, or a dictionary from names to these, as in {{'mine': model}}; got {predictor!r}."
            )
        if name == ORACLE:
            raise ValueError(
                f"`predictors` must not use the name '{ORACLE}': it stands for ridge with the true σ."
            )
    named = dict(pairs)
    if len(named) < len(pairs):
        twice = next(name for name in named if sum(other == name for other, _ in pairs) > 1)
        raise ValueError(
            f"`predictors` has {twice!r} twice: give a dictionary from names, as in {{'mine': model}}."
        )
    return named


def _default_name(predictor: Predictor) -> str:
    if isinstance(predictor, AbstractModel):
        return f"{predictor.family}-{predictor.num_layers}"
    return predictor if isinstance(predictor, str) else type(predictor).__name__


def _training_problem(models: Mapping[str, AbstractModel], priors: Mapping[str, str | None]) -> NoisyRegression:
    """Return the one problem that models given by name were trained on."""
    problems = {
        name: (model.dim, model.num_examples, noise)
        for name, model in models.items()
        if (noise := priors[name]) is not None
    }
    if not problems:
        raise ValueError(
            "`problem` must be given, as in NoisyRegression(noise='uniform(0,5)'): no predictor is given by a "
            "name that says which problem it was trained on."
        )
    if len(set(problems.values())) > 1:
        listed = ", ".join(f"{name} on {NoisyRegression(*problem)}" for name, problem in problems.items())
        raise ValueError(f"`problem` must be given, since models were trained on different ones: {listed}.")
    return NoisyRegression(*next(iter(problems.values())))
