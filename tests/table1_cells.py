"""Cells of Table 1 of which everything is known."""

from lintra.evaluation import paper
from lintra.evaluation.estimate import ProtocolQuantiles, Tail
from lintra.evaluation.table1_column import Table1Row

NOISE = "uniform(0,5)"


def cell(method, num_layers, median, spread=0.01, *, noise=NOISE, top_share=0.0, worst=1.0, **fields):
    """A cell as it is measured: the verdict is the rule's."""
    quantiles = ProtocolQuantiles(median, median * (1 - spread), median * (1 + spread), top_share)
    printed = paper.printed_table1().get((method, num_layers, noise))
    return Table1Row(
        method=method,
        num_layers=num_layers,
        noise=noise,
        adjusted_loss=fields.pop("adjusted_loss", median),
        standard_error=0.001,
        paper=None if printed is None else printed.value,
        bayes_floor=0.039,
        protocol=quantiles,
        verdict="" if printed is None else paper.verdict(quantiles, printed),
        tail=Tail(median, median, fields.pop("top_ten_share", 0.0), worst, 0.0),
        gdpp_floor=0.36145,
        **{"num_sequences": 1_000_000, "printed_safe": True, "selected_family": method, **fields},
    )
