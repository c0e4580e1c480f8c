"""A real SMTP server on loopback for tests: it takes every message and keeps it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass(slots=True)
class Mailbox:
    """Where it listens and what it got."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """A server that lives while the block runs; it speaks as much SMTP as a sender needs."""
    state = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline():
                command = line.split(maxsplit=1)[0].upper() if line.strip() else b""
                if command == b"DATA":
                    self._say("354 go on")
                    state.got.append(self._message())
                if command == b"QUIT":
                    self._say("221 bye")
                    return
                self._say("250 ok")

        def _message(self) -> EmailMessage:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            return message_from_bytes(b"".join(lines), _class=EmailMessage, policy=policy.default)

        def _say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
