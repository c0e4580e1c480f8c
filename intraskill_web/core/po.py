"""Compiles translations without gettext's tools: ``django.po`` in, ``django.mo`` out.

Reads what our catalogues use: contexts, plurals, several lines to a string, comments. Entries that
are fuzzy, obsolete or untranslated are left out, so the English text is shown.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainer.files import write_bytes

MAGIC = 0x950412DE
FIELDS = ("msgctxt", "msgid", "msgid_plural", "msgstr")

Entry = dict[str, str]


def compile_stale(folders: Iterable[Path]) -> dict[str, int]:
    """Compile every catalogue that is newer than what was made of it: language → messages."""
    made = {}
    for source in (path for folder in folders for path in folder.glob("*/LC_MESSAGES/*.po")):
        if is_stale(source):
            made[source.parent.parent.name] = compile_file(source, source.with_suffix(".mo"))
    return made


def is_stale(source: Path) -> bool:
    """Whether a catalogue is newer than what was made of it."""
    target = source.with_suffix(".mo")
    return not target.exists() or target.stat().st_mtime < source.stat().st_mtime


def compile_file(source: Path, target: Path) -> int:
    """Write ``target`` from ``source``; returns the number of messages. Raises ValueError."""
    messages = {}
    for entry in entries(source.read_text(encoding="utf-8")):
        translated = [value for key, value in entry.items() if key.startswith("msgstr")]
        if all(translated):
            messages[_key(entry)] = "\0".join(translated)
    write_bytes(target, _binary(messages))
    return len(messages)


def entries(text: str) -> Iterator[Entry]:
    """The entries of a catalogue that count."""
    entry: Entry = {}
    fuzzy, field = False, ""
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = raw.strip()
        begins = line.startswith(("msgctxt", "msgid ")) and any(
            k in entry for k in ("msgstr", "msgstr[0]")
        )
        if not line or begins:
            if "msgid" in entry and not fuzzy:
                yield entry
            entry, field = {}, ""
            fuzzy = False
        if line.startswith("#"):
            fuzzy = fuzzy or (line.startswith("#,") and "fuzzy" in line)
        elif line.startswith('"'):
            entry[field] += _string(line, number)
        elif line:
            field, _space, rest = line.partition(" ")
            if field.split("[")[0] not in FIELDS:
                raise ValueError(f"line {number}: cannot read {line!r}")
            entry[field] = _string(rest, number)


def _string(text: str, number: int) -> str:
    try:
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"line {number}: not a quoted string: {text!r}") from error
    return str(value)


def _key(entry: Entry) -> str:
    key = entry["msgid"]
    if "msgctxt" in entry:
        key = f"{entry['msgctxt']}\x04{key}"
    return f"{key}\0{entry['msgid_plural']}" if "msgid_plural" in entry else key


def _binary(messages: dict[str, str]) -> bytes:
    """The catalogue in the format of GNU mo files, little-endian, without a hash table."""
    pairs = sorted((key.encode(), value.encode()) for key, value in messages.items())
    count = len(pairs)
    start = 28 + 16 * count
    tables: tuple[list[int], list[int]] = ([], [])
    data = b""
    for side in (0, 1):
        for pair in pairs:
            tables[side].extend((len(pair[side]), start + len(data)))
            data += pair[side] + b"\0"
    header = struct.pack("<7I", MAGIC, 0, count, 28, 28 + 8 * count, 0, 0)
    return header + struct.pack(f"<{4 * count}I", *tables[0], *tables[1]) + data
