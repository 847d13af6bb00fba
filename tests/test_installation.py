import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement


def _named(name, entries, **environment):
    """Of these requirements the one for a package that applies, here or in another environment."""
    found = [Requirement(entry) for entry in entries]
    (one,) = [r for r in found if r.name == name and (r.marker is None or r.marker.evaluate(environment))]
    return one.specifier


def test_the_build_pins_the_oldest_supported_headers():
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    supported = _named("jax", settings["project"]["dependencies"])
    build = settings["build-system"]["requires"]
    for python, oldest in (("3.11", "0.6.0"), ("3.13", "0.6.0"), ("3.14", "0.7.2")):
        assert str(_named("jaxlib", build, python_version=python)) == f"=={oldest}"
        assert supported.contains(oldest)
    assert not supported.contains("0.5.3")
    assert _named("jaxlib", build, python_version="3.15")
    excluded = [s.version for s in _named("jax", requires("equinox")) if s.operator == "!="]
    assert not any(supported.contains(version) for version in excluded)
