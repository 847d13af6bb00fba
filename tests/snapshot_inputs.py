"""Files that entries of the snapshot read, written at fixed seeds through the public interface."""

from pathlib import Path


def write_small_zoo(path: Path) -> None:
    """Write the published models that the report's statements need, and one that Figure 4 needs."""
    from lintra import zoo

    uniform = [f"uniform(0,{top})" for top in range(1, 8)]
    wanted = {
        f"{family}-{depth}-{noise}" for family in ("diag", "full") for depth in (4, 5, 6, 7) for noise in uniform
    }
    wanted |= {f"gd++-7-{noise}" for noise in uniform} | {f"{f}-2-uniform(0,5)" for f in ("gd++", "diag", "full")}
    wanted |= {f"{family}-7-{noise}" for family in ("diag", "full") for noise in ("choice(1,3)", "choice(1,3,5)")}
    wanted |= {
        "gd++-8-uniform(0,5)",
        "diag-8-uniform(0,5)-seed0",
        "full-8-uniform(0,5)-seed0",
        "full-4-choice(1,3)",
    }
    zoo.write(path, {name: (zoo.load(name), zoo.card(name)) for name in zoo.names() if name in wanted})


def write_foreign_models() -> None:
    """Write random weights, plain gradient descent as full matrices, and one diagonal layer."""
    import jax
    import numpy as np

    import lintra

    # A step of gradient descent, y_i <- y_i - (eta/n) sum_j y_j <x_j, x_i>: Q = diag(1, 0), P = diag(0, -eta/n).
    p, q = np.zeros((3, 1, 11, 11)), np.zeros((3, 1, 11, 11))
    p[..., -1, -1] = -0.5 / 20
    q[..., :10, :10] = np.eye(10)
    lintra.save(lintra.Full.random(2, scale=0.1, key=jax.random.key(7)), "random.safetensors")
    lintra.save(lintra.Full.from_matrices(p, q, 20), "descent.safetensors")
    lintra.save(
        lintra.Diagonal(np.asarray([[[0.1, -0.5]]]), np.asarray([[[0.8, 0.05]]]), 20, 10),
        "one-layer.safetensors",
        noise="fixed(1)",
    )


def write_regressions() -> None:
    """Write regressions of several lengths and scales as a table, and of one length as arrays."""
    import numpy as np

    rng = np.random.default_rng(0)
    with open("tasks.csv", "w") as file:
        file.write("task,a,b,c,y\n")
        for task in range(8):
            x = rng.normal(size=(8 + 3 * task, 3)) * [1, 2, 5]
            y = x @ rng.normal(size=3) + 1 + rng.normal(size=len(x))
            for row in np.column_stack([x, y]).tolist():
                file.write(f"t{task},{','.join(map(repr, row))}\n")
    x = rng.normal(size=(6, 20, 10))
    np.savez("arrays.npz", x=x, y=x.sum(-1) + rng.normal(size=(6, 20)))
