import os
import signal
import subprocess
import sys

import pytest

# Interrupts are heeded even where the tests run in the background, and Python starts as from a shell.
_FRESH = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@pytest.fixture
def start(tmp_path):
    """Starts Python in a process group of its own, which ends with the test."""
    started = []

    def begin(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", _FRESH, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
