"""Table 1, figures and report on a zoo of untrained models: what they say is checked, not how good models are."""

import csv
import io
import json
import re

import jax
import numpy as np
import pytest

from lintra import NoisyRegression, evaluate, zoo
from lintra.baselines import AdaptiveRidge, Bayes
from lintra.display import to_csv
from lintra.evaluation import paper
from lintra.evaluation.bayes_excess import excess
from lintra.evaluation.column import _verdict
from lintra.evaluation.column import figures as table1_row
from lintra.evaluation.measurement import Measurements
from lintra.figures import FIGURES
from lintra.figures.style import save, styled
from lintra.models import FAMILIES, families
from lintra.problem.noise import noise_levels
from lintra.report.page import number
from lintra.report.report import _tails, make
from lintra.runtime.processes import Processes

KEY = jax.random.key(0)


def model(variant, layers, scale=0.02):
    return FAMILIES[variant].random(layers, scale=scale, key=jax.random.fold_in(KEY, layers))


@pytest.fixture(scope="module")
def small_zoo(tmp_path_factory):
    names = {
        f"{v}-{d}-{n}": (v, d) for v in families.VARIANTS for d in (1, 2) for n in ("uniform(0,5)", "choice(1,3)")
    }
    names |= {f"{v}-{d}-uniform(0,5)-seed{s}": (v, d) for v in ("diag", "full") for d in (1, 3) for s in range(2)}
    names["full-4-choice(1,3)"] = ("full", 4)
    path = tmp_path_factory.mktemp("zoo") / "zoo.safetensors"
    zoo.write(
        path, {name: (model(*place), {"seconds": 1.0, "noise": "fixed(1)"}) for name, place in names.items()}
    )
    return path


@pytest.fixture(scope="module")
def measurements(small_zoo):
    return Measurements(zoo.Zoo(small_zoo), sequences=8192, profile_sequences=512)


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


def test_a_column_has_every_model_and_baseline_beside_the_papers_figure(measurements):
    column = measurements.column("uniform(0,5)")
    places = [(row.method, row.layers) for row in column.rows]
    assert places[:6] == [(v, d) for v in families.VARIANTS for d in (1, 2)]
    rows = {(row.method, row.layers): row for row in column.rows}
    assert rows["full", 2].paper == 0.245
    assert rows["bayes", None].paper is None
    assert rows["full", 2].verdict == "above"  # it is not trained
    assert rows["tuned-ridge", None].protocol[1] < rows["tuned-ridge", None].protocol[2]
    floors = {row.bayes_floor for row in column.rows}
    assert floors == {rows["bayes", None].adjusted_loss}
    assert len(column.orderings) == 7  # three by depth, two by family at each depth
    text = list(csv.DictReader(io.StringIO(to_csv([table1_row(row) for row in column.rows]))))
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
def test_cells_are_judged_by_the_protocol_repeated(method, protocol, verdict):
    printed = paper.table1()[method, 7, "uniform(0,5)"]
    assert _verdict(method, protocol, printed, floor=0.36145) == verdict


def test_noise_levels_go_one_beyond_the_prior():
    assert noise_levels("choice(1,3)")[-1] == 6.0
    assert noise_levels("uniform(0,7)")[-1] == 8.0
    assert noise_levels("uniform(0,0)")[-1] == 1.0


@pytest.mark.parametrize("figure", ["3", "4", "5", "6", "8"])
def test_figures_are_drawn_from_rows_and_written_in_all_formats(figure, measurements, tmp_path, monkeypatch):
    module = FIGURES[figure]
    if figure == "3":
        monkeypatch.setattr(module, "NOISES", ("choice(1,3)", "uniform(0,5)"))
    rows = module.compute(measurements)
    with styled():
        paths = save(module.draw(rows), rows, tmp_path, "figure")
    assert [path.suffix for path in paths] == [".csv", ".png", ".pdf", ".svg"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert len(paths[0].read_text().splitlines()) == len(rows) + 1
    before = [path.read_bytes() for path in paths]
    with styled():
        save(module.draw(rows), rows, tmp_path, "figure")
    assert before == [path.read_bytes() for path in paths]


def test_figure_5_measures_every_layer_of_every_seed(measurements):
    rows = FIGURES["5"].compute(measurements)
    places = {(row["method"], row["layers"], row["seed"], row["after"]) for row in rows}
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
def test_what_is_measured_ahead_in_processes_is_what_is_measured_here(small_zoo, measurements):
    pieces = [("column", "uniform(0,5)"), ("column", "choice(1,3)"), *FIGURES["8"].pieces()[:1]]
    pieces += [("excess", "fixed(2)", (), ())]  # for which there are no models
    elsewhere = Measurements(zoo.Zoo(small_zoo), sequences=8192, profile_sequences=512)
    with Processes(2) as executor:
        elsewhere.ahead(pieces, executor)
    assert set(elsewhere._kept) == set(pieces[:-1])
    for here, there in zip(
        measurements.column("choice(1,3)").rows, elsewhere.column("choice(1,3)").rows, strict=True
    ):
        assert there.adjusted_loss == pytest.approx(here.adjusted_loss, rel=1e-9)
    with pytest.raises(zoo.UnknownModelError, match=r"no models at fixed\(2\)"):
        elsewhere.excess("fixed(2)", (), ())


def test_figure_8_measures_what_is_there_beside_the_baselines(measurements):
    rows = FIGURES["8"].compute(measurements)
    places = {(row["noise"], row["method"], row["heads"], row["layers"]) for row in rows}
    lines = {(n, m, None, None) for n in FIGURES["8"].NOISES for m in ("const-ridge", "ada-ridge", "tuned-ridge")}
    assert lines <= places
    assert ("choice(1,3)", "full", 1, 4) in places
    assert ("uniform(0,5)", "diag", 1, 2) in places


@pytest.mark.slow
def test_the_report_names_what_is_missing(measurements, tmp_path):
    sentences = []
    with Processes(2) as executor:
        page = make(measurements, tmp_path, executor, sentences.append).read_text()
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
