_FORKING = """
import os, sys
import jax
import lintra
from lintra.baselines import LeastSquares

def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
            print("computed", flush=True)
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)

problem = lintra.NoisyRegression(dim=1, num_examples=2)
evaluate = lambda: lintra.evaluate({"ols": LeastSquares()}, problem, num_sequences=1, key=key)
in_child(lambda: lintra.zoo.load("gd++-1-uniform(0,5)"))  # before JAX was used, which is harmless
key = jax.random.key(0)
in_child(evaluate)
in_child(lambda: lintra.profile("ols", problem, [0.0]))
in_child(lambda: lintra.evaluation.excess("ols", problem))
in_child(lambda: lintra.baseline("tuned-ridge", problem, key=key))
in_child(lambda: lintra.train(lintra.ModelSpec("gd++", 1, "fixed(1)")))
in_child(lambda: lintra.zoo.load("gd++-1-uniform(0,5)"))
in_child(lambda: in_child(evaluate))
"""


def test_a_forked_child_is_told_to_use_spawn_and_does_not_hang(start):
    process = start("-W", "ignore", "-c", _FORKING)
    output, errors = process.communicate(timeout=60)
    first, *others = output.splitlines()
    assert first == "computed", errors
    assert others[-1] == "computed"  # by the grandchild's parent, which computes nothing itself
    sentence = "JAX does not survive a fork: use multiprocessing's 'spawn' start method."
    assert len(others) == 8
    assert all(sentence in line for line in others[:-1]), output
