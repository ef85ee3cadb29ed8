"""What the oMLX double knows between requests: settings and models on disk, what is loaded, downloads."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.doubles import omlx_downloads
from tests.doubles.omlx_downloads import WEIGHTS, Refused, Task

EMBEDDING_TYPES = {"bert", "xlm-roberta", "modernbert"}


@dataclass(frozen=True)
class Personality:
    """How this server differs from a new oMLX that the app keeps running."""

    supervised: bool = True  # False: as under Homebrew, it cannot restart itself
    old: bool = False  # a version that takes EmbeddingGemma 2 for a vision model and cannot load it
    strict: bool = False  # unknown settings of a model are refused, as newer versions do
    gated: bool = False  # the hub wants a token for everything
    hub_down: bool = False  # the hub cannot be reached
    cut_off: bool = False  # the hub is lost in the middle of each download
    disk_full: bool = False  # there is no room for a download
    stuck_on_loopback: bool = False  # a saved host is not used after a restart
    loading_s: float = 0.0  # after a start, /health says "loading" for so long
    load_s: float = 0.0  # a model takes so long to load
    download_s: float = 2.0  # a download takes so long
    downtime_s: float = 0.5  # a restart refuses connections for so long


@dataclass
class Model:
    """One model folder. `id` is the folder's own name."""

    id: str
    repo: str
    path: Path
    config_type: str
    size: int


class State:
    """Everything one server process knows. Threads: callers hold `lock` while they change or read it."""

    def __init__(self, base: Path, personality: Personality) -> None:
        self.base, self.personality = base, personality
        self.lock = threading.Condition()
        base.mkdir(parents=True, exist_ok=True)
        (base / "models").mkdir(exist_ok=True)
        self.settings = self._read("settings.json") or _new_settings()
        self.model_settings: dict[str, dict[str, Any]] = self._read("model_settings.json").get("models", {})
        self.save()
        self.tasks: list[Task] = []
        self.models: dict[str, Model] = {}
        self.loaded: set[str] = set()
        self.failed: set[str] = set()
        self.loading: set[str] = set()
        self.using: list[str] = []
        self.leaving: set[str] = set()
        self.started = time.monotonic()
        self.discover(unload=True)

    # ------------------------------------------------------------ files

    def _read(self, name: str) -> dict[str, Any]:
        path = self.base / name
        return json.loads(path.read_text()) if path.exists() else {}

    def save(self) -> None:
        """Writes both files as oMLX does: in clear, and readable by all."""
        models = {"version": 1, "models": self.model_settings}
        for name, content in (("settings.json", self.settings), ("model_settings.json", models)):
            path = self.base / name
            path.write_text(json.dumps(content, indent=2))
            path.chmod(0o644)

    @property
    def model_dirs(self) -> list[Path]:
        return [Path(name) for name in self.settings["model"]["model_dirs"]] or [self.base / "models"]

    # ------------------------------------------------------------ keys

    def accepts(self, key: str | None) -> bool:
        """Whether a key may use /v1."""
        auth = self.settings["auth"]
        if not auth["api_key"] or auth["skip_api_key_verification"]:
            return True
        known = [auth["api_key"], *(sub["key"] for sub in auth["sub_keys"])]
        return key is not None and any(hmac.compare_digest(key.encode(), one.encode()) for one in known)

    def session(self, valid_s: int = 86400) -> str:
        """A signed admin session. It is kept nowhere, so it survives restarts and log-outs."""
        until = str(int(time.time()) + valid_s)
        return f"{until}.{self._signed(until)}"

    def is_session(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        return (
            until.isdigit()
            and int(until) > time.time()
            and hmac.compare_digest(signature, self._signed(until))
        )

    def _signed(self, text: str) -> str:
        return hmac.new(self.settings["auth"]["secret_key"].encode(), text.encode(), sha256).hexdigest()

    # ------------------------------------------------------------ models

    def discover(self, *, unload: bool = False) -> None:
        """Looks for models; a reload forgets what was loaded or failed, and loads the pinned ones again."""
        found = {}
        for root in self.model_dirs:
            for config in sorted([*root.glob("*/config.json"), *root.glob("*/*/config.json")]):
                place = config.parent
                if any(place.glob("*.safetensors")) and not place.name.startswith("."):
                    found[place.name] = _model(root, place)
        self.models = found
        if unload:
            self.loaded.clear()
            self.failed.clear()
            for id in found:
                if self.pinned(id):
                    (self.loaded if self._loadable(id) else self.failed).add(id)
        self.loaded &= set(found)

    def pinned(self, id: str) -> bool:
        return bool(self.model_settings.get(id, {}).get("is_pinned"))

    def type_of(self, id: str) -> str:
        """`embedding`, `vlm` or `llm`."""
        override = self.model_settings.get(id, {}).get("model_type_override")
        config = self.models[id].config_type
        if override:
            return str(override)
        if config == "embedding_gemma2":
            return "vlm" if self.personality.old else "embedding"
        return "embedding" if config in EMBEDDING_TYPES else "llm"

    def _loadable(self, id: str) -> bool:
        return not (self.personality.old and self.models[id].config_type == "embedding_gemma2")

    def load(self, id: str) -> str:
        """Raises: Refused when it is unknown (404), fails (500), failed before or is loading (409)."""
        if id not in self.models:
            raise Refused(404, f"Model not found: {id}")
        if id in self.loaded:
            return f"Already loaded: {id}"
        if id in self.failed:
            raise Refused(
                409, f"Model {id} is unavailable after a previous load failure. Reload models to try again."
            )
        if not self._loadable(id):
            self.failed.add(id)
            kind = self.models[id].config_type
            raise Refused(500, f"Failed to load {id}: Model type {kind} not supported.")
        if id in self.loading:
            raise Refused(409, f"Model {id} is already loading")
        self.loading.add(id)
        with self.lock:  # waiting gives it away: others are answered meanwhile
            self.lock.wait_for(lambda: id not in self.loading, self.personality.load_s)
        self.loading.discard(id)
        self.loaded.add(id)
        return f"Loaded {id}"

    def unload(self, id: str) -> bool:
        """Whether it is out of memory. A newer server first lets the requests end that use it."""
        if id not in self.loaded:
            raise Refused(400, f"Model not loaded: {id}")
        if self.personality.strict and id in self.using:
            self.leaving.add(id)
            return False
        self.loaded.discard(id)
        return True

    @contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """While a request uses the model of that name."""
        with self.lock:
            id = self.resolve(name)
            self.using.append(id)
        try:
            yield
        finally:
            with self.lock:
                self.using.remove(id)
                if id in self.leaving and id not in self.using:
                    self.leaving.discard(id)
                    self.loaded.discard(id)

    def resolve(self, name: str) -> str:
        """The id that a request's model name means. Raises: Refused (404), naming what there is."""
        aliases = {
            one["model_alias"]: id for id, one in self.model_settings.items() if one.get("model_alias")
        }
        for tried in (name, name.partition("/")[2]):
            for id in [*self.models, *aliases]:
                if tried.lower() == id.lower():
                    return aliases.get(id, id)
        listed = ", ".join(sorted(self.models))
        raise Refused(404, f"Model '{name}' not found. Available models: {listed}")

    def download(self, repo: str, token: str, *, retry_of: Task | None = None) -> Task:
        return omlx_downloads.start(self, repo, token, retry_of)


def _new_settings() -> dict[str, Any]:
    return {
        "version": "1.0",
        "server": {
            "host": "127.0.0.1",
            "port": 8000,
            "log_level": "info",
            "cors_origins": ["*"],
            "server_aliases": [],
            "auto_start_on_launch": True,
        },
        "model": {"model_dirs": [], "model_dir": None, "model_fallback": False},
        "scheduler": {"max_concurrent_requests": 8, "embedding_batch_size": 32},
        "auth": {
            "api_key": None,
            "secret_key": secrets.token_hex(32),
            "skip_api_key_verification": False,
            "sub_keys": [],
        },
        "huggingface": {"endpoint": "", "hf_cache_enabled": True},
        "idle_timeout": {"idle_timeout_seconds": None},
    }


def _model(root: Path, place: Path) -> Model:
    config = json.loads((place / "config.json").read_text())
    index = place / f"{WEIGHTS}.index.json"
    stated = json.loads(index.read_text())["metadata"]["total_size"] if index.exists() else 0
    size = stated or sum(path.stat().st_size for path in place.glob("*.safetensors"))
    return Model(place.name, str(place.relative_to(root)), place, config.get("model_type", ""), size)
