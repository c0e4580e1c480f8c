"""Small drawings inside table rows: interval rows of a forest plot, inclusion rows, sparklines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intraskill_web.charts.scale import Scale, decimals, ticks
from intraskill_web.charts.svg import Markup, join, number, percent, tag

MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class ForestScale:
    """The scale of all rows of a forest plot, symmetric about zero; ``threshold`` is the cut."""

    reach: float
    threshold: float | None = None

    @classmethod
    def holding(cls, ends: Sequence[float], threshold: float | None = None) -> ForestScale:
        """The symmetric scale that holds every whisker end, with a little room."""
        reach = max((abs(e) for e in ends), default=0.0) or 0.1
        return cls(reach * 1.06, threshold)

    def at(self, value: float) -> float:
        """Position of ``value`` in per cent of the width."""
        return Scale(-self.reach, self.reach).clamp(value)

    def rules(self, height: int) -> Markup:
        """Grid, zero and cut of a row, each one path: x is in per cent of the width."""
        places = [number(self.at(v)) for v in self.levels() if v != 0]
        lines = [("gl", places), ("zero", [number(self.at(0.0))])]
        if self.threshold is not None:
            lines.append(("thr", [number(self.at(self.threshold))]))
        return tag(
            "svg",
            *(tag("path", class_=css, d="".join(f"M{x} 0V1" for x in xs)) for css, xs in lines),
            width="100%",
            height=height,
            viewBox="0 0 100 1",
            preserveAspectRatio="none",
        )

    def levels(self) -> list[float]:
        """Round tick values, zero among them."""
        return ticks(-self.reach, self.reach, 4)


def signed(value: float, places: int = 3) -> str:
    """``value`` with its sign, a true minus and ``places`` decimals; zero has no sign."""
    text = f"{abs(value):.{places}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else MINUS) + text


def forest_axis(scale: ForestScale) -> Markup:
    """The tick labels above and below the rows."""
    levels = scale.levels()
    places = decimals(levels)
    texts = [_tick("0" if v == 0 else signed(v, places), scale.at(v)) for v in levels]
    return tag("svg", *texts, class_="fx", height=20, aria_hidden="true")


def _tick(text: str, at: float) -> Markup:
    """A label in the middle under its place, at the borders within the drawing."""
    x, anchor = (100.0, "end") if at > 95 else (0.0, "start") if at < 5 else (at, "middle")
    return tag("text", text, x=percent(x), y=14, text_anchor=anchor)


def forest_row(
    scale: ForestScale,
    value: float,
    interval: tuple[float, float] | None,
    status: str,
    label: str,
    *,
    height: int = 36,
) -> Markup:
    """Estimate and interval of one intervention; the shape tells the status."""
    parts = [scale.rules(height)]
    parts.append(interval_mark(scale, value, interval, status, middle=height / 2))
    return tag("svg", *parts, class_="fx", height=height, role="img", aria_label=label)


def interval_mark(
    scale: ForestScale,
    value: float,
    interval: tuple[float, float] | None,
    status: str,
    *,
    middle: float,
) -> Markup:
    """Whisker with drawn ends and the point on it."""
    parts: list[Markup] = []
    if interval is not None:
        low, high = (percent(scale.at(end)) for end in interval)
        css = f"ci {status}"
        parts.append(tag("line", class_=css, x1=low, x2=high, y1=middle, y2=middle))
        for end in (low, high):
            parts.append(tag("line", class_=css, x1=end, x2=end, y1=middle - 4, y2=middle + 4))
    shape = tag("path", class_=f"pt {status}", d=SHAPES.get(status, SHAPES["selected"]))
    parts.append(tag("svg", shape, x=percent(scale.at(value)), y=middle))
    return join(*parts)


# Each status has its own shape, so that colour is never the only difference. Centred on (0, 0).
SHAPES = {
    "selected": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "retired": "M-5.5 -4.5H5.5L0 5.5Z",
    "non_positive": "M0 -5.5L5.5 0 0 5.5 -5.5 0Z",
    "rewrite_loser": "M-4 -4L4 4M4 -4L-4 4",
    "held": "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "budget_excluded": "M-5 0H5M0 -5V5",
    "not_adopted": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",
}


def status_shape(status: str) -> Markup:
    """The shape of a status, for legends and table cells."""
    return tag(
        "svg",
        tag("path", d=SHAPES.get(status, SHAPES["selected"])),
        viewBox="-6 -6 12 12",
        aria_hidden="true",
    )


def inclusion_row(
    observed: float | None, target: float, band: tuple[float, float] | None, *, height: int = 28
) -> Markup:
    """Observed rate (dot) against the target (tick) and its band, all between 0 and 1."""
    middle = height / 2
    parts = [tag("line", class_="gl", x1="0", x2="100%", y1=middle, y2=middle)]
    if band is not None:
        parts.append(
            tag(
                "rect",
                class_="area",
                x=percent(band[0] * 100),
                width=percent((band[1] - band[0]) * 100),
                y=middle - 7,
                height=14,
                rx=2,
            )
        )
    at = percent(target * 100)
    parts.append(tag("line", class_="tgt", x1=at, x2=at, y1=middle - 9, y2=middle + 9))
    if observed is not None:
        outside = band is not None and not band[0] <= observed <= band[1]
        parts.append(
            tag(
                "circle",
                class_="dot out" if outside else "dot",
                cx=percent(observed * 100),
                cy=middle,
                r=5,
            )
        )
    return tag("svg", *parts, class_="fx", height=height, aria_hidden="true")


def sparkline(
    values: Sequence[float],
    *,
    bands: Sequence[tuple[float, float]] | None = None,
    outside: Sequence[int] = (),
    width: int = 96,
    height: int = 20,
) -> Markup:
    """A line without axes; the last value has a dot, the points at ``outside`` are marked."""
    if not values:
        return Markup("")
    ends = [*values, *(e for band in bands or () for e in band)]
    low, high = min(ends), max(ends)
    if low == high:
        low, high = low - 1, high + 1
    y = Scale(low, high, height - 2.0, 2.0)
    step = width / max(len(values) - 1, 1)
    parts: list[Markup] = []
    if bands:
        top = [f"{number(i * step)} {number(y(b[1]))}" for i, b in enumerate(bands)]
        bottom = [f"{number(i * step)} {number(y(b[0]))}" for i, b in enumerate(bands)][::-1]
        parts.append(tag("path", class_="area", d="M" + "L".join(top + bottom) + "Z"))
    line = [f"{number(i * step)} {number(y(v))}" for i, v in enumerate(values)]
    if len(line) > 1:
        parts.append(tag("path", d="M" + "L".join(line)))
    last = len(values) - 1
    for i in sorted({*outside, last}):
        parts.append(
            tag(
                "circle",
                class_="out" if i in outside else None,
                cx=i * step,
                cy=y(values[i]),
                r=2.5,
            )
        )
    return tag("svg", *parts, class_="spk", viewBox=f"0 0 {width} {height}", aria_hidden="true")
