"""A double of the oMLX server on the always-on Mac: real HTTP, real files, the API as the project uses it.

    python -m tests.doubles.omlx --base DIR --port N [--personality old,gated] [--unsupervised]

It keeps settings.json and model_settings.json in the base folder, checks keys, signs admin sessions,
"downloads" models from a hub that exists only here, and gives vectors of the models in model.py.
A new base folder gets a random main key unless --api-key or --no-key is given. Who talks to it cannot tell
that it is a double, except by the file `double-fault` in the base folder: the fault named there happens to
/v1/embeddings.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import threading
import time
from dataclasses import fields, replace
from pathlib import Path
from types import FrameType
from typing import Any

from tests.doubles import omlx_embeddings
from tests.doubles.model import HashedWords, Model
from tests.doubles.omlx_downloads import write_model
from tests.doubles.omlx_http import Listener
from tests.doubles.omlx_state import Personality, State


class OmlxDouble:
    """One oMLX, from its start to its end, restarts included. Usable with `with`.

    `url` is an address on loopback; `state` is what it knows; `fault` makes /v1/embeddings misbehave.
    """

    def __init__(
        self,
        base: Path,
        *,
        personality: Personality | None = None,
        model: Model | None = None,
        api_key: str | None = "",
        address: tuple[str | None, int] = (None, 0),
    ) -> None:
        """`api_key`: None for a server without a main key, empty to keep the saved one (or make one).

        `address`: host (None: the saved one) and port (0: any that is free).
        """
        self.base, self.personality = base, personality or Personality()
        self.model, self.slow_s = model or HashedWords(), 1.0
        self.requests: list[tuple[str, str]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []  # paths and bodies
        self._listeners: list[Listener] = []
        self._port, self._stopped = address[1], threading.Event()
        self.state = State(base, self.personality)
        self._first_settings(api_key, address[0])

    def _first_settings(self, api_key: str | None, host: str | None) -> None:
        auth, server = self.state.settings["auth"], self.state.settings["server"]
        auth["api_key"] = None if api_key is None else api_key or auth["api_key"] or secrets.token_urlsafe(24)
        self._host = server["host"] = host or server["host"]
        self.state.save()

    def __enter__(self) -> OmlxDouble:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def main_key(self) -> str:
        return str(self.state.settings["auth"]["api_key"])

    @property
    def fault(self) -> str:
        return omlx_embeddings.fault_of(self.base)

    @fault.setter
    def fault(self, name: str) -> None:
        if name and name not in omlx_embeddings.FAULTS:
            raise ValueError(f"no such fault: {name}")
        (self.base / "double-fault").write_text(name)

    def add_sub_key(self, key: str, name: str = "hermes-digup") -> None:
        """As if the admin had made it."""
        entry = {"key": key, "name": name, "created_at": "2026-01-02T03:04:05+00:00"}
        self.state.settings["auth"]["sub_keys"].append(entry)
        self.state.save()

    def add_model(self, repo: str, model_type: str = "embedding_gemma2", size: int = 1_488_000_000) -> None:
        """As if it had been downloaded."""
        write_model(self.base / "models", repo, model_type, size)
        self.state.discover()

    def start(self) -> None:
        """Binds the saved host. The port is kept over restarts, as the app keeps it."""
        for host in self._host.split(","):
            listener = Listener(self, host.strip(), self._port)
            self._port = listener.server_address[1]
            self._listeners.append(listener)
            threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        with self.state.lock:
            self.state.settings["server"]["port"] = self._port
            self.state.save()

    def stop(self) -> None:
        """Refuses connections from now on, and cuts the ones that are open and the downloads."""
        with self.state.lock:
            self.state.tasks.clear()
        while self._listeners:
            listener = self._listeners.pop()
            listener.shutdown()
            listener.server_close()
            listener.cut_connections()

    def restart(self) -> None:
        """What the app does with its server: away for a moment, then anew from the files."""
        self.stop()
        time.sleep(self.personality.downtime_s)
        self.state = State(self.base, self.personality)
        if not self.personality.stuck_on_loopback:
            self._host = self.state.settings["server"]["host"]
        self.start()

    def restart_soon(self) -> None:
        threading.Timer(min(0.5, self.personality.downtime_s), self.restart).start()

    def wait(self) -> None:
        """Until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._leave)
        self._stopped.wait()
        self.stop()

    def _leave(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped.set()


def _personality(asked: str, supervised: bool, seconds: dict[str, float]) -> Personality:
    known = {one.name for one in fields(Personality) if one.type == "bool"} - {"supervised"}
    names = [name for name in asked.replace("-", "_").split(",") if name]
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"unknown personality {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    given = {name: value for name, value in seconds.items() if value is not None}
    return replace(Personality(supervised=supervised), **dict.fromkeys(names, True), **given)


def main() -> None:
    """Runs one double until it is told to end."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.doubles.omlx",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--host", help="default: the saved one, 127.0.0.1 at first")
    parser.add_argument("--port", type=int, required=True)
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--api-key", default="", help="the main key; default: the saved one, or a new one")
    key.add_argument("--no-key", action="store_true", help="no main key: everything is open")
    parser.add_argument("--personality", default="", help="old, strict, gated, disk-full, ... with commas")
    parser.add_argument("--supervised", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--unsupervised", dest="supervised", action="store_false")
    for name in ("loading", "download", "downtime"):
        parser.add_argument(f"--{name}-seconds", type=float, dest=f"{name}_s")
    parser.add_argument("--words", action="store_true", help="the stand-in model, even where a real one is")
    asked = parser.parse_args()
    seconds = {name: getattr(asked, name) for name in ("loading_s", "download_s", "downtime_s")}
    double = OmlxDouble(
        asked.base,
        personality=_personality(asked.personality, asked.supervised, seconds),
        model=HashedWords() if asked.words else omlx_embeddings.real_model(),
        api_key=None if asked.no_key else asked.api_key,
        address=(asked.host, asked.port),
    )
    double.start()
    double.wait()


if __name__ == "__main__":
    main()
