# A sweep trains a grid of models. On one machine it uses processes; on a cluster the same function takes another
# executor. Here a Dask cluster of two workers on this machine stands for a real one.
import tempfile
from pathlib import Path

from distributed import LocalCluster

from lintra.runtime.cluster import connect
from lintra.sweep import GRIDS, Store, run_sweep

chains = GRIDS["tiny"]()
print(sum(map(len, chains)), "models in", len(chains), "chains:", [cell.name for cell in chains[0]])

# Each model is stored when it is trained, under a hash of everything it depends on. Stored models are not trained
# again, so a sweep can be interrupted, or lose workers, at any time.
with tempfile.TemporaryDirectory() as folder:
    store = Store(Path(folder))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,  # pyright: ignore
        connect(cluster.scheduler_address) as executor,  # pyright: ignore
    ):
        failures = run_sweep(chains, store, executor)
    print("missing:", failures)
    for cell in chains[1]:
        print(cell.name, f"{store.card(cell)['selection']['validation_loss']:.4f}")

# On the command line this is `lintra sweep table1 --scheduler tcp://host:8786 --store /shared/sweeps`; `--shard
# 3/14` cuts a grid for batch systems. [Sweeps](../sweeps.md) has the commands for Slurm and Kubernetes.
