import jax
import numpy as np
import pytest

from lintra.regression import specialist_training
from lintra.regression.regressor import LinearTransformerRegressor
from lintra.runtime.progress import Progress
from lintra.training.version import TRAINING_VERSION
from regression_helpers import data


def test_a_cached_specialist_is_found_by_its_key_and_the_training_version(tmp_path, monkeypatch):
    monkeypatch.setenv("LINTRA_CACHE", str(tmp_path))
    trained = []
    monkeypatch.setattr(specialist_training, "_ITERATIONS", 10)

    class Count(Progress):
        def update(self, done, **fields):
            trained.append(fields["loss"])

    def specialise(**key):
        return np.asarray(specialist_training.specialise(2, 9, progress=Count(), **key).q)

    def content():
        return {path.name: path.read_bytes() for path in (tmp_path / "lintra" / "specialists").iterdir()}

    default = specialise()
    kept = content()
    np.testing.assert_array_equal(specialise(key=jax.random.key(0)), default)
    assert (len(trained), content()) == (1, kept)
    other = specialise(key=jax.random.key(1))
    assert not np.allclose(other, default, rtol=1e-6)
    assert len(content()) == len(trained) == 2
    monkeypatch.setattr(specialist_training, "TRAINING_VERSION", TRAINING_VERSION + 1)
    np.testing.assert_array_equal(specialise(), default)
    assert len(content()) == len(trained) == 3
    assert len(set(content().values())) == 2  # the same key gives the same bytes


def test_a_specialist_for_exactly_this_is_trained_once_and_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LINTRA_CACHE", str(tmp_path))
    x, y, _ = data(n=9, d=2)
    fitted = LinearTransformerRegressor(specialise=True, verbose=True).fit(x, y)
    assert "specialist for n = 9, d = 2: 30/30" in capsys.readouterr().out
    (kept,) = (tmp_path / "lintra" / "specialists").iterdir()
    changed = kept.stat().st_mtime_ns
    again = LinearTransformerRegressor(specialise=True).fit(x, y)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert kept.stat().st_mtime_ns == changed
    kept.write_bytes(kept.read_bytes()[:100])
    np.testing.assert_array_equal(LinearTransformerRegressor(specialise=True).fit(x, y).coef_, fitted.coef_)
    assert kept.stat().st_size > 100


def test_a_specialist_that_cannot_be_kept_is_used_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LINTRA_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be kept for the next time"):
        fitted = LinearTransformerRegressor(specialise=True).fit(*data(n=9, d=2)[:2])
    assert fitted.coef_.shape == (2,)
