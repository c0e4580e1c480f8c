"""A proxy that loses replies."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class LossyProxy:
    """Passes requests on. A reply is swallowed after it was made ``lose`` times more, or whenever
    ``loses()`` says so, and the connection with it."""

    def __init__(self, address: str, loses: Callable[[], bool] = lambda: False) -> None:
        host, port = address.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._loses = loses
        self.lose = 0
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(self._target)
        with contextlib.suppress(OSError), client, server:
            while data := client.recv(1 << 16):
                server.sendall(data)
                while data and not _whole(data):
                    more = client.recv(1 << 16)
                    data += more
                    server.sendall(more)
                reply = b""
                while not _whole(reply):
                    reply += server.recv(1 << 16)
                if self.lose or self._loses():
                    self.lose = max(0, self.lose - 1)
                    self.lost += 1
                    return
                client.sendall(reply)

    def stop(self) -> None:
        self._listener.close()


def _whole(message: bytes) -> bool:
    head, end, body = message.partition(b"\r\n\r\n")
    if not end:
        return False
    lengths = [int(h.split(b":")[1]) for h in head.split(b"\r\n") if b"ontent-Length" in h]
    return len(body) >= (lengths[0] if lengths else 0)
