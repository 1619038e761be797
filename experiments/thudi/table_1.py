"""Table 1: the bounds for ε-DP, what each one limits, and its values. Written as JSON and as a Markdown table."""

from __future__ import annotations

from typing import Any

import whosin as wi
from experiments.thudi._common import RESULTS, save

EPSILONS = (0.5, 1.0, 2.0, 4.0)
ROWS = (
    ("Yeom et al. 2018", "accuracy", 0.5),
    ("Erlingsson et al. 2019", "accuracy", 0.5),
    ("Sablayrolles et al. 2019", "accuracy", 0.5),
    ("Thudi et al. 2022", "accuracy", 0.5),
    ("Sablayrolles et al. 2019", "ppv", 0.1),
    ("Thudi et al. 2022", "ppv", 0.1),
    ("Sablayrolles et al. 2019", "ppv", 0.01),
    ("Thudi et al. 2022", "ppv", 0.01),
)
WORDS = {"accuracy": "accuracy", "ppv": "positive accuracy"}


def bound(name: str, quantity: str, epsilon: float, prior: float) -> wi.bounds.Bound:
    """Return the library's row of that name."""
    table = wi.bounds.table(epsilon, prior=prior)
    return next(row for row in table if (row.name, row.quantity) == (name, quantity))


def compute() -> dict[str, Any]:
    """Return the bounds with formula, quantity, prior and values (capped at 1)."""
    rows = []
    for name, quantity, prior in ROWS:
        bounds = [bound(name, quantity, epsilon, prior) for epsilon in EPSILONS]
        rows.append(
            {
                "bound": name,
                "formula": bounds[0].formula,
                "quantity": WORDS[quantity],
                "needs": bounds[0].needs,
                "prior": prior,
                "values": {f"{e:g}": b.value for e, b in zip(EPSILONS, bounds, strict=True)},
                "tight": all(b.tightest for b in bounds),
            }
        )
    return {"table": "1", "epsilon": list(EPSILONS), "rows": rows}


def markdown(data: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    head = ["bound", "formula", "quantity", "P(1)", *(f"ε = {e:g}" for e in data["epsilon"])]
    lines = [head, ["---"] * 4 + ["---:"] * len(data["epsilon"])]
    for row in data["rows"]:
        name = f"**{row['bound']}**" if row["tight"] else row["bound"]
        values = [f"{value:.6f}" for value in row["values"].values()]
        lines.append([name, f"`{row['formula']}`", row["quantity"], f"{row['prior']:g}", *values])
    notes = (
        "Values are capped at 1: where it says 1.000000 the bound promises nothing. Bold: no smaller bound holds for "
        "every ε-DP mechanism. Here p is P(1), and the positive accuracy is P(x in D | S)."
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{notes}\n"


def main() -> None:
    """Write results/table_1.json and .md."""
    data = compute()
    save("table_1", data)
    (RESULTS / "table_1.md").write_text(markdown(data), encoding="utf-8")
