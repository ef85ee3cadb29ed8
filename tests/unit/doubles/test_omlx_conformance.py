"""The conformance check passes for every kind of double, names what differs, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import omlx_conformance
from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

MAIN, GEMMA = "main-key-dummy-7f3a", "google/embeddinggemma-2"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OmlxDouble]:
    with OmlxDouble(tmp_path, api_key=MAIN) as double:
        double.add_model(GEMMA)
        double.state.load("embeddinggemma-2")
        yield double


def files(server: OmlxDouble) -> dict[str, str]:
    return {path.name: path.read_text() for path in server.base.glob("*.json")}


@pytest.mark.parametrize("kind", [{}, {"old": True}, {"strict": True}, {"supervised": False}])
def test_every_kind_of_double_answers_as_expected_and_is_left_as_it_was(
    tmp_path: Path, kind: dict[str, bool], capsys: pytest.CaptureFixture[str]
) -> None:
    with OmlxDouble(tmp_path, personality=Personality(**kind), api_key=MAIN) as server:
        server.add_sub_key("a-key-of-another")
        server.add_model(GEMMA)
        server.add_model("somebody/other-vectors", "bert")
        server.state.load("other-vectors")
        before = files(server)

        code = omlx_conformance.check(server.url, MAIN)

        told = capsys.readouterr().out
        assert code == 0, told
        assert "DIFFERS" not in told and "left out" not in told
        assert files(server) == before and server.state.tasks == []
        assert server.state.loaded == {"other-vectors"}
        assert MAIN not in told and "a-key-of-another" not in told
        assert all(len(line) <= 80 for line in told.splitlines()), told


def test_without_a_model_in_memory_none_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OmlxDouble(tmp_path, api_key=MAIN) as server:
        server.add_model(GEMMA)

        assert omlx_conformance.check(server.url, MAIN) == 0

        assert "left out vectors: no embedding model is loaded" in capsys.readouterr().out
        assert server.state.loaded == set()


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("wrong-size", "DIFFERS  the vector has 768 numbers (here 1024)"),
        ("only-a-space", "DIFFERS  a name in capitals with an owner finds the model"),
        ("load-failed", "got HTTP 409"),
    ],
)
def test_an_answer_that_differs_is_named(
    server: OmlxDouble, capsys: pytest.CaptureFixture[str], fault: str, line: str
) -> None:
    server.fault = fault

    assert omlx_conformance.check(server.url, MAIN) == 1

    assert line in capsys.readouterr().out


def test_a_server_that_is_changed_meanwhile_is_named(
    server: OmlxDouble, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        omlx_conformance, "check_models", lambda *_: server.state.settings["server"].update(host="0.0.0.0")
    )

    assert omlx_conformance.check(server.url, MAIN) == 1

    assert "DIFFERS  the server is as it was found" in capsys.readouterr().out


def test_the_sub_key_goes_even_if_the_check_breaks_off(
    server: OmlxDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = omlx_conformance.Server.ask

    def breaks(self: Any, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if path == "/v1/models/status":
            raise ConnectionResetError("cut")
        return ask(self, method, path, *rest, **more)

    monkeypatch.setattr(omlx_conformance.Server, "ask", breaks)

    assert omlx_conformance.check(server.url, MAIN) == 2

    assert server.state.settings["auth"]["sub_keys"] == []


def test_a_wrong_key_and_a_silent_server_are_sentences(
    server: OmlxDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert omlx_conformance.check(server.url, "no-key-dummy") == 2
    assert "Give oMLX's main key" in capsys.readouterr().out
    server.stop()
    assert omlx_conformance.check(server.url, MAIN) == 2
    assert "Is oMLX running there?" in capsys.readouterr().out


def test_it_is_a_script_that_needs_nothing_else(server: OmlxDouble, tmp_path: Path) -> None:
    script = Path(omlx_conformance.__file__)
    command = [sys.executable, "-I", str(script), server.url, MAIN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].endswith("as expected."), done
    usage = subprocess.run([*command[:3]], capture_output=True, text=True, check=False, timeout=60)
    assert usage.returncode == 2 and "Usage: omlx_conformance.py BASE_URL [ADMIN_KEY]" in usage.stdout
