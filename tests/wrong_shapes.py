"""Calls of handlers with wrong shapes, and with right ones in between; run as a program, which may crash.

    python wrong_shapes.py CALLS HANDLER...

Shapes start right and are changed at random. Whether they are still right is decided by matching them with the
handler's signature, axis by axis.
"""

import json
import sys

import jax
import numpy as np

from lintra.kernel import library

jax.config.update("jax_enable_x64", True)

# Arguments and results. A letter is a size, the same everywhere; `S?` is S or 1; `D` is E − 1.
PAIR, OMEGA, RANGES, GRAM, ROWS = "S 2 L H E E", "S L 2 2", "S L 3", "S? B E E", "S? B D"
SIGNATURES = {
    "full_forward": ((PAIR, RANGES, GRAM), ("S B D",)),
    "full_states": ((PAIR, RANGES, GRAM), ("S B L E E",)),
    "full_vjp": ((PAIR, RANGES, GRAM, ROWS), (PAIR,)),
    "full_value_and_grad": ((PAIR, RANGES, GRAM, ROWS, "S"), ("S B", PAIR)),
    "diagonal_forward": ((OMEGA, RANGES, GRAM), ("S B D",)),
    "diagonal_vjp": ((OMEGA, RANGES, GRAM, ROWS), ("S B L 2 2",)),
    "diagonal_value_and_grad": ((OMEGA, RANGES, GRAM, ROWS, "S"), ("S B", "S B L 2 2")),
    "polynomial_value_and_grad": (("S L 2", "S? K", "S? K", "S"), ("S", "S L 2")),
    "gram": (("B N D", "B N"), ("B E E",)),
}
LEAST = {"L": 1, "H": 1, "E": 2}  # all others may be zero


def right_shapes(patterns, rng):
    sizes = {letter: int(rng.integers(LEAST.get(letter, 0), 5)) for letter in "SLHEBKN"}
    sizes["D"] = sizes["E"] - 1

    def size(axis):
        if axis == "S?":
            return int(rng.choice([1, sizes["S"]]))
        return int(axis) if axis.isdigit() else sizes[axis]

    return [tuple(size(axis) for axis in pattern.split()) for pattern in patterns]


def is_right(patterns, shapes):
    sizes = {}
    for pattern, shape in zip(patterns, shapes, strict=True):
        axes = pattern.split()
        if len(axes) != len(shape):
            return False
        for axis, size in zip(axes, shape, strict=True):
            if axis == "S?" and size == 1:
                continue
            letter = axis.rstrip("?")
            letter, size = ("E", size + 1) if letter == "D" else (letter, size)
            expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
            if size != expected or size < LEAST.get(letter, 0):
                return False
    return True


def changed(shape, rng):
    shape = list(shape)
    index = int(rng.integers(len(shape)))
    kind = rng.integers(5)
    if kind == 0:
        shape[index] = int(rng.integers(0, 7))
    elif kind == 1:
        shape[index] = max(shape[index] + int(rng.choice([-1, 1])), 0)
    elif kind == 2:
        del shape[index]
    elif kind == 3:
        shape.insert(index, int(rng.integers(0, 4)))
    else:
        shape = [int(size) for size in rng.integers(0, 5, size=rng.integers(0, 7))]
    return tuple(shape)


def wrong_shapes(patterns, rng):
    while True:
        shapes = right_shapes(patterns, rng)
        for index in rng.choice(len(shapes), size=rng.integers(1, 3), replace=False):
            shapes[index] = changed(shapes[index], rng)
        if not is_right(patterns, shapes):
            return shapes


def outcome(target, dtype, arguments, results):
    structs = [jax.ShapeDtypeStruct(shape, dtype) for shape in results]
    call = jax.ffi.ffi_call(target, structs, has_side_effect=True)  # XLA drops others if their results are empty
    try:
        values = jax.block_until_ready(jax.jit(call)(*(np.ones(shape, dtype) for shape in arguments)))
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    assert [value.shape for value in values] == list(results)
    return None


def attack(target, calls):
    """Call a handler with so many wrong shapes, and a right one after every ten; count what it says."""
    name, bits = target.rsplit("_", 1)
    dtype = {bits: dtype for dtype, bits in library._BITS.items()}[bits]
    arguments, results = SIGNATURES[name]
    patterns, rng = arguments + results, np.random.default_rng(sorted(SIGNATURES).index(name))
    failures, rejected, passed = [], 0, 0
    for number in range(calls + calls // 10):
        right = number % 11 == 10
        shapes = (right_shapes if right else wrong_shapes)(patterns, rng)
        assert is_right(patterns, shapes) == right
        print(target, shapes, file=sys.stderr)  # the last line before a crash
        error = outcome(f"lintra_{target}", dtype, shapes[: len(arguments)], shapes[len(arguments) :])
        sentence = error is not None and error.startswith("INVALID_ARGUMENT: lintra's native kernel: ")
        rejected, passed = rejected + sentence, passed + (error is None)
        if (error is None) != right or not (right or sentence):
            failures.append([shapes, error])
        if number % 500 == 499:
            jax.clear_caches()
    return {"rejected": rejected, "passed": passed, "failures": failures}


if __name__ == "__main__":
    assert library.instruction_set() is not None
    print(json.dumps({target: attack(target, int(sys.argv[1])) for target in sys.argv[2:]}))
