"""Downloads of the oMLX double, from a hub that exists only here: one at a time, and lost in many ways."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.doubles.omlx_state import State

HUB = {
    # repository: config.json's model_type, size in bytes as the hub states it
    "google/embeddinggemma-2": ("embedding_gemma2", 1_488_000_000),
    "mlx-community/embeddinggemma-2-8bit": ("embedding_gemma2", 792_000_000),
    "mlx-community/tiny-chat": ("llama", 640_000_000),
}
WEIGHTS = "model.safetensors"
ACTIVE = ("pending", "downloading")
NOT_FOUND = "Repository not found: {}. This may be a gated model that requires HuggingFace authentication."
OFFLINE = "Connection refused"
CUT_OFF = "Connection broken: IncompleteRead(744000000 bytes read, 744000000 more expected)"
DISK_FULL = "[Errno 28] No space left on device"
STEPS = 20
_KEPT = ".unfinished"  # what of a download is on disk when it ends too early: finished files are used again


class Refused(Exception):  # noqa: N818 - an answer of the server, not a fault of the double
    """An answer that is not 200. `detail` is a text, or a list of texts."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail


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


def start(state: State, repo: str, token: str, retry_of: Task | None = None) -> Task:
    """Queues a download. Raises: Refused."""
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise Refused(400, f"Invalid repository ID: {repo}")
    if any(task.repo_id == repo and task.status in ACTIVE for task in state.tasks):
        raise Refused(400, f"Download for '{repo}' is already in progress")
    task = Task(repo, token, retry_count=retry_of.retry_count + 1 if retry_of else 0)
    if retry_of:
        state.tasks.remove(retry_of)
    state.tasks.append(task)
    threading.Thread(target=_work, args=(state, task), name=task.task_id, daemon=True).start()
    return task


def _work(state: State, task: Task) -> None:
    if not _wait(state, task, lambda: _next(state) is task):
        return None
    with state.lock:
        task.status, task.started_at = "downloading", time.time()
    folder = state.model_dirs[0] / task.repo_id
    if state.personality.hub_down and folder.exists():
        return _end(state, task, "completed")
    kind, size = HUB.get(task.repo_id, ("", 0))
    kept = STEPS - 1 if (folder / WEIGHTS).exists() else _kept(folder)
    for step in range(kept + 1, STEPS + 1):
        if not _wait(state, task, None, state.personality.download_s / STEPS):
            return None
        if fault := _fault(state, task, step):
            return _end(state, task, "failed", fault)
        with state.lock:
            task.total_size, task.downloaded_size = size, size * step // STEPS
            task.progress = min(99.0, round(100 * step / STEPS, 1))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "config.json").write_text(json.dumps({"model_type": kind}))
            (folder / _KEPT).write_text(str(step))
    with state.lock:
        write_model(state.model_dirs[0], task.repo_id, kind, size)
        (folder / _KEPT).unlink()
        state.discover()
        _end(state, task, "completed")
    return None


def _kept(folder: Path) -> int:
    try:
        return int((folder / _KEPT).read_text())
    except FileNotFoundError:
        return 0


def _fault(state: State, task: Task, step: int) -> str:
    """How the real server words what goes wrong at this step; several causes read alike."""
    hub = state.personality
    if hub.hub_down:
        return OFFLINE
    if task.repo_id not in HUB or (hub.gated and not task.token.startswith("hf_good")):
        return NOT_FOUND.format(task.repo_id)
    if step <= STEPS // 2:
        return ""
    return DISK_FULL if hub.disk_full else CUT_OFF if hub.cut_off else ""


def _next(state: State) -> Task | None:
    return next((task for task in state.tasks if task.status in ACTIVE), None)


def _wait(state: State, task: Task, ready: Callable[[], bool] | None, seconds: float = 0.02) -> bool:
    """Waits; False when the task was cancelled or forgotten meanwhile."""
    while True:
        time.sleep(seconds)
        with state.lock:
            if task not in state.tasks or task.status == "cancelled":
                return False
            if ready is None or ready():
                return True


def _end(state: State, task: Task, status: str, error: str = "") -> None:
    with state.lock:
        task.status, task.error, task.completed_at = status, error, time.time()
        task.progress = 100.0 if status == "completed" else task.progress
