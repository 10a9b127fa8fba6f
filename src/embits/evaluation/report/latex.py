"""Tables of the report as LaTeX (booktabs)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from embits.evaluation.report.document import Block, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "±": r"$\pm$", "–": "--", "ρ": r"$\rho$", "λ": r"$\lambda$", "−": r"$-$",
}  # fmt: skip


def latex_tables(blocks: Sequence[Block]) -> dict[str, str]:
    """The tables that have a number, by file name such as table-1.tex."""
    found = {}
    for block in blocks:
        if isinstance(block, Table) and (number := re.match(r"Table (\d+)\.", block.caption)):
            found[f"table-{number[1]}.tex"] = to_latex(block, f"tab:embits-{number[1]}")
    return found


def to_latex(table: Table, name: str) -> str:
    r"""A table environment with the label `name`; it needs \usepackage{booktabs}.

    Example:
        >>> print(to_latex(Table(["", "64"], [["lsh", "*2.0*"]], "Table 1. Scores."), "tab:x"))
        \begin{table}
        \centering
        \caption{Scores.}
        \label{tab:x}
        \begin{tabular}{lr}
        \toprule
         & 64 \\
        \midrule
        lsh & \textbf{2.0} \\
        \bottomrule
        \end{tabular}
        \end{table}
        <BLANKLINE>
    """
    columns = "l" + ("l" if table.of_text else "r") * (len(table.header) - 1)
    caption = re.sub(r"^Table \d+\. ", "", table.caption)
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escaped(caption)}}}", rf"\label{{{name}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
        f"{' & '.join(map(escaped, table.header))} \\\\", r"\midrule",
        *(f"{' & '.join(_cells(row))} \\\\" for row in table.rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _cells(row: Sequence[str]) -> list[str]:
    first = rf"\quad {escaped(row[0].strip())}" if row[0].startswith(" ") else escaped(row[0])
    return [first, *map(_cell, row[1:])]


def _cell(cell: str) -> str:
    best = re.fullmatch(r"\*(.+)\*", cell)
    return rf"\textbf{{{escaped(best[1])}}}" if best else escaped(cell)
