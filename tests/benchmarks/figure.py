"""One measured figure beside its floor, and the table they are printed in."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    floor: float | None = None
    floor_name: str = ""
    at_least: float | None = None
    """The bar for value / floor, or for the value when there is no floor."""
    at_most: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def met(self) -> bool:
        judged = self.value if self.ratio is None else self.ratio
        low = self.at_least is None or judged >= self.at_least
        return low and (self.at_most is None or judged <= self.at_most)

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def beside(
    name: str, values: Sequence[float], floors: Sequence[float], unit: str, floor_name: str, **rest: Any
) -> Figure:
    """Medians of both. The rounds alternate, so what else the machine does falls on both."""
    return Figure(name, statistics.median(values), unit, statistics.median(floors), floor_name, **rest)


def table(figures: Iterable[Figure]) -> str:
    """Markdown."""
    lines = ["| figure | value | floor | ratio | bar | met | note |", "|---|---|---|---|---|---|---|"]
    for one in figures:
        floor = f"{_number(one.floor)} {one.unit} ({one.floor_name})" if one.floor is not None else "-"
        ratio = f"{one.ratio:.2f}" if one.ratio is not None else "-"
        bar = f">= {one.at_least:g}" if one.at_least is not None else ""
        bar += f"<= {one.at_most:g}" if one.at_most is not None else ""
        met = ("yes" if one.met else "NO") if bar else "-"
        lines.append(
            f"| {one.name} | {_number(one.value)} {one.unit} | {floor} | {ratio} | {bar or '-'} | {met} | {one.note} |"
        )
    return "\n".join(lines)


def percentile(values: Iterable[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[round(percent / 100 * (len(ordered) - 1))]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
