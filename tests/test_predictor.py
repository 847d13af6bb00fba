import numpy as np
import pytest

from lintra.statistics.sampling import sample_statistics
from members import DIM, MODELS
from models_helpers import PROBLEM


@pytest.mark.parametrize("query", [np.ones(1), np.ones(DIM + 1), 1.0, np.full(DIM, np.nan)])
def test_a_query_that_does_not_fit_is_rejected(query, getkey):
    stats, _ = sample_statistics(PROBLEM, key=getkey())
    with pytest.raises(ValueError, match="`query` must"):
        MODELS["full-1-h1"].predict(stats, query)
