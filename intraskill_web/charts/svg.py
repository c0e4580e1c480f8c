"""Building SVG text safely: attribute values and texts are escaped here, and nowhere else."""

from __future__ import annotations

from html import escape


class Markup(str):
    """Finished markup. Templates print it as it is because it answers ``__html__``."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def number(value: float) -> str:
    """At most two decimals, no trailing zeros: enough for a pixel, short on the wire."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def percent(value: float) -> str:
    """``value`` in per cent of the width."""
    return f"{number(value)}%"


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """One element. Children that are not Markup are escaped; attributes of None are left out.

    ``class_`` stands for ``class``; underscores become hyphens (``text_anchor``); SVG's camel-case
    names are written as they are (``viewBox``).
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        label = "class" if key == "class_" else key.replace("_", "-")
        text = value if isinstance(value, str) else number(value)
        parts.append(f'{label}="{escape(text)}"')
    opening = " ".join(parts)
    if not children:
        return Markup(f"<{opening}/>")
    body = "".join(c if isinstance(c, Markup) else escape(c) for c in children)
    return Markup(f"<{opening}>{body}</{name}>")


def join(*parts: str) -> Markup:
    """Several pieces of finished markup as one."""
    return Markup("".join(p if isinstance(p, Markup) else escape(p) for p in parts))
