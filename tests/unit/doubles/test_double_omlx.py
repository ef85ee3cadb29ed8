"""The oMLX double answers as the real server was seen to answer."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

MAIN, GEMMA = "main-key-1", "google/embeddinggemma-2"
QUICK = Personality(download_s=0.1, downtime_s=0.1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OmlxDouble]:
    with OmlxDouble(tmp_path / "base", personality=QUICK, api_key=MAIN) as double:
        yield double


@pytest.fixture
def admin(server: OmlxDouble) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.post("/admin/api/login", json={"api_key": MAIN}).raise_for_status()
        yield client


def public(server: OmlxDouble, key: str | None = MAIN) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=server.url, trust_env=False, headers=headers)


def ask(server: OmlxDouble, key: str | None = MAIN, **body: Any) -> httpx.Response:
    with public(server, key) as client:
        return client.post("/v1/embeddings", json={"model": "embeddinggemma-2", "input": "hello"} | body)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def tasks(admin: httpx.Client) -> list[dict[str, Any]]:
    return list(admin.get("/admin/api/hf/tasks").json()["tasks"])


def test_settings_and_keys_are_kept_in_clear_for_all_to_read(server: OmlxDouble) -> None:
    path = server.base / "settings.json"

    saved = json.loads(path.read_text())

    assert path.stat().st_mode & 0o777 == 0o644
    assert saved["auth"]["api_key"] == MAIN
    assert f"http://127.0.0.1:{saved['server']['port']}" == server.url


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        ({"json": {"api_key": "wrong"}}, 401, "Invalid API key"),
        ({"json": {"api_key": "sub-key-1"}}, 401, "Invalid API key"),
        ({"data": {"api_key": MAIN}}, 500, "Internal server error"),
    ],
)
def test_only_the_main_key_in_json_opens_a_session(
    server: OmlxDouble, sent: Any, status: int, detail: str
) -> None:
    server.add_sub_key("sub-key-1")

    with public(server) as client:
        answer = client.post("/admin/api/login", **sent)

    assert (answer.status_code, answer.json()) == (status, {"detail": detail})
    assert "set-cookie" not in answer.headers


def test_a_login_without_a_key_field_is_422(admin: httpx.Client) -> None:
    answer = admin.post("/admin/api/login", json={})

    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "api_key"]


def test_admin_pages_ignore_bearer_keys_except_for_loading(server: OmlxDouble) -> None:
    server.add_model(GEMMA)

    with public(server) as client:
        refused = client.get("/admin/api/global-settings")
        redirected = client.get("/admin/api/global-settings", headers={"Accept": "text/html"})
        loaded = client.post("/admin/api/models/embeddinggemma-2/load")

    assert (refused.status_code, refused.json()) == (401, {"detail": "Admin authentication required"})
    assert (redirected.status_code, redirected.headers["location"]) == (302, "/admin")
    assert loaded.status_code == 200


def test_without_a_main_key_everything_public_is_open_and_login_says_so(tmp_path: Path) -> None:
    with OmlxDouble(tmp_path, api_key=None) as server, public(server, None) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.post("/admin/api/login", json={"api_key": "x"}).status_code == 400

        made = client.post("/admin/api/setup-api-key", json={"api_key": MAIN, "api_key_confirm": MAIN})

        assert made.status_code == 200
        assert client.get("/admin/api/server-info").status_code == 200
        assert client.get("/v1/models").status_code == 401


@pytest.mark.parametrize(("key", "message"), [(None, "API key required"), ("no", "Invalid API key")])
def test_public_pages_say_what_is_wrong_with_the_key(
    server: OmlxDouble, key: str | None, message: str
) -> None:
    answer = ask(server, key, model="unknown")

    assert answer.status_code == 401
    assert answer.json()["error"] == {
        "message": message, "type": "authentication_error", "param": None, "code": None,
    }  # fmt: skip


def test_unknown_addresses_are_the_routers_own_errors(server: OmlxDouble, admin: httpx.Client) -> None:
    assert admin.get("/v1/nothing").json() == {"detail": "Not Found"}
    assert admin.get("/admin/api/sub-keys").status_code == 405
    assert admin.put("/admin/api/models/google%2Fembeddinggemma-2/settings", json={}).status_code == 404


def test_a_sub_key_works_at_once_and_until_it_is_deleted(server: OmlxDouble, admin: httpx.Client) -> None:
    made = {"key": "sub-key-1", "name": "hermes-digup"}
    assert admin.post("/admin/api/sub-keys", json=made).json()["sub_key"]["key"] == "sub-key-1"
    assert admin.post("/admin/api/sub-keys", json=made).status_code == 400
    assert admin.post("/admin/api/sub-keys", json=made | {"key": "sub-key-2"}).status_code == 200
    listed = admin.get("/admin/api/global-settings").json()["auth"]["sub_keys"]
    assert [sub["key"] for sub in listed] == ["sub-key-1", "sub-key-2"]
    with public(server, "sub-key-1") as client:
        assert client.get("/v1/models").status_code == 200

        gone = admin.request("DELETE", "/admin/api/sub-keys", json={"key": "sub-key-1"})

        assert gone.json() == {"success": True}
        assert client.get("/v1/models").status_code == 401
    assert admin.request("DELETE", "/admin/api/sub-keys", json={"key": "sub-key-1"}).status_code == 404
    assert admin.request("DELETE", "/admin/api/sub-keys", json={"name": "hermes-digup"}).status_code == 422


def test_a_saved_host_needs_a_restart_and_is_then_used(server: OmlxDouble, admin: httpx.Client) -> None:
    answer = admin.post("/admin/api/global-settings", json={"host": "127.0.0.2", "idle_timeout_seconds": 600})

    assert answer.json()["runtime_applied"] == ["idle_timeout_seconds"]
    assert admin.get("/admin/api/server-info").json()["host"] == "127.0.0.2"
    assert admin.post("/admin/api/server/restart").status_code == 202
    elsewhere = server.url.replace("127.0.0.1", "127.0.0.2")
    eventually(lambda: answers(f"{elsewhere}/health"))
    assert not answers(f"{server.url}/health")


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_restart_keeps_sessions_and_pins_and_forgets_tasks(server: OmlxDouble, admin: httpx.Client) -> None:
    server.add_model(GEMMA)
    admin.put("/admin/api/models/embeddinggemma-2/settings", json={"is_pinned": True}).raise_for_status()
    admin.post("/admin/api/hf/download", json={"repo_id": "nobody/nothing"})
    before = server.state

    admin.post("/admin/api/server/restart")

    eventually(lambda: server.state is not before and answers(f"{server.url}/health"))
    model = admin.get("/admin/api/models").json()["models"][0]
    assert (model["pinned"], model["loaded"]) == (True, True)
    assert tasks(admin) == []


def test_an_unsupervised_server_cannot_restart_itself(tmp_path: Path) -> None:
    with (
        OmlxDouble(tmp_path, personality=Personality(supervised=False), api_key=MAIN) as server,
        public(server) as client,
    ):
        client.post("/admin/api/login", json={"api_key": MAIN})

        assert client.post("/admin/api/server/restart").status_code == 503


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"host": "no host!"}, 400),
        ({"host": ""}, 400),
        ({"idle_timeout_seconds": 5}, 422),
        ({"api_key": ""}, 400),
    ],
)
def test_bad_settings_are_refused(admin: httpx.Client, body: dict[str, Any], status: int) -> None:
    assert admin.post("/admin/api/global-settings", json=body).status_code == status


def test_a_wrong_port_poisons_the_settings_until_a_right_one_comes(admin: httpx.Client) -> None:
    wrong = admin.post("/admin/api/global-settings", json={"port": 70000})

    assert wrong.json() == {"detail": ["Invalid port: 70000 (must be 1-65535)"]}
    assert admin.post("/admin/api/global-settings", json={"log_level": "debug"}).status_code == 400
    assert admin.post("/admin/api/global-settings", json={"port": 8000}).status_code == 200


def test_a_download_goes_from_pending_to_a_listed_model(server: OmlxDouble, admin: httpx.Client) -> None:
    started = admin.post("/admin/api/hf/download", json={"repo_id": GEMMA, "hf_token": ""}).json()
    again = admin.post("/admin/api/hf/download", json={"repo_id": GEMMA})

    assert started["task"]["status"] == "pending"
    assert again.status_code == 400
    eventually(lambda: tasks(admin)[0]["status"] == "completed")
    (model,) = admin.get("/admin/api/models").json()["models"]
    assert (model["id"], model["display_name"]) == ("embeddinggemma-2", GEMMA)
    assert (model["model_type"], model["config_model_type"]) == ("embedding", "embedding_gemma2")
    assert (model["loaded"], model["pinned"], "settings" in model) == (False, False, False)
    assert tasks(admin)[0]["total_size"] == 1_488_000_000


def test_a_cancelled_download_leaves_a_folder_that_is_no_model(tmp_path: Path) -> None:
    slow = Personality(download_s=60)
    with OmlxDouble(tmp_path, personality=slow, api_key=MAIN) as server, public(server) as client:
        client.post("/admin/api/login", json={"api_key": MAIN})
        task = client.post("/admin/api/hf/download", json={"repo_id": GEMMA}).json()["task"]
        eventually(lambda: (tmp_path / "models" / GEMMA).exists())

        cancelled = client.post(f"/admin/api/hf/cancel/{task['task_id']}")

        assert cancelled.json() == {"success": True}
        assert client.post(f"/admin/api/hf/cancel/{task['task_id']}").status_code == 404
        client.post("/admin/api/reload")
        assert client.get("/admin/api/models").json() == {"models": []}
        retried = client.post(f"/admin/api/hf/retry/{task['task_id']}", json={}).json()["task"]
        assert (retried["retry_count"], retried["task_id"] != task["task_id"]) == (1, True)


@pytest.mark.parametrize(
    ("personality", "token", "outcome"),
    [
        (Personality(gated=True, download_s=0.1), "", "gated model"),
        (Personality(gated=True, download_s=0.1), "hf_bad", "gated model"),
        (Personality(gated=True, download_s=0.1), "hf_good", ""),
        (Personality(hub_down=True, download_s=0.1), "", "Connection refused"),
    ],
)
def test_a_failed_download_says_why_in_its_task(
    tmp_path: Path, personality: Personality, token: str, outcome: str
) -> None:
    with OmlxDouble(tmp_path, personality=personality, api_key=MAIN) as server, public(server) as client:
        client.post("/admin/api/login", json={"api_key": MAIN})

        client.post("/admin/api/hf/download", json={"repo_id": GEMMA, "hf_token": token}).raise_for_status()

        eventually(lambda: tasks(client)[0]["status"] in ("failed", "completed"))
        assert outcome in tasks(client)[0]["error"]
        assert (tasks(client)[0]["error"] == "") == (outcome == "")


def test_a_hub_that_is_away_completes_what_is_there_in_any_state(tmp_path: Path) -> None:
    (tmp_path / "models" / GEMMA).mkdir(parents=True)
    away = Personality(hub_down=True)
    with OmlxDouble(tmp_path, personality=away, api_key=MAIN) as server, public(server) as client:
        client.post("/admin/api/login", json={"api_key": MAIN})

        client.post("/admin/api/hf/download", json={"repo_id": GEMMA})

        eventually(lambda: tasks(client)[0]["status"] == "completed")
        assert tasks(client)[0]["total_size"] == 0
        assert client.get("/admin/api/models").json() == {"models": []}


def test_a_pin_is_no_load_and_an_unload_is_no_unpin(server: OmlxDouble, admin: httpx.Client) -> None:
    server.add_model(GEMMA)
    path = "/admin/api/models/embeddinggemma-2"

    def seen() -> tuple[bool, bool]:
        model = admin.get("/admin/api/models").json()["models"][0]
        return model["pinned"], model["loaded"]

    admin.put(f"{path}/settings", json={"is_pinned": True})
    assert seen() == (True, False)
    admin.post(f"{path}/load")
    assert seen() == (True, True)
    admin.post(f"{path}/unload")
    admin.put(f"{path}/settings", json={"is_pinned": None})
    assert seen() == (True, False)
    admin.post(f"{path}/load")
    admin.put(f"{path}/settings", json={"is_pinned": False})
    assert seen() == (False, True)


def test_an_old_server_takes_the_model_for_another_kind_and_remembers_the_failure(tmp_path: Path) -> None:
    old = Personality(old=True)
    with OmlxDouble(tmp_path, personality=old, api_key=MAIN) as server, public(server) as client:
        server.add_model(GEMMA)
        client.post("/admin/api/login", json={"api_key": MAIN})
        path = "/admin/api/models/embeddinggemma-2"
        assert client.get("/admin/api/models").json()["models"][0]["model_type"] == "vlm"
        assert ask(server).status_code == 400

        client.put(f"{path}/settings", json={"model_type_override": "embedding"}).raise_for_status()

        assert client.post(f"{path}/load").status_code == 500
        assert client.post(f"{path}/load").status_code == 409
        assert ask(server).status_code == 409
        client.post("/admin/api/reload")
        assert client.post(f"{path}/load").status_code == 500
        assert client.get("/api/status").json()["version"] == "0.4.5.dev1"


def test_unknown_settings_of_a_model_are_ignored_or_refused_by_version(tmp_path: Path) -> None:
    for strict, status in ((False, 200), (True, 422)):
        personality = Personality(strict=strict)
        with OmlxDouble(tmp_path, personality=personality, api_key=MAIN) as server, public(server) as client:
            server.add_model(GEMMA)
            client.post("/admin/api/login", json={"api_key": MAIN})
            path = "/admin/api/models/embeddinggemma-2/settings"
            assert client.put(path, json={"is_pinned": True, "new_thing": 1}).status_code == status


def test_embeddings_come_in_chunks_after_a_space(server: OmlxDouble) -> None:
    server.add_model(GEMMA)

    answer = ask(server, model="GOOGLE/EmbeddingGemma-2", input=["hello", "world"])

    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.content.startswith(b' {"object"')
    assert answer.json()["model"] == "GOOGLE/EmbeddingGemma-2"
    vectors = np.array([row["embedding"] for row in answer.json()["data"]])
    assert vectors.shape == (2, 768)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_embeddings_can_be_shorter_and_in_base64(server: OmlxDouble) -> None:
    server.add_model(GEMMA)

    numbers = ask(server).json()["data"][0]["embedding"]
    coded = ask(server, encoding_format="base64").json()["data"][0]["embedding"]
    short = ask(server, dimensions=128).json()["data"][0]["embedding"]

    assert np.allclose(np.frombuffer(base64.b64decode(coded), "<f4"), numbers)
    assert (len(short), round(float(np.linalg.norm(short)), 5)) == (128, 1.0)
    assert len(ask(server, dimensions=4096).json()["data"][0]["embedding"]) == 768


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "nope"}, 404, "Model 'nope' not found. Available models: embeddinggemma-2, tiny-chat"),
        ({"model": "tiny-chat"}, 400, "not an embedding model"),
        ({"input": []}, 400, "Input cannot be empty"),
        ({"input": [1, 2]}, 422, "string"),
        ({"input": None}, 422, "exactly one"),
        ({"encoding_format": "hex"}, 422, "base64"),
    ],
)
def test_embedding_errors_have_the_public_shape(
    server: OmlxDouble, body: dict[str, Any], status: int, message: str
) -> None:
    server.add_model(GEMMA)
    server.add_model("mlx-community/tiny-chat", "llama")

    answer = ask(server, **body)

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


def test_health_is_open_and_says_loading_at_first(tmp_path: Path) -> None:
    with OmlxDouble(tmp_path, personality=Personality(loading_s=60), api_key=MAIN) as server:
        with public(server, None) as client:
            first = client.get("/health")
            assert (first.status_code, first.json()["status"]) == (503, "loading")
        server.personality = QUICK
        eventually(lambda: answers(f"{server.url}/health"))


def test_an_alias_takes_the_ids_place_in_the_public_list(server: OmlxDouble, admin: httpx.Client) -> None:
    server.add_model(GEMMA)

    admin.put("/admin/api/models/embeddinggemma-2/settings", json={"model_alias": "vectors"})

    with public(server) as client:
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["vectors"]
        assert client.get("/v1/models/status").json()["models"][0]["id"] == "embeddinggemma-2"
    assert ask(server, model="vectors").status_code == 200


def test_the_command_starts_one_that_keeps_its_key_and_ends_when_told(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tests.doubles.omlx",
        "--base",
        str(tmp_path),
        "--port",
        str(port),
        "--words",
    ]
    keys = []

    for _ in range(2):
        with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as process:
            eventually(lambda: answers(f"http://127.0.0.1:{port}/health"))
            keys.append(json.loads((tmp_path / "settings.json").read_text())["auth"]["api_key"])
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(timeout=10) == 0

    assert keys[0] == keys[1]
    assert len(keys[0]) > 20


def test_a_model_that_loads_is_shown_and_refused_to_others_meanwhile(tmp_path: Path) -> None:
    slow = Personality(load_s=60)
    with OmlxDouble(tmp_path, personality=slow, api_key=MAIN) as server, public(server) as client:
        server.add_model(GEMMA)
        client.post("/admin/api/login", json={"api_key": MAIN})
        path = "/admin/api/models/embeddinggemma-2"
        with public(server) as other, ThreadPoolExecutor(1) as thread:
            loading = thread.submit(other.post, f"{path}/load")
            eventually(lambda: client.get("/admin/api/models").json()["models"][0]["is_loading"])

            assert client.post(f"{path}/load").status_code == 409
            assert client.post(f"{path}/unload").status_code == 409
            with server.state.lock:
                server.state.loading.clear()
                server.state.lock.notify_all()
            assert loading.result().status_code == 200
        assert client.post(f"{path}/load").json()["message"] == "Already loaded: embeddinggemma-2"


@pytest.mark.parametrize(("strict", "status"), [(True, 202), (False, 200)])
def test_a_newer_server_unloads_a_busy_model_later(tmp_path: Path, strict: bool, status: int) -> None:
    with OmlxDouble(tmp_path, personality=Personality(strict=strict), api_key=MAIN) as server:
        server.add_model(GEMMA)
        server.state.load("embeddinggemma-2")
        with public(server) as client, server.state.in_use("embeddinggemma-2"):
            assert client.post("/v1/models/embeddinggemma-2/unload").status_code == status
            assert server.state.loaded == ({"embeddinggemma-2"} if strict else set())
        assert server.state.loaded == set()


@pytest.mark.parametrize(
    ("trouble", "words"), [({"cut_off": True}, "Connection broken"), ({"disk_full": True}, "No space left")]
)
def test_a_download_that_failed_in_the_middle_goes_on_from_there(
    tmp_path: Path, trouble: dict[str, bool], words: str
) -> None:
    personality = Personality(download_s=0.1, **trouble)
    with OmlxDouble(tmp_path, personality=personality, api_key=MAIN) as server, public(server) as client:
        client.post("/admin/api/login", json={"api_key": MAIN})
        task = client.post("/admin/api/hf/download", json={"repo_id": GEMMA}).json()["task"]
        eventually(lambda: words in tasks(client)[0]["error"])
        server.state.personality = QUICK

        client.post(f"/admin/api/hf/retry/{task['task_id']}", json={}).raise_for_status()

        eventually(lambda: tasks(client)[0]["downloaded_size"] > 0)
        assert tasks(client)[0]["progress"] > 50
        eventually(lambda: tasks(client)[0]["status"] == "completed")


def test_a_restart_ends_a_download(tmp_path: Path) -> None:
    with OmlxDouble(tmp_path, personality=Personality(download_s=20, downtime_s=0.0)) as server:
        server.state.download(GEMMA, "")
        eventually(lambda: (tmp_path / "models" / GEMMA).exists())
        ended = server.state.tasks[0]

        server.restart()

        eventually(lambda: ended.task_id not in [thread.name for thread in threading.enumerate()])
        assert (ended.status, server.state.models, server.state.tasks) == ("downloading", {}, [])


def test_a_pin_that_cannot_be_loaded_at_the_start_is_a_remembered_failure(tmp_path: Path) -> None:
    with OmlxDouble(tmp_path, personality=Personality(old=True), api_key=MAIN) as server:
        server.add_model(GEMMA)
        server.state.model_settings["embeddinggemma-2"] = {"is_pinned": True}
        server.state.discover(unload=True)

        with public(server) as client:
            assert client.post("/v1/models/embeddinggemma-2/load").status_code == 409
