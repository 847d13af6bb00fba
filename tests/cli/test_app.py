import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("baselines", "--noise", "loud(1)"), "`--noise` must look like"),
        (("baselines", "--dim", "0"), "`--dim` must be a whole number of at least 1, got 0"),
        (("baselines", "--method", "lasso"), "`--method` must be one of"),
        (("baselines", "--seed", "99999999999999999999"), "`--seed` must be"),
        (("evaluate", "missing.safetensors"), "missing.safetensors"),
        (("bench", "--case", "none"), "`--case` must be one of"),
    ],
)
def test_bad_input_ends_in_one_sentence(arguments, says, error_message):
    assert says in error_message(*arguments)


def test_the_package_is_a_command():
    run = subprocess.run(
        [sys.executable, "-m", "lintra", "baselines", "--dim", "0"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert "`--dim` must be a whole number of at least 1, got 0" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def _wait_for_cpu_seconds(pid, seconds):
    """Wait until a process has worked for so long, however busy the machine is."""
    ticks, deadline = os.sysconf("SC_CLK_TCK"), time.monotonic() + 200
    while time.monotonic() < deadline:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / ticks > seconds:
            return
        time.sleep(0.1)


def test_an_interrupt_ends_in_a_word_and_not_in_a_crash():
    """Also where the tests run in the background, which ignores interrupts unless told otherwise."""
    heed = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    options = ["baselines", "--sequences", "100000000", "--noise", "uniform(0,5)", "--method", "ols"]
    command = [sys.executable, "-c", f"{heed}; runpy.run_module('lintra', run_name='__main__')", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for_cpu_seconds(process.pid, 5)  # it measures after 2.5
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted" in errors
