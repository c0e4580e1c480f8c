"""Chinese numerals as instructions write them (environment.md §4.7)."""

from __future__ import annotations

DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
UNITS = {"十": 10, "百": 100, "千": 1000}
SECTIONS = {"万": 10**4, "亿": 10**8}
NUMERALS = "".join((*DIGITS, *UNITS, *SECTIONS))


def read_numeral(text: str) -> int:
    """The value of a run of ``NUMERALS``.

    Runs of digits are read digit by digit (二〇 is 20), digit-unit-digit is the spoken shorthand
    (一千八 is 1800), everything else is positional with sections of 万 and 亿.
    """
    if all(char in DIGITS for char in text):
        return int("".join(str(DIGITS[char]) for char in text))
    if len(text) == 3 and text[0] in DIGITS and text[2] in DIGITS:
        unit = UNITS.get(text[1]) or SECTIONS[text[1]]
        return DIGITS[text[0]] * unit + DIGITS[text[2]] * unit // 10
    return _positional(text)


def _positional(text: str) -> int:
    total = section = digit = 0
    for char in text:
        if char in DIGITS:
            digit = DIGITS[char]
        elif char in UNITS:
            section += (digit or 1) * UNITS[char]
            digit = 0
        else:
            total += ((section + digit) or 1) * SECTIONS[char]
            section = digit = 0
    return total + section + digit
