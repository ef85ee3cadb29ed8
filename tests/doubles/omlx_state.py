"""What the oMLX double knows between requests: settings and models on disk, what is loaded, downloads."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"
EMBEDDING_TYPES = {"bert", "xlm-roberta", "modernbert"}
HUB = {
    # repository: config.json's model_type, size in bytes as the hub states it
    "google/embeddinggemma-2": ("embedding_gemma2", 1_488_000_000),
    "mlx-community/embeddinggemma-2-8bit": ("embedding_gemma2", 792_000_000),
    "mlx-community/tiny-chat": ("llama", 640_000_000),
}
NOT_FOUND = "Repository not found: {}. This may be a gated model that requires HuggingFace authentication."


class Refused(Exception):  # noqa: N818 - an answer of the server, not a fault of the double
    """An answer that is not 200. `detail` is a text, or a list of texts."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Personality:
    """How this server differs from a new oMLX that the app keeps running."""

    supervised: bool = True  # False: as under Homebrew, it cannot restart itself
    old: bool = False  # a version that takes EmbeddingGemma 2 for a vision model and cannot load it
    strict: bool = False  # unknown settings of a model are refused, as newer versions do
    gated: bool = False  # the hub wants a token for everything
    hub_down: bool = False  # the hub cannot be reached
    stuck_on_loopback: bool = False  # a saved host is not used after a restart
    loading_s: float = 0.0  # after a start, /health says "loading" for so long
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


@dataclass
class Task:
    """One download, with the fields that the API shows."""

    repo_id: str
    token: str
    task_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: str = "pending"
    progress: float = 0.0
    total_size: int = 0
    downloaded_size: int = 0
    error: str = ""
    created_at: float = field(default_factory=time.time)
    started_at: float = 0.0
    completed_at: float = 0.0
    retry_count: int = 0

    def shown(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "token"}


def write_model(folder: Path, repo: str, model_type: str, size: int = 0) -> None:
    """Puts a stand-in for a model's files where oMLX finds them; the size is only stated."""
    place = folder / repo
    place.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {"model_type": model_type, "hidden_size": 768}
    if model_type == "embedding_gemma2":
        config |= {"architectures": ["EmbeddingGemma2Model"], "vision_config": {}, "audio_config": {}}
    (place / "config.json").write_text(json.dumps(config))
    (place / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {"total_size": size}}))
    (place / WEIGHTS).write_bytes(b"weights of a double\n")


class State:
    """Everything one server process knows. Threads: callers hold `lock` while they change or read it."""

    def __init__(self, base: Path, personality: Personality) -> None:
        self.base, self.personality = base, personality
        self.lock = threading.RLock()
        base.mkdir(parents=True, exist_ok=True)
        (base / "models").mkdir(exist_ok=True)
        self.settings = self._read("settings.json") or _new_settings()
        self.model_settings: dict[str, dict[str, Any]] = self._read("model_settings.json").get("models", {})
        self.save()
        self.tasks: list[Task] = []
        self.models: dict[str, Model] = {}
        self.loaded: set[str] = set()
        self.failed: set[str] = set()
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
                if self.pinned(id) and self._loadable(id):
                    self.loaded.add(id)
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
        """Raises: Refused when it is unknown (404), cannot be loaded (500) or failed before (409)."""
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
        self.loaded.add(id)
        return f"Loaded {id}"

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

    # ------------------------------------------------------------ downloads

    def download(self, repo: str, token: str, *, retry_of: Task | None = None) -> Task:
        if repo.count("/") != 1 or not all(repo.split("/")):
            raise Refused(400, f"Invalid repository ID: {repo}")
        if any(task.repo_id == repo and task.status in ("pending", "downloading") for task in self.tasks):
            raise Refused(400, f"Download for '{repo}' is already in progress")
        task = Task(repo, token, retry_count=retry_of.retry_count + 1 if retry_of else 0)
        if retry_of:
            self.tasks.remove(retry_of)
        self.tasks.append(task)
        threading.Thread(target=self._work, args=(task,), daemon=True).start()
        return task

    def _work(self, task: Task) -> None:
        if not self._wait(task, lambda: self._next() is task):
            return None
        with self.lock:
            task.status, task.started_at = "downloading", time.time()
        folder = self.model_dirs[0] / task.repo_id
        fault = self._hub_fault(task)
        if fault == "offline" and folder.exists():
            return self._end(task, "completed")
        kind, size = HUB.get(task.repo_id, ("", 0))
        steps = 1 if (folder / WEIGHTS).exists() else 20
        for step in range(1, steps + 1):
            if not self._wait(task, None, self.personality.download_s / 20):
                return None
            if fault:
                return self._end(task, "failed", "Connection refused" if fault == "offline" else fault)
            with self.lock:
                task.total_size, task.downloaded_size = size, size * step // steps
                task.progress = min(99.0, round(100 * step / steps, 1))
                if step == 1 and not folder.exists():
                    folder.mkdir(parents=True)
                    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        with self.lock:
            write_model(self.model_dirs[0], task.repo_id, kind, size)
            self.discover()
            self._end(task, "completed")
        return None

    def _hub_fault(self, task: Task) -> str:
        if self.personality.hub_down:
            return "offline"
        refused = self.personality.gated and not task.token.startswith("hf_good")
        return NOT_FOUND.format(task.repo_id) if refused or task.repo_id not in HUB else ""

    def _next(self) -> Task | None:
        return next((task for task in self.tasks if task.status in ("downloading", "pending")), None)

    def _wait(self, task: Task, ready: Callable[[], bool] | None, seconds: float = 0.02) -> bool:
        """Waits; False when the task was cancelled or forgotten meanwhile."""
        while True:
            time.sleep(seconds)
            with self.lock:
                if task not in self.tasks or task.status == "cancelled":
                    return False
                if ready is None or ready():
                    return True

    def _end(self, task: Task, status: str, error: str = "") -> None:
        with self.lock:
            task.status, task.error, task.completed_at = status, error, time.time()
            task.progress = 100.0 if status == "completed" else task.progress


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
