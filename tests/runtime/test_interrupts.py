"""Ctrl-C and forks, in real processes."""

import importlib.util
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest


def _wait(condition, seconds=100.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this should have happened by now"
        time.sleep(0.02)


def _cpu_seconds(process):
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def _interrupt(process):
    """Interrupt a process and its children, as a terminal does, and return what was said."""
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "KeyboardInterrupt" not in errors
    return errors


@pytest.mark.parametrize("seconds", [0.2, 1.0, 2.5])
def test_an_interrupt_during_the_imports_ends_in_one_line(start, seconds):
    process = start("-m", "lintra", "baselines", "--sequences", 10**8)
    _wait(lambda: _cpu_seconds(process) > seconds)
    assert _interrupt(process) == "lintra: interrupted.\n"


def test_an_interrupt_while_children_are_starting_ends_them_all_in_silence(start):
    process = start("-m", "lintra", "sweep", "tiny")

    def workers():
        children = psutil.Process(process.pid).children()
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    _wait(lambda: any(_cpu_seconds(child) > 0.5 for child in workers()))  # in the middle of its imports
    children = workers()
    lines = _interrupt(process).splitlines()
    assert lines[-1] == "lintra: interrupted."
    assert all("cells" in line for line in lines[:-1])  # how far the sweep is, and no word of the children
    _wait(lambda: all(not c.is_running() or c.status() == psutil.STATUS_ZOMBIE for c in children))


_COMPILING = """
import hashlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("interrupts", sys.argv[1])
interrupts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(interrupts)
interrupts.end_at_once()
with interrupts.cleaned_up():
    print("started", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes in C, where Python cannot raise KeyboardInterrupt
"""


def test_an_interrupt_ends_a_long_computation_outside_of_python(start):
    module = importlib.util.find_spec("lintra.runtime.interrupts")
    assert module is not None
    process = start("-c", _COMPILING, module.origin)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.3)
    assert _interrupt(process) == "lintra: interrupted.\n"


def test_only_the_command_line_changes_how_interrupts_are_handled():
    import lintra.runtime.interrupts as interrupts

    before = signal.getsignal(signal.SIGINT)
    with interrupts.cleaned_up():
        assert signal.getsignal(signal.SIGINT) is before
    assert not interrupts.is_command()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("arguments", "original", "is_one"),
    [
        (["/usr/bin/lintra", "zoo"], ["python", "/usr/bin/lintra", "zoo"], True),
        (["-m", "zoo"], ["python", "-m", "lintra", "zoo"], True),
        (["-m"], ["python", "-X", "dev", "-m", "lintra"], True),
        (["-m", "lintra"], ["python", "-m", "pytest", "lintra"], False),
        (["script.py", "lintra"], ["python", "script.py", "lintra"], False),
        ([""], ["python"], False),
    ],
)
def test_a_command_is_told_from_a_program_that_imports_lintra(arguments, original, is_one, monkeypatch):
    from lintra.runtime.interrupts import is_command

    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "orig_argv", original)
    assert is_command() is is_one


LOST = """
import gc, os, signal, sys, time

sys.argv = ["lintra"]
from lintra.runtime import interrupts

def interrupt(phase, info):
    if phase == "start":
        os.kill(os.getpid(), signal.SIGINT)  # raised here, where Python cannot hand it on
        gc.callbacks.clear()

interrupts.end_at_once()
try:
    with interrupts.cleaned_up():
        gc.callbacks.append(interrupt)
        gc.collect()
        time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
    interrupts.end()
"""


def test_an_interrupt_that_is_lost_in_a_callback_is_repeated_without_a_traceback():
    result = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=50, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "cleaned up\n", "lintra: interrupted.\n")
