import subprocess
import sys

import pytest

from evaluation_helpers import BLOCK, PROBLEM, TWO
from lintra.evaluation.adjusted_loss import evaluate
from lintra.evaluation.noise_profile import profile
from lintra.runtime.progress import Progress


class Recorded(Progress):
    """Stores what it is told."""

    def __init__(self):
        self.calls = []

    def start(self, text, total=None):
        self.calls.append((text, total))

    def update(self, done, **fields):
        self.calls.append(done)


def test_progress_is_shown_block_by_block(getkey):
    progress = Recorded()
    evaluate(TWO, PROBLEM, num_sequences=2 * BLOCK + 1, key=getkey(), progress=progress)
    assert progress.calls == [("measuring", 3), 1, 2, 3]
    progress = Recorded()
    profile(TWO, PROBLEM, [0.0, 1.0], num_sequences=10, progress=progress)
    assert progress.calls == [("noise levels", 2), 1, 2]


@pytest.mark.slow
def test_ten_million_sequences_fit_in_two_gibibytes():
    code = """
import jax, resource
from lintra.baselines import ConstantRidge
from lintra.evaluation import evaluate
from lintra.problem import NoisyRegression
problem = NoisyRegression()
losses = evaluate({"c": ConstantRidge.tuned(problem)}, problem, num_sequences=10_000_000, key=jax.random.key(0))
losses.tail("c")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 2 * 2**20  # kibibytes
