"""``python -m trainer analysis``: everything a run shows, as one document."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.cli.main import add_json_flag, print_json


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``analysis``."""
    parser = subparsers.add_parser("analysis", help="rounds, tests, behaviour, optimiser of a run")
    parser.add_argument("folder", type=Path, help="a run folder, or a folder that holds artifacts/")
    parser.add_argument("--out", type=Path, help="write the document here, print its counts only")
    parser.set_defaults(func=run_analysis)
    add_json_flag(parser)


def run_analysis(args: argparse.Namespace) -> int:
    """Print the document, or write it and print what it holds."""
    from trainer.analysis import read_run
    from trainer.files import write_json

    found = read_run(args.folder)
    document = found.model_dump(mode="json")
    if args.out is None:
        print_json(document)
        return 0
    write_json(args.out, document)
    print_json(
        {
            "schema_version": found.schema_version,
            "kind": found.kind,
            "rounds": len(found.rounds),
            "coefficients": len(found.coefficients),
            "tests": [test.split for test in found.tests],
            "cohorts": len(found.cohorts),
            "sources": len(found.sources),
            "missing": found.missing,
        }
    )
    return 0
