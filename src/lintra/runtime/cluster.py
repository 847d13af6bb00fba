"""A Dask cluster as an executor: the only module that imports Dask.

Workers write into the store themselves, so all of them must share its folder.
"""

from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from lintra.runtime.processes import prepare_worker


def connect(scheduler: str | None = None, scheduler_file: Path | None = None) -> Executor:
    """Connect to a running cluster, and make its workers ready.

    Args:
        scheduler: Address of the scheduler, such as `tcp://host:8786`.
        scheduler_file: The scheduler's file instead.

    Returns:
        An executor on the cluster.

    Raises:
        ImportError: If Dask is not installed.
        FileNotFoundError: If `scheduler_file` does not exist.
        ValueError: If the scheduler does not answer.
    """
    try:
        from distributed import Client, WorkerPlugin
    except ImportError:
        raise ImportError("A cluster needs Dask: pip install 'lintra[cluster]'.") from None
    if scheduler_file is not None and not scheduler_file.exists():
        raise FileNotFoundError(f"`scheduler_file` '{scheduler_file}' is not there.")
    try:
        client = Client(scheduler, scheduler_file=scheduler_file and str(scheduler_file), timeout=10)
    except (OSError, ValueError) as error:
        name, value = ("scheduler", scheduler) if scheduler_file is None else ("scheduler_file", scheduler_file)
        raise ValueError(f"`{name}` '{value}' does not answer: {error}") from None

    class Prepare(WorkerPlugin):
        """Makes each worker ready, those that join later too."""

        def setup(self, worker: Any) -> None:
            prepare_worker()

    client.register_plugin(Prepare(), name="lintra")
    return client.get_executor(pure=False)  # not pure: a chain whose worker died is submitted again
