import pytest

from lintra.evaluation.noise_profile import Profile
from lintra.evaluation.table1_column import Column
from lintra.figures import FIGURES
from lintra.figures.style import save, styled


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
