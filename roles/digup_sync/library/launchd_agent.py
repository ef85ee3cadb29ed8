#!/usr/bin/python
"""Loads or removes one launch agent of the login user: what starts a sync on the laptop every few minutes.

launchctl calls its own output no API. So only anchored lines are read, what is missing counts as unknown, and
launchd is never asked which definition it has: the digest of the list we last loaded is kept in a record.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: launchd_agent
short_description: Loads or removes a launch agent of the login user
description:
  - Makes launchd run the agent that a property list describes, or stops it and removes the list.
  - The label is the file's name without C(.plist).
  - Without a session at the screen there is nothing to load it into.
  - It then starts at the next login, and a warning says so.
options:
  plist:
    description: The property list in C(~/Library/LaunchAgents); O(state=present) needs it there already.
    type: path
    required: true
  record:
    description: File that keeps the digest of the list that was last loaded.
    type: path
    required: true
  state:
    description: V(present) loads it, again when it has changed; V(absent) unloads it and removes both files.
    type: str
    choices: [present, absent]
    default: present
  launchctl:
    description: The launchctl program.
    type: path
    default: /bin/launchctl
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: hermes-digup
"""

EXAMPLES = r"""
- name: Load the agent
  launchd_agent:
    plist: /Users/ana/Library/LaunchAgents/com.example.job.plist
    record: /Users/ana/Library/Application Support/example/agent.loaded
"""

RETURN = r"""
label: {description: The agent's label., type: str, returned: always}
session: {description: Whether the user is logged in at the screen., type: bool, returned: always}
loaded: {description: Whether launchd has it., type: bool, returned: always}
loaded_anew: {description: Whether launchd got this list in this run., type: bool, returned: always}
disabled: {description: Whether it was switched off (Login Items)., type: bool, returned: always}
running: {description: Whether it runs now; null when unknown., type: bool, returned: always}
runs: {description: Starts since it was loaded; null when unknown., type: int, returned: always}
last_exit_code: {description: Of the former run; null when unknown or never run., type: int, returned: always}
"""

import hashlib
import os
import plistlib
import re
import time
from pathlib import Path
from typing import NamedTuple, Optional

from ansible.module_utils.basic import AnsibleModule

GONE_S = 30  # launchd may drain a job this long after bootout
RETRY_S = 15  # bootstrap answers 5 or 37 while it still drains
POLL_S = 0.5
NOT_LOADED = 113
NO_SESSION = (112, 125)


class Service(NamedTuple):
    """What `launchctl print` tells of an agent; None is unknown."""

    session: bool
    loaded: bool
    running: Optional[bool] = None
    runs: Optional[int] = None
    last_exit_code: Optional[int] = None


class LaunchctlError(Exception):
    """One sentence for a person: what launchctl would not do, and what to try next."""


def parse_service(text: str) -> Service:
    """Reads the first-level lines (one leading tab) of a loaded service; nested blocks repeat names."""

    def field(name: str) -> Optional[str]:
        found = re.search(rf"^\t{name} = (.*)$", text, re.MULTILINE)
        return found.group(1).strip() if found else None

    def number(value: Optional[str]) -> Optional[int]:
        found = re.match(r"-?\d+", value or "")
        return int(found.group()) if found else None

    state = field("state")
    return Service(
        session=True,
        loaded=True,
        running=None if state is None else state == "running",
        runs=number(field("runs")),
        last_exit_code=number(field("last exit code")),
    )


def parse_disabled(text: str, label: str) -> bool:
    """Whether `launchctl print-disabled` lists the label as off: `disabled` since macOS 13, `true` before."""
    found = re.search(rf'^\s*"{re.escape(label)}" => (\w+)', text, re.MULTILINE)
    return bool(found) and found.group(1) in ("disabled", "true")


class Launchd:
    """The few verbs of launchctl that we use, for one agent of this user."""

    def __init__(self, module: AnsibleModule, label: str) -> None:
        self._module, self._label = module, label
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{label}"

    def service(self) -> Service:
        code, out, err = self._run("print", self._target)
        if code == 0:
            return parse_service(out)
        if _no_session(code, out + err):
            return Service(session=False, loaded=False)
        if code == NOT_LOADED or "Could not find service" in out + err:
            # Some systems answer so without a session too; only the domain itself tells.
            domain_code, domain_out, domain_err = self._run("print", self._domain)
            away = _no_session(domain_code, domain_out + domain_err)
            return Service(session=not away, loaded=False)
        raise LaunchctlError(f"launchctl print {self._target} ended with {code}: {_last(out, err)}.")

    def disabled(self) -> bool:
        _code, out, _err = self._run("print-disabled", self._domain)
        return parse_disabled(out, self._label)

    def enable(self) -> None:
        self._run("enable", self._target)

    def bootout(self) -> None:
        """Unloads, and waits until it is gone: a bootstrap before that fails with 5."""
        code, out, err = self._run("bootout", self._target)
        if code not in (0, 3, 36, 37, NOT_LOADED) and not _no_session(code, out + err):
            raise LaunchctlError(f"launchctl bootout {self._target} ended with {code}: {_last(out, err)}.")
        give_up = time.monotonic() + GONE_S
        while self.service().loaded:
            if time.monotonic() >= give_up:
                raise LaunchctlError(
                    f"launchd still has {self._label} {GONE_S} s after bootout. "
                    "Log out and in again, then run the playbook again."
                )
            time.sleep(POLL_S)

    def bootstrap(self, plist: str) -> Service:
        """Loads the list, and asks launchd whether it has it."""
        give_up = time.monotonic() + RETRY_S
        while True:
            code, out, err = self._run("bootstrap", self._domain, plist)
            service = self.service()
            if service.loaded or not service.session or _no_session(code, out + err):
                return service
            if code not in (0, 5, 37) or time.monotonic() >= give_up:
                raise LaunchctlError(
                    f"launchctl bootstrap {self._domain} {plist} ended with {code}: {_last(out, err)}. "
                    "Check the file (plutil -lint), its owner and mode (0644), "
                    "and System Settings > General > Login Items."
                )
            time.sleep(POLL_S)

    def _run(self, *words: str) -> tuple[int, str, str]:
        code, out, err = self._module.run_command([self._module.params["launchctl"], *words])
        return code, out, err


def _no_session(code: int, text: str) -> bool:
    return (
        code in NO_SESSION
        or "Could not find domain" in text
        or "Domain does not support specified action" in text
    )


def _last(out: str, err: str) -> str:
    said = (line.strip() for line in (err or out).splitlines())
    lines = [line for line in said if line and not line.startswith("Try re-running")]
    return lines[-1].rstrip(".") if lines else "no reason given"


def read_digest(plist: Path, label: str) -> Optional[str]:
    """The digest of a sound list; None when there is no file.

    Raises: LaunchctlError when it is no property list or names another label.
    """
    try:
        data = plist.read_bytes()
    except FileNotFoundError:
        return None
    try:
        content = plistlib.loads(data)
    except Exception as error:  # plistlib raises whatever its parser does
        raise LaunchctlError(f"{plist} is not a property list ({error}).") from error
    if not isinstance(content, dict) or content.get("Label") != label:
        raise LaunchctlError(f"{plist} must hold the label {label}, as its file name says.")
    return hashlib.sha256(data).hexdigest()


def read_record(record: Path) -> Optional[str]:
    try:
        return record.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None


def write_record(record: Path, digest: str) -> None:
    fresh = record.with_name(record.name + ".new")
    fresh.write_text(digest + "\n", encoding="ascii")
    fresh.replace(record)


def ensure_present(module: AnsibleModule, launchd: Launchd, plist: Path, record: Path, label: str) -> dict:
    """Loads the agent unless launchd has this very list already."""
    digest, loaded_digest = read_digest(plist, label), read_record(record)
    if digest is None and not module.check_mode:
        raise LaunchctlError(f"{plist} is missing, so there is nothing to load.")
    service = launchd.service()
    if not service.session:
        module.warn(f"Nobody is logged in at the screen: {label} is installed and starts at the next login.")
        return _result(False, service, False, None, None)
    disabled = launchd.disabled()
    current = service.loaded and digest is not None and digest == loaded_digest
    before = {"loaded": service.loaded, "disabled": disabled, "list": loaded_digest}
    after = {"loaded": True, "disabled": False, "list": digest}
    changed = disabled or not current
    if not changed or module.check_mode:
        return _result(changed, service, disabled, before, after)
    if service.loaded and not current:
        launchd.bootout()
    if disabled:
        module.warn(f"{label} was switched off (System Settings > General > Login Items); it is on again.")
    launchd.enable()
    if not current:
        service = launchd.bootstrap(str(plist))
        if not service.session:
            module.warn(f"The session at the screen ended meanwhile: {label} starts at the next login.")
            return _result(True, service, False, before, before)
        write_record(record, str(digest))
    return _result(True, service, False, before, after)


def ensure_absent(module: AnsibleModule, launchd: Launchd, plist: Path, record: Path) -> dict:
    """Unloads it, removes list and record. Leaves no switched-off mark, which blocks a next install."""
    service = launchd.service()
    disabled = service.session and launchd.disabled()
    files = [path for path in (plist, record) if path.exists()]
    changed = bool(service.loaded or disabled or files)
    before = {"loaded": service.loaded, "disabled": disabled, "files": [str(path) for path in files]}
    after = {"loaded": False, "disabled": False, "files": []}
    if changed and not module.check_mode:
        if service.loaded:
            launchd.bootout()
        if disabled:
            launchd.enable()
        for path in files:
            path.unlink()
        service, disabled = Service(session=service.session, loaded=False), False
    return _result(changed, service, disabled, before, after)


def _result(
    changed: bool, service: Service, disabled: bool, before: Optional[dict], after: Optional[dict]
) -> dict:
    result = {"changed": changed, "disabled": disabled, "loaded_anew": False, **service._asdict()}
    if changed and before and after:
        result["diff"] = {"before": before, "after": after}
        result["loaded_anew"] = after["loaded"] and not (before["loaded"] and before["list"] == after["list"])
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plist": {"type": "path", "required": True},
            "record": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "launchctl": {"type": "path", "default": "/bin/launchctl"},
        },
        supports_check_mode=True,
    )
    module.run_command_environ_update = {"LANG": "C", "LC_ALL": "C"}
    plist, record = Path(module.params["plist"]), Path(module.params["record"])
    label = plist.name[: -len(".plist")]
    if not plist.name.endswith(".plist") or not label:
        module.fail_json(msg=f"{plist} must end in .plist; its name is the label.")
    launchd = Launchd(module, label)
    try:
        if module.params["state"] == "present":
            result = ensure_present(module, launchd, plist, record, label)
        else:
            result = ensure_absent(module, launchd, plist, record)
    except LaunchctlError as error:
        module.fail_json(msg=str(error), label=label)
    module.exit_json(label=label, **result)


if __name__ == "__main__":
    main()
