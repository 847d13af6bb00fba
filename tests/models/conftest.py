import jax
import pytest

from lintra.statistics.sampling import sample_data
from members import DIM
from models_helpers import PROBLEM


@pytest.fixture
def sequence(getkey):
    x, y, _ = sample_data(PROBLEM, key=getkey())
    return x, y, jax.random.normal(getkey(), (DIM,))
