from dataclasses import replace

import pytest

from lintra.models import FAMILIES
from lintra.training import train
from training_helpers import SMALL, SPEC


@pytest.mark.parametrize("family", FAMILIES)
def test_fast_trains_every_family(family):
    spec = replace(SPEC, family=family)
    trained = train(spec, SMALL, num_sequences=50_000)
    assert trained.model.family == family
    assert trained.loss.mean < (0.30 if family == "gd++" else 0.26)
