"""Speed: lintra beside a reference, and the cost of a step as a problem grows."""

from lintra.bench.cases import CASES, THREADED, Sides
from lintra.bench.costs import cost_plots, measure_costs
from lintra.bench.timing import time_case, use_one_processor

__all__ = ["CASES", "THREADED", "Sides", "cost_plots", "measure_costs", "time_case", "use_one_processor"]
