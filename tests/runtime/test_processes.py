import time

import pytest

from lintra.runtime.processes import ProcessExecutor


def test_leaving_processes_by_an_exception_ends_them(tmp_path):
    started, futures = time.monotonic(), []

    def interrupted():
        with ProcessExecutor(2) as executor:
            futures.extend(executor.submit(time.sleep, 600) for _ in range(3))
            time.sleep(1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - started < 60
    assert all(future.done() for future in futures)
