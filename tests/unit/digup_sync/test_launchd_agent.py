"""launchd_agent over what launchctl prints: every row of its exit codes, in normal, check and absent mode."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import plistlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("ansible", reason="ansible-core is not installed here")
if sys.version_info < (3, 11):
    pytest.skip("ansible-core 2.19 needs Python 3.11", allow_module_level=True)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

LABEL = "com.example.job"
SOURCE = Path(__file__).parents[3] / "roles" / "digup_sync" / "library" / "launchd_agent.py"

RUNNING = """com.example.job = {
\tactive count = 1
\tpath = /Users/ana/Library/LaunchAgents/com.example.job.plist
\ttype = LaunchAgent
\tstate = running

\tprogram = /bin/bash
\targuments = {
\t\t/bin/bash
\t\tstate = not running
\t}

\tdomain = gui/501 [100005]
\truns = 6
\tpid = 913
\tlast exit code = 78: EX_CONFIG

\tevent triggers = {
\t\tcom.example.job.1 => {
\t\t\tstate = active
\t\t\truns = 99
\t\t}
\t}
}
"""
FRESH = (
    "com.example.job = {\n\tstate = not running\n\truns = 0\n\tlast exit code = (never exited)\n"
    "\tendpoints = {\n\t\tstate = active\n\t\tactive count = 1\n\t}\n}\n"
)
NOT_LOADED = [
    'Could not find service "com.example.job" in domain for user gui: 501\n',
    'Could not find service "com.example.job" in domain for port\n',
]
NO_SESSION = [
    (112, "Could not find domain for user gui: 501\n"),
    (125, "Domain does not support specified action\n"),
    (113, "Could not find domain for user gui: 501\n"),
]
DISABLED = {
    "macOS 13": 'disabled services = {\n\t"com.docker" => enabled\n\t"com.example.job" => disabled\n}\n',
    "macOS 12": 'disabled services = {\n\t"com.docker" => false\n\t"com.example.job" => true\n}\n',
}
ENABLED = {
    "macOS 13": 'disabled services = {\n\t"com.example.job" => enabled\n\t"com.example" => disabled\n}\n',
    "macOS 12": 'disabled services = {\n\t"com.example.job" => false\n}\n',
    "not listed": "disabled services = {\n}\nlogin item associations = {\n}\n",
}
EIO = "Bootstrap failed: 5: Input/output error\nTry re-running the command as root for richer errors.\n"


@pytest.fixture(scope="module")
def launchd_agent() -> ModuleType:
    spec = importlib.util.spec_from_file_location("launchd_agent", SOURCE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Launchctl:
    """launchd as far as one agent sees it. `answers` overrides the next answers of a verb."""

    def __init__(self) -> None:
        self.session, self.loaded, self.disabled_text = True, False, ENABLED["not listed"]
        self.shown, self.not_loaded = FRESH, NOT_LOADED[0]
        self.no_session = NO_SESSION[0]
        self.drains = 0  # how often `print` still finds it after bootout
        self.answers: dict[str, list[tuple[int, str]]] = {}
        self.calls: list[str] = []

    def __call__(self, command: list[str], **_: object) -> tuple[int, str, str]:
        verb, target = command[1], command[2]
        assert "--wait" not in command, "64: macOS 15 has no such flag"
        if verb not in ("print", "print-disabled"):
            self.calls.append(verb)
        if self.answers.get(verb):
            code, text = self.answers[verb].pop(0)
            return code, "", text
        return getattr(self, "do_" + verb.replace("-", "_"))(target)

    def do_print(self, target: str) -> tuple[int, str, str]:
        if not self.session:
            code, text = self.no_session
            return code, "", text
        if target.count("/") == 1:
            return 0, "gui/501 = {\n}\n", ""
        if self.loaded or self.drains > 0:
            self.drains -= not self.loaded
            return 0, self.shown, ""
        return 113, "", self.not_loaded

    def do_print_disabled(self, target: str) -> tuple[int, str, str]:
        return 0, self.disabled_text, ""

    def do_enable(self, target: str) -> tuple[int, str, str]:
        self.disabled_text = ENABLED["macOS 13"]
        return 0, "", ""

    def do_bootstrap(self, target: str) -> tuple[int, str, str]:
        if not self.session:
            return 125, "", "Bootstrap failed: 125: Domain does not support specified action\n"
        if self.loaded or self.drains > 0 or self.disabled_text in DISABLED.values():
            return 5, "", EIO
        self.loaded = True
        return 0, "", ""

    def do_bootout(self, target: str) -> tuple[int, str, str]:
        if not self.loaded:
            return 3, "", "Boot-out failed: 3: No such process\n"
        self.loaded = False
        return (36, "", "Boot-out failed: 36: Operation now in progress\n") if self.drains else (0, "", "")


class Rig:
    """One agent's files, the double, and a way to run the module."""

    def __init__(self, folder: Path, module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
        self.plist, self.record = folder / f"{LABEL}.plist", folder / "agent.loaded"
        self.launchctl, self._module, self._capsys = Launchctl(), module, capsys
        self.write()

    def write(self, minute: int = 7) -> None:
        self.plist.write_bytes(plistlib.dumps({"Label": LABEL, "StartCalendarInterval": {"Minute": minute}}))

    def digest(self) -> str:
        return hashlib.sha256(self.plist.read_bytes()).hexdigest()

    def run(self, state: str = "present", *, check: bool = False) -> dict[str, object]:
        arguments = {
            "plist": str(self.plist),
            "record": str(self.record),
            "state": state,
            "_ansible_check_mode": check,
        }
        self._capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            self._module.main()
        return json.loads(self._capsys.readouterr().out)

    def state(self) -> tuple[object, ...]:
        """Everything that a run may change."""
        return self.launchctl.loaded, self.launchctl.disabled_text, self.plist.exists(), self.record.exists()

    def loaded(self) -> Rig:
        """As after a first run."""
        self.run()
        self.launchctl.calls.clear()
        return self


@pytest.fixture
def rig(
    tmp_path: Path,
    launchd_agent: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Rig]:
    rig = Rig(tmp_path, launchd_agent, capsys)
    passing = [0.0]

    def sleep(seconds: float) -> None:
        passing[0] += seconds

    monkeypatch.setattr(launchd_agent.time, "sleep", sleep)
    monkeypatch.setattr(launchd_agent.time, "monotonic", lambda: passing[0])
    monkeypatch.setattr(
        AnsibleModule, "run_command", lambda _self, command, **more: rig.launchctl(command, **more)
    )
    yield rig


def test_first_level_lines_are_read_and_nested_ones_are_not(launchd_agent: ModuleType) -> None:
    service = launchd_agent.parse_service(RUNNING)
    assert (service.running, service.runs, service.last_exit_code) == (True, 6, 78)
    service = launchd_agent.parse_service(FRESH)
    assert (service.running, service.runs, service.last_exit_code) == (False, 0, None)


def test_what_is_missing_is_unknown(launchd_agent: ModuleType) -> None:
    service = launchd_agent.parse_service("com.example.job = {\n\tpath = /x\n}\n")
    assert (service.loaded, service.running, service.runs, service.last_exit_code) == (True, None, None, None)


@pytest.mark.parametrize("system", DISABLED)
def test_both_forms_of_a_switched_off_agent_are_read(launchd_agent: ModuleType, system: str) -> None:
    assert launchd_agent.parse_disabled(DISABLED[system], LABEL)


@pytest.mark.parametrize("system", ENABLED)
def test_an_agent_is_on_unless_it_is_listed_as_off(launchd_agent: ModuleType, system: str) -> None:
    assert not launchd_agent.parse_disabled(ENABLED[system], LABEL)


@pytest.mark.parametrize("text", NOT_LOADED)
def test_a_new_agent_is_loaded_once(rig: Rig, text: str) -> None:
    rig.launchctl.not_loaded = text
    first = rig.run()
    assert (first["changed"], first["loaded"], first["label"]) == (True, True, LABEL)
    assert rig.launchctl.calls == ["enable", "bootstrap"]
    assert rig.record.read_text().strip() == rig.digest()
    second = rig.run()
    assert (second["changed"], "diff" in second) == (False, False)
    assert rig.launchctl.calls == ["enable", "bootstrap"]


def test_a_changed_list_is_loaded_again_after_the_old_one_is_gone(rig: Rig) -> None:
    rig.loaded().write(minute=22)
    rig.launchctl.drains = 10
    result = rig.run()
    assert (result["changed"], result["loaded"]) == (True, True)
    assert rig.launchctl.calls == ["bootout", "enable", "bootstrap"]
    assert rig.run()["changed"] is False


def test_an_agent_that_somebody_else_loaded_is_loaded_again(rig: Rig) -> None:
    rig.launchctl.loaded = True
    assert rig.run()["changed"] is True
    assert rig.launchctl.calls == ["bootout", "enable", "bootstrap"]


@pytest.mark.parametrize("system", DISABLED)
def test_a_switched_off_agent_is_switched_on(rig: Rig, system: str) -> None:
    rig.launchctl.disabled_text = DISABLED[system]
    result = rig.run()
    assert (result["changed"], result["loaded"], result["disabled"]) == (True, True, False)


@pytest.mark.parametrize(
    "answers",
    [
        [(5, EIO)] * 3,
        [(37, "Bootstrap failed: 37: Operation already in progress\n")] * 3,
    ],
)
def test_a_bootstrap_that_is_too_early_is_tried_again(rig: Rig, answers: list[tuple[int, str]]) -> None:
    rig.launchctl.answers["bootstrap"] = list(answers)
    assert rig.run()["loaded"] is True
    assert rig.launchctl.calls.count("bootstrap") == 4


def test_a_bootstrap_that_never_works_ends_in_a_sentence(rig: Rig) -> None:
    rig.launchctl.answers["bootstrap"] = [(5, EIO)] * 1000
    result = rig.run()
    assert result["failed"] is True
    assert "ended with 5: Bootstrap failed: 5: Input/output error. Check the file" in str(result["msg"])
    assert not rig.record.exists()


def test_another_fault_of_bootstrap_is_not_tried_again(rig: Rig) -> None:
    rig.launchctl.answers["bootstrap"] = [(1, "Bootstrap failed: 1: Operation not permitted\n")]
    assert "Operation not permitted" in str(rig.run()["msg"])
    assert rig.launchctl.calls.count("bootstrap") == 1


def test_a_job_that_never_ends_ends_the_wait(rig: Rig) -> None:
    rig.loaded().write(minute=22)
    rig.launchctl.drains = 10_000
    assert "still has com.example.job 30 s after bootout" in str(rig.run()["msg"])


@pytest.mark.parametrize("no_session", NO_SESSION)
def test_without_a_session_it_waits_for_the_next_login(rig: Rig, no_session: tuple[int, str]) -> None:
    rig.launchctl.session, rig.launchctl.no_session = False, no_session
    result = rig.run()
    assert (result["changed"], result["loaded"], result["session"]) == (False, False, False)
    assert "starts at the next login" in str(result["warnings"])
    assert rig.launchctl.calls == []


def test_a_session_that_ends_meanwhile_is_no_fault(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def log_out(target: str) -> tuple[int, str, str]:
        rig.launchctl.session = False
        return 125, "", "Bootstrap failed: 125: Domain does not support specified action\n"

    monkeypatch.setattr(rig.launchctl, "do_bootstrap", log_out)
    result = rig.run()
    assert (result["loaded"], result["session"]) == (False, False)
    assert not rig.record.exists()


def test_an_answer_that_nobody_knows_is_passed_on(rig: Rig) -> None:
    rig.launchctl.answers["print"] = [(64, "Usage: launchctl print <target>\n")]
    assert "ended with 64: Usage: launchctl print <target>" in str(rig.run()["msg"])


def new(rig: Rig) -> None:
    """Nothing is loaded yet."""


def changed(rig: Rig) -> None:
    rig.loaded().write(minute=22)


def off(rig: Rig) -> None:
    rig.loaded()
    rig.launchctl.disabled_text = DISABLED["macOS 13"]


def foreign(rig: Rig) -> None:
    """Somebody else has loaded it."""
    rig.launchctl.loaded = True


def draining(rig: Rig) -> None:
    changed(rig)
    rig.launchctl.drains = 10


def early(rig: Rig) -> None:
    rig.launchctl.answers["bootstrap"] = [
        (5, EIO),
        (37, "Bootstrap failed: 37: Operation already in progress\n"),
    ]


def vanished(rig: Rig) -> None:
    """It ends by itself just before bootout."""
    changed(rig)

    def too_late(target: str) -> tuple[int, str, str]:
        rig.launchctl.loaded = False
        return 3, "", "Boot-out failed: 3: No such process\n"

    rig.launchctl.do_bootout = too_late  # type: ignore[method-assign]  # for this agent alone


def broken(rig: Rig) -> None:
    """launchd will not have this list."""
    rig.launchctl.answers["bootstrap"] = [(5, EIO)] * 1000


def away_112(rig: Rig) -> None:
    rig.launchctl.session, rig.launchctl.no_session = False, NO_SESSION[0]


def away_125(rig: Rig) -> None:
    rig.launchctl.session, rig.launchctl.no_session = False, NO_SESSION[1]


# What launchctl may answer, and what then becomes of the agent when it is wanted.
ANSWERS = {
    "113: not loaded": (new, "loaded"),
    "5: loaded already": (foreign, "loaded"),
    "5: switched off": (off, "loaded"),
    "5, 37: too early": (early, "loaded"),
    "36, 5: draining": (draining, "loaded"),
    "3: ended by itself": (vanished, "loaded"),
    "5: for good": (broken, "failed"),
    "112: no session": (away_112, "waits"),
    "125: no session": (away_125, "waits"),
}


@pytest.mark.parametrize("form", ["macOS 13", "macOS 12"])
@pytest.mark.parametrize("mode", ["normal", "check", "absent", "check absent"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_of_launchctl_has_its_outcome_in_every_mode(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, answer: str, mode: str, form: str
) -> None:
    arrange, outcome = ANSWERS[answer]
    rig.launchctl.not_loaded = NOT_LOADED[form == "macOS 12"]
    monkeypatch.setitem(DISABLED, "macOS 13", DISABLED[form])
    monkeypatch.setitem(ENABLED, "macOS 13", ENABLED[form])
    arrange(rig)
    before = rig.state()

    result = rig.run("absent" if "absent" in mode else "present", check="check" in mode)

    if "check" in mode:
        assert result["changed"] is ("absent" in mode or outcome != "waits")
        assert (rig.state(), rig.launchctl.calls) == (before, [])
    elif mode == "absent":
        assert result["changed"] is True
        assert not (rig.launchctl.loaded or rig.plist.exists() or rig.record.exists())
        assert rig.launchctl.disabled_text not in DISABLED.values()
        assert rig.run("absent")["changed"] is False
    elif outcome == "failed":
        assert "Check the file" in str(result["msg"])
    else:
        assert (result["loaded"], result["changed"]) == (outcome == "loaded",) * 2
        assert rig.run()["changed"] is False


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("arrange", [new, changed, off])
def test_check_mode_says_what_would_change_and_changes_nothing(
    rig: Rig, arrange: Callable[[Rig], None], state: str
) -> None:
    arrange(rig)
    before = rig.state()
    result = rig.run(state, check=True)
    assert result["changed"] is True
    assert result["diff"]["before"] != result["diff"]["after"]  # type: ignore[index]  # it is there when changed
    assert rig.launchctl.calls == []
    assert rig.state() == before


def test_check_mode_on_a_converged_host_reports_no_change(rig: Rig) -> None:
    assert rig.loaded().run(check=True)["changed"] is False


def test_check_mode_before_the_list_is_written_reports_a_change(rig: Rig) -> None:
    rig.plist.unlink()
    assert rig.run(check=True)["changed"] is True
    assert "nothing to load" in str(rig.run()["msg"])


def test_absent_unloads_and_leaves_nothing(rig: Rig) -> None:
    rig.loaded()
    rig.launchctl.drains = 5
    result = rig.run("absent")
    assert (result["changed"], result["loaded"]) == (True, False)
    assert rig.launchctl.calls == ["bootout"]
    assert not rig.plist.exists() and not rig.record.exists()
    assert rig.run("absent")["changed"] is False


def test_absent_leaves_no_mark_that_blocks_the_next_install(rig: Rig) -> None:
    off(rig)
    rig.run("absent")
    assert rig.launchctl.calls == ["bootout", "enable"]


def test_absent_on_a_host_that_never_had_it_is_nothing(rig: Rig) -> None:
    rig.plist.unlink()
    assert rig.run("absent")["changed"] is False
    rig.launchctl.session = False
    assert rig.run("absent")["changed"] is False
    assert rig.launchctl.calls == []


@pytest.mark.parametrize(
    "answer",
    [(3, "Boot-out failed: 3: No such process\n"), (113, NOT_LOADED[0]), (36, "Boot-out failed: 36\n")],
)
def test_a_bootout_that_comes_too_late_is_a_success(rig: Rig, answer: tuple[int, str]) -> None:
    rig.loaded()
    rig.launchctl.answers["bootout"] = [answer]
    rig.launchctl.answers["print"] = [(0, FRESH), (113, NOT_LOADED[0]), (0, "gui/501 = {\n}\n")]
    assert rig.run("absent")["changed"] is True


def test_a_bootout_that_is_refused_is_passed_on(rig: Rig) -> None:
    rig.loaded()
    rig.launchctl.answers["bootout"] = [(1, "Boot-out failed: 1: Operation not permitted\n")]
    assert "Operation not permitted" in str(rig.run("absent")["msg"])
    assert rig.plist.exists()


@pytest.mark.parametrize(
    "content", [b"no list at all", plistlib.dumps({"Label": "other"}), plistlib.dumps([1])]
)
def test_a_file_that_is_not_this_agents_list_is_refused(rig: Rig, content: bytes) -> None:
    rig.plist.write_bytes(content)
    assert str(rig.plist) in str(rig.run()["msg"])
    assert rig.launchctl.calls == []
