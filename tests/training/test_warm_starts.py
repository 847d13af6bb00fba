from dataclasses import replace

import pytest

from lintra.models import FAMILIES
from lintra.training import WarmStarts, train
from training_helpers import KEY, SMALL, SPEC


def test_a_warm_start_is_never_made_worse_and_pools_are_shared():
    cache, smaller, losses = {}, None, {}
    for family in ("gd++", "diag", "full"):
        spec = replace(SPEC, family=family, num_layers=1)
        shallower = train(spec, SMALL, cache=cache, num_sequences=1000, throw=False).model
        count = len(cache)
        warm_starts = WarmStarts(shallower=shallower, smaller=smaller)
        result = train(
            replace(spec, num_layers=2), SMALL, warm_starts=warm_starts, cache=cache, num_sequences=50_000
        )
        assert len(cache) == count
        assert result.model.num_layers == 2
        smaller, losses[family] = result.model, result.loss
    assert losses["diag"].mean <= losses["gd++"].mean + 2 * losses["gd++"].standard_error
    assert losses["full"].mean <= losses["diag"].mean + 2 * losses["diag"].standard_error


def test_warm_starts_that_do_not_fit_are_rejected(tmp_path):
    def model(family, num_layers, num_heads=1):
        return FAMILIES[family].random(num_layers, dim=3, num_examples=6, num_heads=num_heads, key=KEY)

    full = replace(SPEC, family="full")
    sizes = r"\(family, num_layers, num_heads, dim, num_examples\)"
    for spec, warm_starts, message in (
        (full, WarmStarts(shallower=model("full", 1)), r"`warm_starts.shallower` needs .* \('diag', 2\)"),
        (
            full,
            WarmStarts(smaller=model("full", 1)),
            rf"`warm_starts.smaller` must have {sizes} = \('diag', 2, 1, 3, 6\)",
        ),
        (full, WarmStarts(smaller=model("gd++", 2)), r"got \('gd\+\+', 2, 1, 3, 6\)"),
        (
            SPEC,
            WarmStarts(fewer_heads=model("diag", 2)),
            r"`warm_starts.fewer_heads` must have .* = \('diag', 2, 0,",
        ),
        (replace(SPEC, family="gd++"), WarmStarts(smaller=model("gd++", 2)), "no family is smaller than gd"),
    ):
        with pytest.raises(ValueError, match=message):
            train(spec, SMALL, warm_starts=warm_starts)
    with pytest.raises(ValueError, match="leave out `warm_starts` or `folder`"):
        train(SPEC, SMALL, warm_starts=WarmStarts(smaller=model("gd++", 2)), folder=tmp_path)
    with pytest.raises(TypeError, match="`warm_starts` must be WarmStarts"):
        train(SPEC, SMALL, warm_starts={"smaller": model("gd++", 2)})  # pyright: ignore[reportArgumentType]
    WarmStarts(model("diag", 1, 2), model("gd++", 2), model("diag", 2, 1)).check(replace(SPEC, num_heads=2))
