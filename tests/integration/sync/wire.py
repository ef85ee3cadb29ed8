"""The line between laptop and Pi: a relay on loopback that counts, breaks, and acts at a given byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Literal

RESET = struct.pack("ii", 1, 0)


class Line:
    """Passes on what goes to `port`. `sent` counts the bytes towards it, over all connections."""

    def __init__(self, port: int) -> None:
        self._target, self._lock = port, threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self.mend()
        self._start(self._accept)

    def mend(self) -> None:
        """From now on it passes everything; the count starts at nothing."""
        self.sent, self._limit, self._then = 0, -1, lambda: None
        self._broken: Literal["", "reset", "silent"] = ""

    def at(self, number: int, then: Callable[[], None]) -> None:
        """Once, when this many bytes have been sent: `then` runs before anything else is passed on."""
        self._limit, self._then = number, then

    def break_at(self, number: int, how: Literal["reset", "silent"]) -> None:
        """When this many bytes have been sent it resets all connections, or passes nothing on, for good."""
        self.at(number, lambda: self._break(how))

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break("reset")
        for thread in self._threads:
            thread.join(20)

    def _break(self, how: Literal["reset", "silent"]) -> None:
        self._broken = how
        if how == "reset":
            with self._lock:
                for end in (end for pair in self._pairs for end in pair):
                    with contextlib.suppress(OSError):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                        end.shutdown(socket.SHUT_RD)  # wakes who reads from it; nothing is sent

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._broken == "reset":
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._target))
            with self._lock:
                self._pairs.append((near, far))
            self._start(self._serve, near, far)

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=self._pass_on, args=(far, near, False), daemon=True)
        back.start()
        self._pass_on(near, far, True)
        back.join()
        with self._lock:
            self._pairs.remove((near, far))
        near.close()
        far.close()

    def _pass_on(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if counted:
                    self._count(len(data))
                if not self._broken:
                    target.sendall(data)
        if self._broken == "silent":
            self._over.wait()  # whoever closes his end: the other never hears of it
        elif not self._broken:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

    def _count(self, number: int) -> None:
        with self._lock:
            self.sent += number
            due = 0 <= self._limit <= self.sent
            if due:
                self._limit = -1
        if due:
            self._then()
