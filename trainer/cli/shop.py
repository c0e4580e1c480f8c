"""``python -m trainer shop …``: serve, replay, audit and prepare the shopping environment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trainer.cli import shop_data
from trainer.cli.main import print_json
from trainer.cli.shop_data import read_secret, world_of
from trainer.errors import InputError
from trainer.shop.archive import PUBLISHED_SHA256
from trainer.shop.profiles import PROFILES


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command group to the trainer's parser."""
    group = subparsers.add_parser("shop", help="serve, replay and audit the shop; prepare its data")
    commands = group.add_subparsers(dest="shop_command", required=True)
    _add_serve(commands)
    _add_replay(commands)
    _add_audit(commands)
    _add_generate(commands)
    _add_clean(commands)
    _add_annotate(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="accepted: output is always JSON")


def _add_world(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    parser.add_argument("--profile", choices=sorted(PROFILES), default=default)
    parser.add_argument("--catalogue", type=Path, help="catalogue file (default: the built-in one)")
    parser.add_argument(
        "--catalogue-sha256",
        help=f"expected SHA-256 of its JSON, or one of {', '.join(PUBLISHED_SHA256)}",
    )
    parser.add_argument("--splits", type=Path, help="split file that belongs to the catalogue")


def _add_serve(commands: Any) -> None:
    parser = commands.add_parser("serve", help="serve the shop over HTTP")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5700, help="0: any free port")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=64, help="episodes at the same time")
    parser.add_argument("--lease-ttl", type=float, default=600.0, help="seconds of silence")
    parser.add_argument("--reset-wait", type=float, default=60.0, help="seconds before 429")
    parser.add_argument("--token-env", help="variable with the token that clients must send")
    parser.add_argument("--admin-token-env", help="variable with the token for admin calls")
    parser.add_argument(
        "--legacy-statuses", action="store_true", help="status codes of the published service"
    )
    _add_world(parser, default="compat")
    parser.set_defaults(func=run_serve)


def _add_replay(commands: Any) -> None:
    parser = commands.add_parser("replay", help="step through finished traces again and compare")
    parser.add_argument("trace", type=Path, help="JSON lines of traces, plain or gzip")
    parser.add_argument("--episode", help="only the episode with this id")
    _add_world(parser, default=None)
    parser.set_defaults(func=run_replay)


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser("audit", help="count the tasks that can be won at all")
    parser.add_argument("--split", help="split to audit (default: every task)")
    _add_world(parser, default="standard")
    parser.set_defaults(func=shop_data.run_audit)


def _add_generate(commands: Any) -> None:
    parser = commands.add_parser("generate", help="write a synthetic raw catalogue")
    parser.add_argument("out", type=Path, help="file to write, .json or .json.gz")
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.0, help="probability of each noise kind")
    parser.set_defaults(func=shop_data.run_generate)


def _add_clean(commands: Any) -> None:
    parser = commands.add_parser("clean", help="clean a raw archive and build its splits")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path, help="folder for archive, exclusions, splits, manifest")
    parser.add_argument("--sha256", help="expected SHA-256 of the raw JSON, or published-raw")
    parser.add_argument("--annotations", type=Path, help="result of `shop annotate`")
    parser.add_argument("--validation-size", type=int, default=400)
    parser.add_argument("--test-size", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20260829)
    parser.set_defaults(func=shop_data.run_clean)


def _add_annotate(commands: Any) -> None:
    parser = commands.add_parser("annotate", help="ask a model for the ceilings of persona tasks")
    parser.add_argument("source", type=Path, help="raw archive")
    parser.add_argument("out", type=Path, help="annotations file; its cache stands beside it")
    parser.add_argument("--base-url", required=True, help="OpenAI-compatible endpoint")
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-key-env", help="environment variable that holds the key")
    parser.add_argument("--workers", type=int, default=8)
    parser.set_defaults(func=shop_data.run_annotate)


def run_replay(args: argparse.Namespace) -> int:
    """Replay until the first difference. Exit code 1 when there is one."""
    from trainer.shop.replay import provenance_of, replay
    from trainer.shop.trace_files import read_traces

    world = None
    episodes = steps = 0
    for trace in read_traces(args.trace):
        if args.episode and trace.get("episode_id") != args.episode:
            continue
        if world is None:
            recorded = provenance_of(trace, "environment")
            world = world_of(args, args.profile or recorded.get("profile", "compat"))
        episodes += 1
        steps += len(trace["steps"])
        difference = replay(world, trace)
        if difference is not None:
            print_json(
                {"ok": False, "episodes": episodes, "first_difference": difference.to_record()}
            )
            return 1
    if not episodes:
        raise InputError(
            "no such episode" if args.episode else "the file holds no trace",
            file=args.trace,
            field="--episode",
            value=args.episode,
            remedy="Name a file of finished traces, and an episode_id that is in it",
        )
    print_json({"ok": True, "episodes": episodes, "steps": steps, "first_difference": None})
    return 0


def run_serve(args: argparse.Namespace) -> int:
    """Serve until stopped; the address is the first line of the output."""
    from trainer.shop.service.address import Address
    from trainer.shop.service.serve import serve
    from trainer.shop.service.service import ServiceSettings

    settings = ServiceSettings(
        slots=args.slots,
        lease_ttl=args.lease_ttl,
        reset_wait=args.reset_wait,
        token=read_secret(args.token_env),
        admin_token=read_secret(args.admin_token_env),
        legacy_statuses=args.legacy_statuses,
    )
    world = world_of(args, args.profile)

    def announce(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        print_json({"address": f"http://{shown}:{port}", **world.identity()})

    address = Address(args.host, args.port, args.workers)
    return serve(world, settings, address, announce=announce)
