"""Numbers, times and hashes as people read them, in one place and the same on every page.

Rates have three decimals, effects a sign and a true minus, counts thousands separators, durations
two units. What is not known is an en dash, never a zero.
"""

from __future__ import annotations

import re
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.charts.rows import MINUS, signed

UNKNOWN = "\u2013"
# unit, its seconds, the seconds of the smaller unit beside it, up to
SPANS = (
    ("s", 1, 1, 60),
    ("min", 60, 1, 3600),
    ("h", 3600, 60, 86_400),
    ("d", 86_400, 3600, 10**12),
)
AGES = (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 86_400), ("d", 86_400, 10**12))
CJK = re.compile("[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]")


def rate(value: float | None, places: int = 3) -> str:
    """A share or mean: ``0.832``."""
    if value is None:
        return UNKNOWN
    text = f"{value:.{places}f}"
    return text.replace("-", MINUS) if float(text) else text.lstrip("-")


def effect(value: float | None, places: int = 3) -> str:
    """A difference, always with its sign: ``−0.011``."""
    return UNKNOWN if value is None else signed(value, places)


def interval(low: float | None, high: float | None, places: int = 3) -> str:
    """A 95 % interval of a difference: ``[−0.011, +0.062]``; empty when there is none."""
    if low is None or high is None:
        return ""
    return f"[{signed(low, places)}, {signed(high, places)}]"


def count(value: int | None) -> str:
    """``5,120``."""
    return UNKNOWN if value is None else f"{value:,}".replace("-", MINUS)


def percent(value: float | None, places: int = 0) -> str:
    """``value`` as a share of one: ``45 %``."""
    return UNKNOWN if value is None else f"{value * 100:.{places}f} %"


def duration(seconds: float | None) -> str:
    """Two units at most: ``4 h 05 min``, ``14 min 10 s``, ``2.8 s``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return spans()["s"].replace("#", f"{max(seconds, 0):.1f}")
    whole = round(seconds)
    for unit, size_s, part_s, limit in SPANS:
        if whole < limit:
            text = spans()[unit].replace("##", f"{whole % size_s // part_s:02d}")
            return text.replace("#", str(whole // size_s))
    raise AssertionError("unreachable")


def spans() -> dict[str, str]:
    """What ``duration`` says by its larger unit, with # and ## for the two numbers."""
    return {
        "s": _("# s"),
        "min": _("# min ## s"),
        "h": _("# h ## min"),
        "d": _("# d ## h"),
    }


def size(value: int | None) -> str:
    """A number of bytes in binary units: ``8.4 MiB``."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def money(amount: float | None, currency: str) -> str:
    """An amount with its currency, to the cent, small ones a place finer: ``0.042 USD``."""
    if amount is None:
        return UNKNOWN
    places = 3 if 0 < abs(amount) < 0.1 else 2
    return f"{amount:,.{places}f} {currency}".strip().replace("-", MINUS)


def clock(moment: datetime | None) -> str:
    """Hour and minute today, with the date before."""
    if moment is None:
        return UNKNOWN
    local = timezone.localtime(moment)
    today = timezone.localtime().date() == local.date()
    return local.strftime("%H:%M" if today else "%Y-%m-%d %H:%M")


def ago(moment: datetime | None) -> str:
    """How long ago, in one unit; the page's script keeps it true."""
    if moment is None:
        return UNKNOWN
    seconds = max(0, int((timezone.now() - moment).total_seconds()))
    for unit, size_s, limit in AGES:
        if seconds < limit:
            return agos()[unit].replace("#", str(seconds // size_s))
    raise AssertionError("unreachable")


def agos() -> dict[str, str]:
    """What ``ago`` says by unit, with # for the number; the page's script uses the same."""
    return {"s": _("# s ago"), "min": _("# min ago"), "h": _("# h ago"), "d": _("# d ago")}


def hash8(value: str | None) -> str:
    """The first eight digits of a hash."""
    return value[:8] if value else UNKNOWN


def has_cjk(text: object) -> bool:
    """Whether ``text`` holds Chinese, so that the page can say so to fonts and screen readers."""
    return bool(CJK.search(str(text)))
