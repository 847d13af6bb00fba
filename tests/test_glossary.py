"""One word per idea: names of public functions, parameters and fields follow `docs/notation.md`."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lintra"
FILES = sorted(SOURCE.rglob("*.py"))
OTHERS = sorted(path for folder in ("tests", "tests_page", "examples") for path in (ROOT / folder).rglob("*.py"))

OLD = frozenset(
    """
    variant variants task_variant own own_units any_unit unit in_unit relabelled masses probe probed unprobed slope
    slopes lesson lessons shelf material known held_out judging_key complaint hops glance hop seedling seedlings
    place places astray returned by_start ended usual spike warm_up lowered bend handicap begun given_up told
    believed beliefs believed_noise looks look piece pieces say watch std stds level levels gauge
    Lesson Shelf HeldOut Trained Finding Slope Look Track Report Say Watch Piece Account Frame Weighed Evidence
    InOwnUnits Only RandomAndKnown SequenceFit SpectralFit AbstractFit Fitted Task AbstractNoise AbstractDiscrete
    VARIANTS LEVELS Numbers covers noise_floor probed_distance from_printed_scale Printed in_own_units
    labels_of_size_one LONGER stretched loud as_family with_gap deepened head_shares follow conclude settle
    RARE WORST TIE TRIAL CHOICE KEPT POLISH WORTH PROMISING DISTURBANCES ahead LOOK DEATHS sampled_query
    repeat_protocol Repeated LOOKS balanced transformed Shape flow Account account Group Part carry
    write_aside keep_compiled_programs Processes complain judge Deadly deadly Crashing
    """.split()  # noqa: SIM905
)
"""Words that were replaced. `task` itself is one regression, as in `lintra solve --task`."""

PLURAL_INTEGERS = frozenset({"seconds"})
"""Parameters that are whole numbers, end in `s`, and count nothing."""


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def parameters(function):
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def fields(tree):
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [part for node in classes for part in node.body if isinstance(part, ast.AnnAssign)]


def written(annotation):
    return "" if annotation is None else ast.unparse(annotation)


def defined(tree):
    """Names that a file defines: functions, classes, parameters, fields and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def old_words(tree):
    return OLD & {name.lstrip("_") for name in defined(tree)}


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_in_tests_and_examples_follow_the_glossary(path):
    assert old_words(ast.parse(path.read_text(encoding="utf-8"))) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_names_follow_the_glossary(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert old_words(tree) == set()
    counted = [(part.arg, part.annotation) for function in functions(tree) for part in parameters(function)]
    counted += [(part.target.id, part.annotation) for part in fields(tree) if isinstance(part.target, ast.Name)]
    wrong = [
        name
        for name, annotation in counted
        if written(annotation) in ("int", "int | None")
        and name.endswith("s")
        and not name.startswith("num_")
        and not name.endswith(("_steps", "_nodes"))
        and name not in PLURAL_INTEGERS
    ]
    assert wrong == [], "counts are named num_*"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_randomness_is_a_key(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in functions(tree):
        for part in parameters(function):
            if written(part.annotation).startswith(("Key[", "KeyLike")) and path.name != "arguments.py":
                assert part.arg == "key" or part.arg.endswith("_key"), (function.name, part.arg)
        if path.name != "grid.py" and not path.is_relative_to(SOURCE / "cli"):  # a cell is named by its seed
            assert "seed" not in {part.arg for part in parameters(function)}, function.name
        public = not function.name.startswith("_") and len(parameters(function)) > 1
        likes = [part for part in parameters(function) if "KeyLike" in written(part.annotation)]
        if path.name != "arguments.py":
            assert not public or all(part in function.args.kwonlyargs for part in likes), function.name
