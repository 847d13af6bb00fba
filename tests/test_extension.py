"""A package from outside adds a family, a noise prior, a baseline and a figure, without an edit in lintra."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lintra.registry import Registry

EXTENSION = Path(__file__).with_name("extension")
PROBLEM = ("--noise", "loguniform(0.2,4)", "--dim", "3", "--examples", "8")


@dataclass(frozen=True)
class Command:
    """The command `lintra` in a folder and an environment."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "lintra", *arguments]
        result = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def lintra_with_extension(tmp_path_factory):
    """The command `lintra` in an environment where the extension is installed, in an empty folder."""
    folder = tmp_path_factory.mktemp("extension")
    source = shutil.copytree(EXTENSION, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder / "site", source], check=True)
    (folder / "work").mkdir()
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "LINTRA_CACHE": str(folder)}

    return Command(folder / "work", environment)


def test_a_family_and_a_prior_from_outside_are_trained_saved_loaded_and_measured(lintra_with_extension):
    training = (
        "--family",
        "gd",
        "--layers",
        "2",
        *PROBLEM,
        "--recipe",
        "paper",
        "--starts",
        "2",
        "--steps",
        "200",
    )
    measuring = ("--learning-rate", "0.01", "--sequences", "2000", "--out", "run", "--json")
    (trained,) = json.loads(lintra_with_extension("train", *training, *measuring))
    assert trained["method"] == "gd"
    rows = json.loads(
        lintra_with_extension(
            "evaluate", "run", "--method", "zero", "--method", "bayes", "--sequences", "4000", "--json"
        )
    )
    losses = {row["method"]: row["adjusted_loss"] for row in rows}
    assert {row["noise"] for row in rows} == {"loguniform(0.2,4)"}
    model = next(loss for name, loss in losses.items() if name not in ("zero", "bayes"))
    assert losses["bayes"] < model < losses["zero"]


def test_a_figure_from_outside_is_drawn(lintra_with_extension):
    lintra_with_extension("figure", "shrinkage", "--sequences", "2000", "--out", "figures")
    names = {path.name for path in (lintra_with_extension.folder / "figures").iterdir()}
    assert names == {f"figure-shrinkage.{kind}" for kind in ("csv", "png", "pdf", "svg")}


def test_a_name_of_lintra_cannot_be_taken():
    members = Registry("colours", {"red": 1})
    with pytest.raises(ValueError, match="`name` 'red' is taken: the colours are red"):
        members.register("red", 2)
