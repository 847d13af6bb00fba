"""Memory that computations need, compared with the machine's before work starts.

The estimates count the largest arrays only. So what is rejected cannot fit, and what is accepted may still fail.
"""

import os
from collections.abc import Mapping

_NUMBER, _HALF = 8, 4  # bytes, in 64 and in 32 bits
_COPIES = 5  # of a block of Gram matrices while it is sampled and solved; 5.5 to 8 were measured
_STATES = 8  # copies of the parameters in a descent: the model, its gradient, the best so far, the optimiser's
_PIECE = 128  # sequences over which the kernel sums gradients at a time
_NODES = 256  # eigenvalues at which GD++ is fitted, at least
_SYSTEMS = 4  # copies of the normal equations: as they are, and once for each of three dampings
_FIT_BLOCK = 2048  # sequences whose gradients a fit of DIAG keeps at once


def available() -> int | None:
    """Memory of this machine in bytes, or `None` where the system does not tell."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return pages * size if pages > 0 and size > 0 else None


def require(arguments: Mapping[str, int], purpose: str, needed: int) -> None:
    """Reject arguments that need more memory than the machine has.

    Arguments:
        arguments: The arguments that the size depends on, by name, and their values.
        purpose: What the memory is for.
        needed: Its size in bytes.

    Raises:
        ValueError: If the machine has less memory, with both sizes.
    """
    machine = available()
    if machine is None or needed <= machine:
        return
    named = [f"`{name}` {value}" for name, value in arguments.items() if value != 1]
    together = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    verb = "need" if len(named) > 1 else "needs"
    raise ValueError(
        f"{together} {verb} about {in_units(needed)} for {purpose}; this machine has {in_units(machine)}."
    )


def require_sampling(dim: int, num_examples: int, num_at_once: int) -> None:
    """Reject problems whose sequences do not fit, `num_at_once` of them at a time."""
    gram = _NUMBER * (dim + 1) ** 2
    require({"dim": dim}, "one Gram matrix", gram)
    require({"dim": dim}, f"{num_at_once:,} Gram matrices at once", _COPIES * num_at_once * gram)
    if num_examples < dim:  # the examples themselves are drawn
        examples = _NUMBER * num_at_once * num_examples * dim
        require({"dim": dim, "num_examples": num_examples}, f"the examples of {num_at_once:,} sequences", examples)


def require_losses(num_sequences: int, num_kept: int) -> None:
    """Reject numbers of sequences whose losses do not fit, `num_kept` of them for each sequence."""
    require({"num_sequences": num_sequences}, "the losses", _NUMBER * num_sequences * num_kept)


def require_repetitions(num_repetitions: int, num_kept: int) -> None:
    """Reject numbers of repetitions whose keys, and `num_kept` means for each of them, do not fit."""
    needed = _NUMBER * (2 + num_kept) * num_repetitions
    require({"num_repetitions": num_repetitions}, "the keys and the means", needed)


def require_growth(num_layers: int, num_heads: int, num_unknowns: int) -> None:
    """Reject models too deep for a second-order fit with so many `numbers` a layer and head."""
    arguments = {"num_layers": num_layers, "num_heads": num_heads}
    count = num_unknowns * num_layers * num_heads  # of unknowns
    require(arguments, "the normal equations of the fit", _SYSTEMS * _NUMBER * count**2)
    # GD++ keeps (f, 1 - s f) after every layer at every node, differentiated by every unknown; DIAG gradients.
    gradients = 2 * count * num_layers * _NODES if num_unknowns == 2 else _FIT_BLOCK * count
    require(arguments, "the gradients of the fit", _NUMBER * gradients)


def require_descent(
    num_layers: int, num_heads: int, dim: int, *, full: bool, num_starts: int, batch_size: int
) -> None:
    """Reject models whose gradient descent in 32 bits, from `seeds` starts side by side, does not fit."""
    if full:  # gradients in P and Q are summed over pieces of a batch
        arguments = {"num_layers": num_layers, "num_heads": num_heads, "dim": dim, "num_starts": num_starts}
        numbers = (_STATES + batch_size // _PIECE) * 2 * num_layers * num_heads * (dim + 1) ** 2
    else:  # gradients in the four ω of a layer are kept for every sequence of a batch
        arguments, numbers = {"num_layers": num_layers, "num_starts": num_starts}, 4 * batch_size * num_layers
    require(arguments, "the parameters and their gradients", _HALF * num_starts * numbers)


def require_pool(dim: int, size: int, *, num_copies: int = 2) -> None:
    """Reject problems of which `size` sequences in 32 bits do not fit; they are copied when they are collected."""
    require({"dim": dim}, f"a pool of {size:,} sequences", num_copies * _HALF * size * (dim + 1) ** 2)


def in_units(size: float) -> str:
    """Print a number of bytes with three digits.

    >>> in_units(80_001_600_008)
    '80 GB'
    """
    for suffix in ("bytes", "kB", "MB", "GB", "TB", "PB", "EB"):
        if size < 999.5:
            return f"{size:.3g} {suffix}"
        size /= 1000
    return f"{size:.3g} ZB"
