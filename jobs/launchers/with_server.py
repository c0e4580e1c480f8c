"""Run a command while an export is served: ``python -m jobs.launchers.with_server … -- COMMAND``.

The server is started (or found), the command runs, the server is ended, whatever happened. SIGTERM
goes to the command, which ends at its next whole piece of work; its exit code is ours. A command
that waits for a model's answer is not waited for: it goes on from its files. What was
served is in ``serving.json`` and is checked again after the command: answers of other weights must
not pass as this checkpoint's. Exit code 70 when the server could not be started, ended or changed.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from jobs.launchers.sglang_http import ServerFailed, check_serving
from jobs.launchers.sglang_server import GRACE_S, ServerSpec, SglangServer
from trainer.errors import IncompleteError

EXIT_SERVER = 70
EXIT_STOPPED = 143
STOPPING_S = 3.0  # for the command, then for the server: a stage is killed when 8 s are over


class Guarded:
    """A command and the server it needs."""

    def __init__(self, server: SglangServer, argv: Sequence[str]) -> None:
        self._server = server
        self._argv = list(argv)
        self._stopping = False
        self._child: subprocess.Popen[bytes] | None = None

    def request_stop(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Ask the command to end; safe in a signal handler."""
        self._stopping = True
        if self._child is not None:
            self._child.terminate()

    def run(self) -> int:
        """Start the server, run the command, end the server; returns the exit code."""
        signal.signal(signal.SIGTERM, self.request_stop)
        signal.signal(signal.SIGINT, self.request_stop)
        try:
            record = self._server.start(should_stop=lambda: self._stopping)
            self._child = subprocess.Popen(self._argv)
            if self._stopping:
                self._child.terminate()
            code = self._wait(self._child)
            if code == 0:
                check_serving(record)
            if self._stopping and code < 0:
                return EXIT_STOPPED
            return code if code >= 0 else 128 - code
        except (ServerFailed, IncompleteError) as error:
            sys.stderr.write(f"{error}\n")
            return EXIT_STOPPED if self._stopping else EXIT_SERVER
        finally:
            self._server.stop(STOPPING_S if self._stopping else GRACE_S)

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        asked: float | None = None
        lost = ""
        while True:
            try:
                code = child.wait(0.1)
            except subprocess.TimeoutExpired:
                if not lost and (lost := self._server.ended()):
                    child.terminate()  # else every episode would fail, as often as it is tried
                asked = asked or (time.monotonic() if self._stopping or lost else None)
                if asked is not None and time.monotonic() - asked > STOPPING_S:
                    child.kill()
            else:
                if code and lost:
                    raise ServerFailed(lost)
                return code


def main(argv: Sequence[str] | None = None) -> int:
    """Parse and run."""
    parser = argparse.ArgumentParser(
        prog="python -m jobs.launchers.with_server", description=__doc__
    )
    parser.add_argument("--export", type=Path, required=True, help="Hugging Face folder to serve")
    parser.add_argument("--state", type=Path, required=True, help="file that remembers the server")
    parser.add_argument("--served-name", required=True)
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--dp-size", type=int, default=1)
    parser.add_argument("--mem-fraction", type=float, default=0.7)
    parser.add_argument("--tool-call-parser", default="qwen3_coder")
    parser.add_argument("--reasoning-parser", default="qwen3", help="empty for none")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has SGLang")
    parser.add_argument("--extra", action="append", default=[], help="one more server argument")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    args = parser.parse_args(argv)
    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not command:
        parser.error("put a command after --")
    args.state.parent.mkdir(parents=True, exist_ok=True)
    spec = ServerSpec(
        export=args.export,
        served_name=args.served_name,
        port=args.port,
        tp_size=args.tp_size,
        dp_size=args.dp_size,
        mem_fraction=args.mem_fraction,
        tool_call_parser=args.tool_call_parser,
        reasoning_parser=args.reasoning_parser or None,
        extra=tuple(args.extra),
        python=args.python,
    )
    return Guarded(SglangServer(spec, args.state), command).run()


if __name__ == "__main__":
    raise SystemExit(main())
