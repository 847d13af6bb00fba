"""Table 1, figures and report on a zoo of untrained models: what they say is checked, not how good models are."""

import csv
import io
import json
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import jax
import numpy as np
import pytest

from lintra import NoisyRegression, evaluate, zoo
from lintra.baselines import AdaptiveRidge, Bayes
from lintra.display import to_csv
from lintra.evaluation import paper
from lintra.evaluation.bayes_excess import Excess, excess
from lintra.evaluation.column import Column, Table1Column
from lintra.evaluation.estimate import ProtocolQuantiles
from lintra.evaluation.measurement import AbstractMeasurement, Results, measure_all
from lintra.evaluation.noise_profile import Profile
from lintra.figures import FIGURES
from lintra.figures.style import save, styled
from lintra.models import FAMILIES, families
from lintra.problem.noise import parse_noise
from lintra.report.claims import STATEMENTS, check_statement
from lintra.report.page import number
from lintra.report.report import _tails, write_report
from lintra.runtime.processes import ProcessExecutor
from lintra.runtime.progress import SILENT

KEY = jax.random.key(0)


def model(family, layers, scale=0.02):
    return FAMILIES[family].random(layers, scale=scale, key=jax.random.fold_in(KEY, layers))


@pytest.fixture(scope="module")
def small_zoo(tmp_path_factory):
    names = {
        f"{v}-{d}-{n}": (v, d)
        for v in families.PAPER_FAMILIES
        for d in (1, 2)
        for n in ("uniform(0,5)", "choice(1,3)")
    }
    names |= {f"{v}-{d}-uniform(0,5)-seed{s}": (v, d) for v in ("diag", "full") for d in (1, 3) for s in range(2)}
    names["full-4-choice(1,3)"] = ("full", 4)
    path = tmp_path_factory.mktemp("zoo") / "zoo.safetensors"
    zoo.write(
        path, {name: (model(*place), {"seconds": 1.0, "noise": "fixed(1)"}) for name, place in names.items()}
    )
    return path


class Measured(Results):
    """Results that are measured when they are asked for, each once."""

    def __init__(self, path):
        super().__init__({})
        self.zoo = zoo.Zoo(path)

    def __getitem__(self, need):
        if need not in self._values:
            self._values[need] = measure_all([need], self.zoo, num_sequences=8192)[need]
        return self._values[need]


@pytest.fixture(scope="module")
def results(small_zoo):
    return Measured(small_zoo)


def test_a_zoo_gives_back_what_was_put_in(small_zoo):
    kept = zoo.Zoo(small_zoo)
    again, card = kept.load("full-4-choice(1,3)"), kept.card("full-4-choice(1,3)")
    assert all(np.array_equal(a, b) for a, b in zip(again.matrices(), model("full", 4).matrices(), strict=True))
    assert (card["family"], card["layers"], card["heads"], card["dim"]) == ("full", 4, 1, 10)


def test_a_zoo_that_was_altered_or_a_name_that_is_not_there_is_refused(small_zoo, tmp_path):
    with pytest.raises(
        zoo.UnknownModelError, match=r"'full-4-choice\(1,4\)' is not in .* Did you mean 'full-4-choi"
    ):
        zoo.Zoo(small_zoo).load("full-4-choice(1,4)")
    content = bytearray(small_zoo.read_bytes())
    content[-3] ^= 1
    (tmp_path / "altered").write_bytes(content)
    with pytest.raises(ValueError, match="was altered"):
        zoo.Zoo(tmp_path / "altered")
    kept = zoo.Zoo(small_zoo)
    kept.cards["full-4-choice(1,3)"]["sha256"] = "0"
    with pytest.raises(ValueError, match="do not match the hash"):
        kept.load("full-4-choice(1,3)")


def test_a_column_has_every_model_and_baseline_beside_the_printed_loss(results):
    column = results[Column("uniform(0,5)")]
    places = [(row.method, row.num_layers) for row in column.rows]
    assert places[:6] == [(v, d) for v in families.PAPER_FAMILIES for d in (1, 2)]
    rows = {(row.method, row.num_layers): row for row in column.rows}
    assert rows["full", 2].paper == 0.245
    assert rows["bayes", None].paper is None
    assert rows["full", 2].verdict == "above"  # it is not trained
    assert rows["tuned-ridge", None].protocol.low < rows["tuned-ridge", None].protocol.high
    floors = {row.bayes_floor for row in column.rows}
    assert floors == {rows["bayes", None].adjusted_loss}
    assert len(column.orderings) == 7  # three by depth, two by family at each depth
    text = list(csv.DictReader(io.StringIO(to_csv([row.to_row() for row in column.rows]))))
    header = ["method", "layers", "noise", "adjusted_loss", "standard_error", "paper", "bayes_floor"]
    assert list(text[0]) == header
    assert float(text[3]["adjusted_loss"]) == rows["diag", 2].adjusted_loss


@pytest.mark.parametrize(
    ("method", "protocol", "verdict"),
    [
        ("full", (0.040, 0.039, 0.041), "below"),
        ("full", (0.048, 0.047, 0.049), "level"),
        ("full", (0.0472, 0.0470, 0.0474), "level"),
        ("full", (0.050, 0.0476, 0.051), "above"),
        ("gd++", (0.362, 0.359, 0.365), "floor"),
        ("gd++", (0.370, 0.368, 0.375), "floor"),
    ],
)
def test_cells_are_compared_by_the_protocol_repeated(method, protocol, verdict):
    printed = paper.printed_table1()[method, 7, "uniform(0,5)"]
    floor = 0.36145 if method == "gd++" else 0.0
    assert paper.verdict(ProtocolQuantiles(*protocol), printed, floor) == verdict


def test_noise_levels_go_one_beyond_the_prior():
    assert parse_noise("choice(1,3)").grid()[-1] == 6.0
    assert parse_noise("uniform(0,7)").grid()[-1] == 8.0
    assert parse_noise("uniform(0,0)").grid()[-1] == 1.0


@pytest.mark.parametrize("figure", ["3", "4", "5", "6", "8"])
def test_figures_are_drawn_from_rows_and_written_in_all_formats(figure, results, tmp_path, monkeypatch):
    module = FIGURES[figure]
    if figure == "3":  # two priors that are measured for other figures
        noises = ("choice(1,3)", "uniform(0,5)")
        monkeypatch.setattr(module, "COLUMNS", tuple(map(Column, noises)))
        monkeypatch.setattr(module, "PROFILES", tuple(Profile(noise, range(2, 8)) for noise in noises))
    rows = module.compute(results)
    with styled():
        paths = save(module.draw(rows), rows, tmp_path, "figure")
    assert [path.suffix for path in paths] == [".csv", ".png", ".pdf", ".svg"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert len(paths[0].read_text().splitlines()) == len(rows) + 1
    before = [path.read_bytes() for path in paths]
    with styled():
        save(module.draw(rows), rows, tmp_path, "figure")
    assert before == [path.read_bytes() for path in paths]


def test_figure_5_measures_every_layer_of_every_seed(results):
    rows = FIGURES["5"].compute(results)
    places = {(row["method"], row["layers"], row["seed"], row["layer"]) for row in rows}
    expected = {("gd++", d, 0, k) for d in (1, 2) for k in range(1, d + 1)}
    expected |= {(v, d, s, k) for v in ("diag", "full") for d in (1, 3) for s in (0, 1) for k in range(1, d + 1)}
    assert places == expected | {("bayes", None, None, None)}


def test_excess_is_the_loss_above_the_bayes_predictors():
    problem = NoisyRegression(noise="choice(1,3)")
    methods = {"ada-ridge": AdaptiveRidge(), "gd++": model("gd++", 2), "bayes": Bayes(problem.noise)}
    above = excess(methods, problem, num_sequences=60_000, key=KEY)
    measured = evaluate(methods, problem, num_sequences=60_000, key=jax.random.key(1))
    assert above["bayes"].mean == 0.0
    for name in ("ada-ridge", "gd++"):
        gap = measured.difference(name, "bayes")
        error = (gap.standard_error**2 + above[name].standard_error ** 2) ** 0.5
        assert abs(gap.mean - above[name].mean) < 4 * error
    assert above["ada-ridge"].standard_error < measured.difference("ada-ridge", "bayes").standard_error


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


def test_a_statement_about_missing_models_is_not_measured(results):
    extrapolation = next(s for s in STATEMENTS if s.needs == (Profile("choice(1,3)", range(2, 8)),))
    found = check_statement(extrapolation, results)
    assert (found.statement, found.holds) == (extrapolation.text, None)
    assert found.measured == "Not measured, since diag-7 is missing."


def test_statements_are_checked_against_their_measurements():
    """AdaRR is beaten from σ_max = 4 on if both families are below it, and by one of them only it is not."""
    statement = STATEMENTS[0]

    def column(need, diag):
        losses = {("diag", 4): diag, ("full", 4): 0.1, ("ada-ridge", None): 0.2}
        rows = [SimpleNamespace(method=m, num_layers=n, adjusted_loss=loss) for (m, n), loss in losses.items()]
        return Table1Column(need.noise, rows, [])  # pyright: ignore[reportArgumentType]

    for diag, holds in ((0.15, True), (0.25, False)):
        measured = Results({need: column(need, diag) for need in statement.needs})
        assert check_statement(statement, measured).holds is holds


def test_figure_8_measures_what_is_there_beside_the_baselines(results):
    rows = FIGURES["8"].compute(results)
    places = {(row["noise"], row["method"], row["heads"], row["layers"]) for row in rows}
    lines = {(n, m, None, None) for n in FIGURES["8"].NOISES for m in ("const-ridge", "ada-ridge", "tuned-ridge")}
    assert lines <= places
    assert ("choice(1,3)", "full", 1, 4) in places
    assert ("uniform(0,5)", "diag", 1, 2) in places


@pytest.mark.slow
def test_the_report_names_what_is_missing(small_zoo, tmp_path):
    with ProcessExecutor(2) as executor:
        page = write_report(zoo.Zoo(small_zoo), tmp_path, executor=executor, num_sequences=8192).read_text()
    assert "Missing models:" in page
    assert "full-7-uniform(0,5)" in page
    assert "Not measured, since" in page
    assert page.count("<figure") == 8
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert (tmp_path / "table1.csv").exists()


def test_the_report_states_tails_as_the_cards_do():
    cards = [{"worst": worst} for worst in (None, 1e53, 1001.0, 999.0, 0.5)]
    assert "3 of 5 models have a loss above 1,000" in _tails(cards)
    assert "1 of these are infinite" in _tails(cards)


def test_numbers_are_printed_as_the_paper_prints_them():
    assert number(0.0471) == "0.0471"
    assert number(0.896) == "0.896"
    assert number(1.14e-7) == "1.14e-07"


def test_cards_are_plain_json(small_zoo):
    assert json.loads(json.dumps(zoo.Zoo(small_zoo).cards))
