import csv
import io
from dataclasses import replace

from lintra.display import to_csv
from lintra.evaluation.table1_column import Column
from lintra.models import families


def test_a_column_has_every_model_and_baseline_beside_the_printed_loss(results):
    column = results[Column("uniform(0,5)")]
    cells = [(row.method, row.num_layers) for row in column.rows]
    assert cells[:6] == [(v, d) for v in families.PAPER_FAMILIES for d in (1, 2)]
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
    tail = ["protocol_median", "verdict", "is_dominated", "worst", "num_exploded", "num_sequences"]
    assert list(text[0]) == header + tail
    assert float(text[3]["adjusted_loss"]) == rows["diag", 2].adjusted_loss


def test_a_cell_says_what_it_holds_and_how_many_sequences_exploded(results):
    column = results[Column("uniform(0,5)")]
    rows = {(row.method, row.num_layers): row for row in column.rows}
    assert [rows[family, 1].selected_family for family in families.PAPER_FAMILIES] == ["gd++", "diag", "full"]
    assert rows["bayes", None].selected_family is None
    for row in column.rows:
        details = row.to_details()
        assert details["num_sequences"] == 8192
        assert (details["num_exploded"] > 0) == (row.tail.worst > 50)
        assert details["adjusted_loss"] == row.adjusted_loss
        assert row.printed_safe is None
        assert not row.is_safe
    safe = replace(rows["diag", 1], printed_safe=True)
    assert safe.is_safe
    assert not replace(safe, num_exploded=1).is_safe
    assert not replace(safe, printed_safe=False).is_safe
