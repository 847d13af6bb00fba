import subprocess
import sys

import numpy as np
import pytest

import lintra
from anatomy_helpers import KEY, small
from lintra import NoisyRegression, sample_data, zoo
from lintra.anatomy import omegas
from lintra.anatomy.program import FORMATS, export
from lintra.models.thresholds import measure_damping


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize("num_heads", [1, 2])
def test_an_exported_program_needs_numpy_alone_and_does_the_same(family, num_heads, tmp_path):
    model = small(family, num_heads, scale=0.15)
    x, y, _ = sample_data(NoisyRegression(4, 8, "uniform(0,2)"), (200,), key=KEY)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    program = tmp_path / "algorithm.py"
    program.write_text(export(model, title="mine", noise="uniform(0,2)"))
    script = (
        "import sys; sys.modules.update(dict.fromkeys(('jax', 'lintra', 'scipy', 'equinox')));"
        f"sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, algorithm;"
        f"data = np.load({str(tmp_path / 'data.npz')!r});"
        f"np.save({str(tmp_path / 'w.npy')!r}, [algorithm.fit(x, y) for x, y in zip(data['x'], data['y'])]);"
        "assert np.allclose(algorithm.predict(data['x'][0], data['y'][0], data['x'][0]), "
        "data['x'][0] @ algorithm.fit(data['x'][0], data['y'][0]))"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True)
    expected = model.weights(lintra.GramStatistics.from_data(x, y))
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["diag-4-uniform(0,5)", "full-7-uniform(0,5)"])
def test_published_algorithms_exported_do_the_same_on_ten_thousand_sequences(name):
    model, space = zoo.load(name), {}
    exec(export(model, title=name), space)
    x, y, _ = sample_data(NoisyRegression(), (10_000,), key=KEY)
    expected = np.asarray(model.weights(lintra.GramStatistics.from_data(x, y)))
    found = np.stack([space["fit"](*one) for one in zip(np.asarray(x), np.asarray(y), strict=True)])
    assert np.abs(found - expected).max() < 1e-10


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
def test_other_forms_have_the_numbers(family):
    model = small(family)
    first = f"{omegas(model)[0, 0]:.4g}"
    assert first in export(model, form="latex")
    assert f"{omegas(model)[0, 0]:.5g}" in export(model, form="pseudo-code")
    with pytest.raises(ValueError, match="`form` must be one of numpy"):
        export(model, form="fortran")
    assert len(FORMATS) == 3


@pytest.mark.parametrize("family", ["full", "diag", "gd++"])
@pytest.mark.parametrize("num_heads", [1, 2])
def test_an_exported_program_of_a_damped_model_does_the_same_outside_of_the_range(family, num_heads):
    model = small(family, num_heads, scale=0.3)
    problem = NoisyRegression(4, 8, "uniform(0,2)")
    damped = model.with_damping(measure_damping(model, problem, num_sequences=500, quantile=0.8))
    x, y, _ = sample_data(problem, (60,), key=KEY)
    x = np.asarray(x) * np.linspace(0.5, 8.0, 60)[:, None, None]
    y = np.asarray(y) * np.linspace(0.5, 20.0, 60)[:, None]
    space = {}
    exec(export(damped), space)
    found = np.stack([space["fit"](*one) for one in zip(x, y, strict=True)])
    expected = damped.weights(lintra.GramStatistics.from_data(x, y))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    assert damped.damping is not None
    rho = float(np.asarray(damped.damping.rho)[1])
    assert f"{rho:.5g}" in export(damped, form="pseudo-code")
    assert f"{rho:.4g}" in export(damped, form="latex")
