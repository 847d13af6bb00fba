"""A Dask cluster as an executor: the only module that knows Dask.

Workers write into the store themselves, so the folder must be one that they share.
"""

from concurrent.futures import Executor
from pathlib import Path


def cluster(scheduler: str | None = None, scheduler_file: Path | None = None) -> Executor:
    """An executor on a running cluster, given its address or its scheduler file."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("A cluster needs Dask: pip install 'lintra[cluster]'.") from None
    if scheduler_file is not None and not scheduler_file.exists():
        raise FileNotFoundError(f"`scheduler_file` '{scheduler_file}' is not there.")
    try:
        client = Client(scheduler, scheduler_file=scheduler_file and str(scheduler_file), timeout=10)
    except (OSError, ValueError) as error:
        name, value = ("scheduler", scheduler) if scheduler_file is None else ("scheduler_file", scheduler_file)
        raise ValueError(f"`{name}` '{value}' does not answer: {error}") from None
    return client.get_executor(pure=False)  # a chain whose worker died is given to another one
