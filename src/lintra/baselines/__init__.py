"""What linear transformers are compared with, one idea per file."""

from lintra.baselines.bayes import Bayes
from lintra.baselines.iterative import IterativeRidge
from lintra.baselines.ridge import AdaptiveRidge, ConstantRidge, LeastSquares, oracle_weights
from lintra.baselines.tuned import TunedRidge
