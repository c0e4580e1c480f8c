"""``python -m trainer compare``: two arms on the same tasks, from an outcomes file or two runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trainer.cli.main import add_json_flag, print_json
from trainer.errors import InputError, typed_as


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``compare``."""
    parser = subparsers.add_parser("compare", help="compare two arms task by task (b minus a)")
    parser.add_argument("runs", type=Path, nargs="*", help="evaluation folders of arm a and arm b")
    parser.add_argument("--outcomes", type=Path, help="a file of task outcomes, instead of runs")
    parser.add_argument("--a", help="arm a of the outcomes file")
    parser.add_argument("--b", help="arm b of the outcomes file")
    parser.add_argument("--across", choices=("model", "prompt", "environment", "runtime"))
    parser.add_argument("--primary", nargs="+", default=["reward", "r_success"])
    parser.add_argument("--out", type=Path, help="also write comparison.json and .md here")
    parser.set_defaults(func=run_compare)
    add_json_flag(parser)


def run_compare(args: argparse.Namespace) -> int:
    """Print the comparison; a table for people goes to stderr unless --json is given."""
    from trainer.compare.outcomes import arms_of_file, arms_of_runs
    from trainer.compare.report import compare, markdown
    from trainer.files import write_json, write_text

    if args.outcomes is not None:
        if args.runs or not (args.a and args.b):
            raise InputError(
                "an outcomes file needs --a and --b and no folders", field="--outcomes"
            )
        if args.a == args.b:
            raise InputError(
                "an arm cannot be compared with itself",
                file=args.outcomes,
                field="--a and --b",
                value=args.a,
                remedy="Name two arms of the file",
            )
        a, b = arms_of_file(args.outcomes, [args.a, args.b])
    elif len(args.runs) == 2:
        if args.runs[0].resolve() == args.runs[1].resolve():
            raise InputError(
                "a run cannot be compared with itself",
                field="runs",
                value=str(args.runs[1]),
                remedy="Name the folders of two evaluations",
            )
        a, b = arms_of_runs(args.runs, across=args.across)
    else:
        raise InputError("two folders are needed", field="runs", value=len(args.runs))
    with typed_as(primary="--primary"):
        document = compare(a, b, primary=args.primary)
    if args.out is not None:
        write_json(args.out / "comparison.json", document)
        write_text(args.out / "comparison.md", markdown(document))
    if not args.json:
        print(markdown(document), file=sys.stderr)
    print_json(document)
    return 0
