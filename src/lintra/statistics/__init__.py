"""Statistics of a context: its Gram matrix, its spectrum, and how both are drawn."""

from lintra.statistics.gram import GramStatistics
from lintra.statistics.sampling import Truth, sample_data, sample_statistics, sample_truth
from lintra.statistics.spectrum import Spectrum

__all__ = [
    "GramStatistics",
    "Spectrum",
    "Truth",
    "sample_data",
    "sample_statistics",
    "sample_truth",
]
