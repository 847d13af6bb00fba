import pytest

from lintra.training import train
from training_helpers import QUICK, SPEC, rounds_of_100_steps


@pytest.fixture(scope="module")
def short_rounds():
    """Rounds of 100 steps and a checkpoint after each, in a whole module."""
    with rounds_of_100_steps():
        yield


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The folder and the result of a run that was never interrupted."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with rounds_of_100_steps():
        return folder, train(SPEC, QUICK, folder=folder, num_sequences=20_000)
