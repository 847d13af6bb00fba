from dataclasses import dataclass
from typing import ClassVar

import pytest

from lintra import zoo
from lintra.evaluation.bayes_excess import Excess
from lintra.evaluation.measurement import AbstractMeasurement, measure_all
from lintra.evaluation.table1_column import Column
from lintra.figures import FIGURES
from lintra.runtime.processes import ProcessExecutor
from lintra.runtime.progress import SILENT


@pytest.mark.slow
def test_what_is_measured_in_processes_is_what_is_measured_here(small_zoo, results):
    here, missing = Column("choice(1,3)"), Excess("fixed(2)", ())
    with ProcessExecutor(2) as executor:
        needs = [here, FIGURES["8"].NEEDS[0], missing]
        elsewhere = measure_all(needs, zoo.Zoo(small_zoo), executor=executor, num_sequences=8192)
    for one, other in zip(results[here].rows, elsewhere[here].rows, strict=True):
        assert other.adjusted_loss == pytest.approx(one.adjusted_loss, rel=1e-9)
    assert elsewhere[FIGURES["8"].NEEDS[0]]
    with pytest.raises(zoo.UnknownModelError, match=r"no models at fixed\(2\)"):
        elsewhere[missing]


@dataclass(frozen=True)
class Counted(AbstractMeasurement[int]):
    """Counts how often it was measured."""

    number: int
    calls: ClassVar[list[int]] = []

    def measure(self, zoo, *, num_sequences=1, key=0, progress=SILENT):
        self.calls.append(self.number)
        return num_sequences + self.number


def test_equal_measurements_are_made_once_and_found_by_value(small_zoo):
    measured = measure_all([Counted(1), Counted(2), Counted(1)], zoo.Zoo(small_zoo), num_sequences=10)
    assert Counted.calls == [1, 2]
    assert (measured[Counted(1)], measured[Counted(2)]) == (11, 12)
    with pytest.raises(ValueError, match="`need` must be one of the measurements that were made, got Counted"):
        measured[Counted(3)]
