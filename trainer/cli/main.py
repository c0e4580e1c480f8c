"""The parser of ``python -m trainer`` and the meaning of its exit codes.

Every module of this package that has a ``register(subparsers)`` adds the command of its own name; a
command is a function ``(namespace) -> exit code`` set as the parser's default ``func``. Only the
module of the wanted command is imported: the libraries of the others would take longer than many
commands do. Results go to stdout as JSON, messages to stderr. Exit codes: 0 done, 1 ran but
negative or incomplete, 2 bad input, 143 stopped on request.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any, cast

import trainer.cli
from trainer.errors import IncompleteError, InputError, StopRequested

EXIT_INCOMPLETE = 1
EXIT_BAD_INPUT = 2
EXIT_STOPPED = 143
EXIT_PIPE = 141  # as a shell reports SIGPIPE
DESCRIPTION = (
    "Every operation of the method, without the dashboard. Results go to stdout as JSON, messages "
    "to stderr. Exit codes: 0 done, 1 ran but the result is negative or incomplete, 2 bad input."
)


def build_parser(wanted: str = "") -> argparse.ArgumentParser:
    """The parser of the ``wanted`` command; where there is none of the name, of all commands."""
    parser = argparse.ArgumentParser(prog="python -m trainer", description=DESCRIPTION)
    subparsers = parser.add_subparsers(dest="command", required=True)
    names = sorted(info.name for info in pkgutil.iter_modules(trainer.cli.__path__))
    own = wanted.replace("-", "_")
    for name in [own] if own in names else names:
        module = importlib.import_module(f"{trainer.cli.__name__}.{name}")
        register = getattr(module, "register", None)
        if register is not None:
            register(subparsers)
    return parser if subparsers.choices else build_parser()  # a module without a command


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    given = sys.argv[1:] if argv is None else list(argv)
    args = build_parser(given[0] if given else "").parse_args(given)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request says nothing
    try:
        return cast(int, args.func(args))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except IncompleteError as error:
        print(f"incomplete: {error}", file=sys.stderr)
        return EXIT_INCOMPLETE
    except StopRequested as error:
        print(str(error), file=sys.stderr)
        return EXIT_STOPPED
    except BrokenPipeError:  # the reader, such as ``head``, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing to flush at exit
        return EXIT_PIPE


def print_json(value: Any) -> None:
    """The command's result: one JSON object on one line of stdout."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """``--json`` is accepted everywhere: the output is always JSON."""
    parser.add_argument("--json", action="store_true", help="accepted: output is always JSON")
