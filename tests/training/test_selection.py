from dataclasses import replace

import numpy as np
import pytest

from lintra.models import Diagonal
from lintra.training.selection import IGNORED_PROBABILITY, Selection
from training_helpers import KEY, SPEC


def test_the_selection_counts_what_is_rare_but_not_what_is_rarer():
    selection = Selection("selected", KEY, SPEC, ("a", "b"), num_blocks=2)
    calm = Diagonal(np.asarray([[[0.0, -0.3]]]), np.asarray([[[0.3, 0.3]]]), 6, 3)
    state = selection.start({"a": calm, "b": calm})
    sequences = 8192
    for probability, counts in ((1e-8, False), (1e-5, True)):
        worst = state.means.worst.at[1, 0, 0].set(1e9)
        importance = state.means.importance.at[1, 0, 0].set(probability * sequences)
        before = replace(state, means=replace(state.means, worst=worst, importance=importance))
        seen = selection.advance(before, selection.prepare())
        means = seen.means.mean(IGNORED_PROBABILITY)
        assert (means[1, 0] > 100) == counts
        assert means[1, 1] == pytest.approx(means[0, 1], rel=0.2)
        assert selection.best(seen) == 1  # as the simpler one, where both are as good
