"""Line and bar panels: the charts of the experiment and round pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from intraskill_web.charts.scale import Scale, decimals, ticks
from intraskill_web.charts.svg import Markup, join, number, percent, tag

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """A curve. ``style`` is a CSS class (``l1`` … ``l4``); left of ``pale_before`` it is faded."""

    points: Sequence[Point]
    style: str = "l1"
    label: str = ""
    pale_before: float | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two curves over the same x."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """A point drawn on top: ``shape`` is ``circle`` or ``diamond``."""

    x: float
    y: float
    shape: str = "circle"
    style: str = ""
    href: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Divider:
    """A vertical dotted line with a word on each side, such as the border of two rounds."""

    x: float
    left: str = ""
    right: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """What panels share: ranges, height in pixels, ticks and the sentence for screen readers."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    title: str
    height: int = 220
    x_ticks: Sequence[tuple[float, str]] | None = None
    y_ticks: Sequence[float] | None = None
    y_decimals: int | None = None
    note: str = ""
    dividers: Sequence[Divider] = field(default_factory=tuple)


def line_panel(
    frame: Frame,
    lines: Sequence[Line],
    *,
    bands: Sequence[Band] = (),
    markers: Sequence[Marker] = (),
) -> Markup:
    """Curves over one axis, with bands under them and markers above, labelled at their ends."""
    x = Scale(*frame.x_range, 0.0, 1000.0)
    y = Scale(*frame.y_range, frame.height, 0.0)
    curves = [_band(b, x, y) for b in bands]
    for line in lines:
        curves += _curves(line, x, y)
    inner = (
        tag(
            "svg",
            *curves,
            width="100%",
            height=frame.height,
            viewBox=f"0 0 1000 {frame.height}",
            preserveAspectRatio="none",
        )
        if curves
        else Markup("")
    )
    # A curve of one point has no length; the point itself is drawn.
    alone = [
        Marker(*line.points[0], style="s2" if line.style.startswith("l2") else "")
        for line in lines
        if len(line.points) == 1
    ]
    labels = _end_labels(lines, frame)
    over = [_marker(m, frame) for m in (*alone, *markers)] + labels
    return _frame(frame, join(inner, *over), named=bool(labels))


@dataclass(frozen=True, slots=True)
class Stack:
    """Bars at one x, from the bottom up: (height, CSS class, address, title)."""

    x: float
    parts: Sequence[tuple[float, str, str | None, str]]
    pale: bool = False


def bar_panel(frame: Frame, stacks: Sequence[Stack], *, width: float = 0.76) -> Markup:
    """Stacked bars; class ``b2`` is drawn hatched so that colour is not the only difference."""
    x = Scale(*frame.x_range)
    y = Scale(*frame.y_range, frame.height, 0.0)
    bars: list[Markup] = [_hatch()]
    for stack in stacks:
        base = 0.0
        for value, style, href, title in stack.parts:
            if value <= 0:
                continue
            bar = tag(
                "rect",
                tag("title", title) if title else Markup(""),
                class_=f"{style} old" if stack.pale else style,
                fill="url(#hatch)" if style == "b2" else None,
                x=percent(x(stack.x - width / 2)),
                width=percent(x(width) - x(0.0)),
                y=y(base + value),
                height=y(base) - y(base + value),
            )
            bars.append(tag("a", bar, href=href, aria_label=title or None) if href else bar)
            base += value
    return _frame(frame, join(*bars))


def _frame(frame: Frame, content: Markup, *, named: bool = False) -> Markup:
    """Grid, ticks and dividers around ``content``."""
    x, y = Scale(*frame.x_range), Scale(*frame.y_range, frame.height, 0.0)
    parts: list[Markup] = []
    levels = list(frame.y_ticks) if frame.y_ticks is not None else ticks(*frame.y_range)
    places = decimals(levels) if frame.y_decimals is None else frame.y_decimals
    for level in levels:
        at = y(level)
        parts.append(tag("line", class_="gl", x1="0", x2="100%", y1=at, y2=at))
        parts.append(tag("text", f"{level:.{places}f}", x="-6", y=at + 4, text_anchor="end"))
    x_ticks = frame.x_ticks
    if x_ticks is None:
        x_ticks = [(v, f"{v:g}") for v in ticks(*frame.x_range)]
    for value, text in x_ticks:
        parts.append(
            tag("text", text, x=percent(x(value)), y=frame.height + 16, text_anchor="middle")
        )
    parts.append(tag("line", class_="ax0", x1="0", x2="100%", y1=frame.height, y2=frame.height))
    names: list[Markup] = []  # at the foot: curves run along the top once a policy is good
    foot = frame.height - 8
    for divider in frame.dividers:
        at_x = percent(x(divider.x))
        parts.append(tag("line", class_="mk", x1=at_x, x2=at_x, y1="0", y2=frame.height))
        if divider.left:
            left = tag(
                "text", divider.left, class_="div", x=at_x, dx="-6", y=foot, text_anchor="end"
            )
            names.append(left)
        if divider.right:
            names.append(tag("text", divider.right, class_="div", x=at_x, dx="6", y=foot))
    if frame.note:
        above = foot - 16 if frame.dividers else foot
        parts.append(tag("text", frame.note, x="100%", y=above, text_anchor="end"))
    return tag(
        "svg",
        *parts,
        content,
        *names,
        class_="ch named" if named else "ch",
        height=frame.height,
        role="group" if "<a " in content else "img",  # an image may hold no links
        aria_label=frame.title,
    )


def path(points: Sequence[Point], x: Scale, y: Scale) -> str:
    """The ``d`` of a polyline through ``points``."""
    return "M" + "L".join(f"{number(x(a))} {number(y(b))}" for a, b in points)


def _curves(line: Line, x: Scale, y: Scale) -> list[Markup]:
    """The curve, or two when its earlier part is drawn pale; the border point belongs to both."""
    points = list(line.points)
    if line.pale_before is None:
        return [tag("path", class_=line.style, d=path(points, x, y))] if len(points) > 1 else []
    split = sum(1 for p in points if p[0] < line.pale_before)
    old, new = points[:split], points[max(split - 1, 0) :]
    drawn = []
    if len(old) > 1:
        drawn.append(tag("path", class_=f"{line.style} old", d=path(old, x, y)))
    if len(new) > 1:
        drawn.append(tag("path", class_=line.style, d=path(new, x, y)))
    return drawn


def _band(band: Band, x: Scale, y: Scale) -> Markup:
    upper = list(zip(band.x, band.high, strict=True))
    lower = list(zip(band.x, band.low, strict=True))[::-1]
    return tag("path", class_=f"area {band.style}".strip(), d=path(upper + lower, x, y) + "Z")


def _marker(marker: Marker, frame: Frame) -> Markup:
    x, y = Scale(*frame.x_range), Scale(*frame.y_range, frame.height, 0.0)
    style = f"dot {marker.style}".strip()
    title = tag("title", marker.title) if marker.title else Markup("")
    if marker.shape == "diamond":
        # A nested svg carries the percentage; the path in it is in pixels.
        shape = tag("path", title, class_=style, d="M0 -6L6 0 0 6 -6 0Z")
        drawn = tag("svg", shape, x=percent(x(marker.x)), y=y(marker.y))
    else:
        drawn = tag("circle", title, class_=style, cx=percent(x(marker.x)), cy=y(marker.y), r=4.5)
    if marker.href:
        return tag("a", drawn, href=marker.href, aria_label=marker.title or None)
    return drawn


def _end_labels(lines: Sequence[Line], frame: Frame) -> list[Markup]:
    """A name right of the end of each labelled curve, pushed apart to 14 px.

    The frame of a chart with labels leaves room for them at its right (class ``named``).
    """
    x, y = Scale(*frame.x_range), Scale(*frame.y_range, frame.height, 0.0)
    named = [line for line in lines if line.label and line.points]
    labels = []
    below = 4.0
    for line in sorted(named, key=lambda line: y(line.points[-1][1])):
        end_x, end_y = line.points[-1]
        row = min(max(y(end_y), below), frame.height - 4.0)
        below = row + 14
        at = percent(x(end_x))
        labels.append(tag("text", line.label, class_="lb", x=at, dx=8, y=row + 4))
    return labels


def _hatch() -> Markup:
    return tag(
        "defs",
        tag(
            "pattern",
            tag("rect", class_="hatch-bg", width=5, height=5),
            tag("path", class_="hatch-line", d="M0 0V5"),
            id="hatch",
            width=5,
            height=5,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )
