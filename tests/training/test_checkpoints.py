import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from lintra.training import train
from lintra.training.checkpoints import RunFolder
from lintra.training.recipes.fast import Fast
from lintra.zoo import tensors
from training_helpers import QUICK, SPEC, InterruptAfter, InterruptedHereError, Messages

pytestmark = pytest.mark.usefixtures("short_rounds")


@pytest.mark.parametrize("num_units", [0, 1, 3])
def test_a_run_resumes_to_the_same_bytes(num_units, undisturbed, tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(num_units))
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000)
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [100, 200, 300, 400]


@pytest.mark.parametrize(("family", "cuts"), [("full", (3, 6)), ("diag", (3,))])
def test_a_fast_run_resumes_to_the_same_bytes(family, cuts, tmp_path):
    """GD++ has two units of work here, FULL's starts seven, DIAG two; then comes the selection."""
    spec, recipe = replace(SPEC, family=family), Fast(num_starts=2, num_steps=300, pool_size=8192, num_blocks=8)
    train(spec, recipe, folder=tmp_path / "undisturbed", num_sequences=1000)
    expected = (tmp_path / "undisturbed" / "model.safetensors").read_bytes()
    for num_units in cuts:
        folder = tmp_path / f"cut-{num_units}"
        with pytest.raises(InterruptedHereError):
            train(spec, recipe, folder=folder, progress=InterruptAfter(num_units))
        assert not (folder / "model.safetensors").exists()
        train(spec, recipe, folder=folder, num_sequences=1000)
        assert (folder / "model.safetensors").read_bytes() == expected


def damaged_checkpoint(path, damage):
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "alter":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:  # with a checksum that fits
        arrays, metadata = tensors.read_tensors(path, "lintra-checkpoint-1")
        tensors.write_tensors(path, arrays, metadata | {"models": damage})


@pytest.mark.parametrize("damage", ["cut", "alter", "[1]", "[" * 100_000])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_used(damage, undisturbed, tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(2))
    damaged_checkpoint(tmp_path / "checkpoint.safetensors", damage)
    messages = Messages()
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=messages)
    (text,) = messages.texts
    assert "checkpoint.safetensors" in text
    assert "resumes from the one before it" in text
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()


def test_a_full_disk_leaves_the_last_checkpoint_whole(undisturbed, tmp_path, monkeypatch):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, progress=InterruptAfter(1))

    before, sync = (tmp_path / "checkpoint.safetensors").read_bytes(), os.fsync

    def full(handle):
        if "checkpoint" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            train(SPEC, QUICK, folder=tmp_path)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    messages = Messages()
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=messages)
    assert not messages.texts
    assert (tmp_path / "model.safetensors").read_bytes() == (undisturbed[0] / "model.safetensors").read_bytes()


def test_the_folder_of_another_run_is_rejected(undisturbed):
    with pytest.raises(ValueError, match=r"holds a run with num_steps = 400, not 500. Choose another folder"):
        train(SPEC, replace(QUICK, num_steps=500), folder=undisturbed[0])
    run = RunFolder(undisturbed[0], json.loads((undisturbed[0] / "settings.json").read_text())["settings"], {})
    with pytest.raises(ValueError, match="is in use by another run"):
        train(SPEC, QUICK, folder=undisturbed[0])
    run.close()


def test_time_resumes_where_it_was(tmp_path):
    with pytest.raises(InterruptedHereError):
        train(SPEC, QUICK, folder=tmp_path, num_sequences=1000, progress=InterruptAfter(2))
    before = [json.loads(line)["seconds"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    train(SPEC, QUICK, folder=tmp_path, num_sequences=1000)
    after = [json.loads(line)["seconds"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert after[: len(before)] == before
    assert after == sorted(after)
    assert len(after) == 4


@pytest.mark.slow
def test_killed_at_random_moments_a_run_ends_in_the_same_bytes(tmp_path):
    """Twenty times `kill -9`, on a run of two stages kinds: a fit, and SOAP."""
    command = [
        sys.executable,
        "-m",
        "lintra",
        "train",
        "--family",
        "full",
        "--layers",
        "3",
        "--noise",
        "choice(1,3)",
    ]
    command += ["--dim", "5", "--examples", "10", "--steps", "6000", "--sequences", "10000", "--out"]
    subprocess.run([*command, str(tmp_path / "undisturbed")], check=True, capture_output=True)
    moments, kills = random.Random(0), 0
    while kills < 20:
        folder = tmp_path / f"killed-{kills}"
        while True:
            process = subprocess.Popen(
                [*command, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(timeout=moments.uniform(1.0, 20.0))
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        assert process.returncode == 0
        expected = (tmp_path / "undisturbed" / "model.safetensors").read_bytes()
        assert (folder / "model.safetensors").read_bytes() == expected
