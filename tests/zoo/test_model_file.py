import os
import stat

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintra.baselines import LeastSquares
from lintra.models import Full
from lintra.zoo import model_file
from members import MODELS

MODEL = MODELS["full-4-h2"]


def test_the_file_holds_the_matrices_as_printed(tmp_path):
    from safetensors.numpy import load_file

    model_file.save(MODEL, tmp_path / "m.safetensors")
    tensors = load_file(tmp_path / "m.safetensors")
    for name, matrix in zip("PQ", MODEL.matrices(), strict=True):
        assert np.array_equal(tensors[name], matrix)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m.safetensors"
    model_file.save(MODEL, path)
    return path.read_bytes()


@given(data=st.data())
def test_a_truncated_or_altered_file_is_rejected_by_a_sentence(data, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("broken") / "m.safetensors"
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        broken = content[:position]
    else:
        broken = bytearray(content)
        broken[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(broken)
    try:
        model = model_file.load(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:  # a bit of white space in the header
        assert all(np.array_equal(a, b) for a, b in zip(model.matrices(), MODEL.matrices(), strict=True))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"context":"9"', b'"context":"8"'), (b'"family":"full"', b'"family":"diag"'), (b'"dim":"4"', b'"dim":"5"')],
)
def test_altered_metadata_is_rejected(before, after, content, tmp_path):
    path = tmp_path / "m.safetensors"
    assert before in content
    path.write_bytes(content.replace(before, after))
    with pytest.raises(ValueError, match="was altered"):
        model_file.load(path)


def test_a_file_of_another_kind_is_rejected(tmp_path):
    from safetensors.numpy import save_file

    save_file({"P": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="is not a lintra-model-1 file: its format is None"):
        model_file.load(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError):
        model_file.load(tmp_path / "missing.safetensors")


def test_the_same_model_makes_the_same_bytes(tmp_path):
    for number in range(5):
        model_file.save(MODEL, tmp_path / str(number), noise="uniform(0,5)")
    assert len({(tmp_path / str(number)).read_bytes() for number in range(5)}) == 1


def test_only_models_can_be_saved(tmp_path):
    with pytest.raises(ValueError, match="`model` must be of a family of lintra, got LeastSquares"):
        model_file.save(LeastSquares(), tmp_path / "x")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`noise`"):
        model_file.save(MODEL, tmp_path / "x", noise="loud")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    model_file.save(MODEL, path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model_file.save(Full.random(2, key=jax.random.key(0)), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]


def test_files_have_the_permissions_that_people_expect(tmp_path):
    path = tmp_path / "m.safetensors"
    model_file.save(MODEL, path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
