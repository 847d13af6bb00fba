# A sweep trains a grid of models. On one machine it starts processes; on a cluster the same function is given
# another executor. Here a Dask cluster of two workers on this machine stands for a real one.
import tempfile
from pathlib import Path

from distributed import Client, LocalCluster

from lintra.sweep import GRIDS, Store, run

chains = GRIDS["tiny"]()
print(sum(map(len, chains)), "models in", len(chains), "chains:", [cell.name for cell in chains[0]])

# Every model is stored when it is done, under a hash of all that it follows from. What is stored is never trained
# again, so a sweep can be interrupted, or lose workers, at any moment.
with tempfile.TemporaryDirectory() as folder:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        failures = run(chains, Path(folder), client.get_executor(pure=False), watch=lambda *state: None)
    store = Store(Path(folder))
    print("missing:", failures)
    for cell in chains[1]:
        print(cell.name, f"{store.card(cell)['selection']['held_out']:.4f}")

# On the command line this is `lintra sweep table1 --scheduler tcp://host:8786 --store /shared/sweeps`; `--shard
# 3/14` cuts a grid for batch systems. [Sweeps](../sweeps.md) has the commands for Slurm and Kubernetes.
