from typing import Any

import pytest

from lintra.training import Paper
from training_helpers import KEY, SPEC


def test_clipping_can_be_left_out():
    stage: Any = Paper(clip_norm=None).stages(SPEC, KEY)[0]
    assert stage.guard.clip_norm is None
    with pytest.raises(ValueError, match="`clip_norm` must be"):
        Paper(clip_norm=0.0)
