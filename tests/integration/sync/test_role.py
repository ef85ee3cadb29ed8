"""The role from a bare laptop to a bare one: its key, a real sshd, the real script, a launchctl double."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sync.rig import ROOT, Laptop, Pi
from tests.integration.sync.sshd import SSHD, free_port, new_host_key, sshd

PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
pytestmark = [
    pytest.mark.skipif(not PLAYBOOK.exists(), reason="ansible-core is not installed here"),
    pytest.mark.skipif(SSHD is None, reason="sshd is missing: apt-get install openssh-server"),
    pytest.mark.timeout(900),
]

PLAY = """
- hosts: macbook
  gather_facts: true
  tasks:
    - ansible.builtin.import_role: {name: digup_sync, tasks_from: "{{ entry | default('main') }}"}
    - ansible.builtin.debug: {var: digup_sync_out_rows}
      when: digup_sync_out_rows is defined
"""
# Keeps "loaded" as a file; loading starts the agent's program at once, as RunAtLoad does.
LAUNCHCTL = """#!/bin/sh
loaded={folder}/loaded
echo "$1" >>{folder}/launchctl.calls
case $1 in
  print) case $2 in */*/*) [ -f $loaded ] || {{ echo "Could not find service" >&2; exit 113; }}
         printf 'x = {{\\n\\tstate = not running\\n\\truns = 1\\n\\tlast exit code = 0\\n}}\\n' ;; esac ;;
  kickstart) HOME='{home}' /bin/bash '{script}' >/dev/null 2>&1 & ;;
  bootstrap) touch $loaded; HOME='{home}' /bin/bash '{script}' >/dev/null 2>&1 & ;;
  bootout) rm -f $loaded ;;
esac
"""


class Site:
    """An inventory of a laptop and a Pi on this machine, with an sshd between them."""

    def __init__(self, folder: Path, laptop: Laptop, pi: Pi) -> None:
        self.folder, self.laptop, self.pi, self.port = folder, laptop, pi, free_port()
        self.keys = pi.home / ".ssh" / "authorized_keys"
        shutil.rmtree(laptop.config)
        new_host_key(folder)
        launchctl = folder / "launchctl"
        script = laptop.base / "digup-sync.sh"
        launchctl.write_text(LAUNCHCTL.format(folder=folder, home=laptop.home, script=script))
        launchctl.chmod(0o755)
        shared = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self.variables = {
            **shared,
            "project_root": str(ROOT),
            "digup_sync_home": str(laptop.home),
            "digup_sync_agents": ["raspberrypi"],
            "digup_sync_agent_port": self.port,
            "digup_sync_agent_user": getpass.getuser(),
            "digup_sync_agent_host": "127.0.0.1",
            "digup_sync_host_key_file": str(folder / "host_key.pub"),
            "digup_sync_scheduler": "launchd",
            "digup_sync_launchctl": str(launchctl),
            "digup_sync_plutil": "/bin/true",
        }
        hosts = {"macbook": self.variables, "raspberrypi": {**shared, "hermes_digup_home": str(pi.home)}}
        self.inventory, self.play = folder / "hosts.json", folder / "play.yml"
        self.inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        self.play.write_text(PLAY)

    def run(self, *options: str, **variables: object) -> tuple[int, int, str]:
        """One run of the play; returns its exit code, the number of changes and all it printed."""
        done = subprocess.run(
            [str(PLAYBOOK), "-i", str(self.inventory), str(self.play), "-e", json.dumps(variables), *options],
            cwd=ROOT,
            env={
                **os.environ,
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_LOCALHOST_WARNING": "0",
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        counted = re.search(r"macbook\s+: ok=\d+\s+changed=(\d+)", done.stdout)
        return done.returncode, int(counted.group(1)) if counted else -1, done.stdout + done.stderr

    def files(self) -> set[str]:
        roots = (self.laptop.home, self.pi.home)
        return {str(path) for root in roots for path in root.rglob("*") if "/sources/" not in str(path)}


@pytest.fixture
def site(tmp_path: Path, laptop: Laptop, pi: Pi) -> Iterator[Site]:
    laptop.fill("from the role")
    site = Site(tmp_path, laptop, pi)
    with sshd(tmp_path, site.keys, site.port):
        yield site


def test_from_a_bare_laptop_to_a_bare_laptop_again(site: Site) -> None:
    bare = site.files()
    code, changed, text = site.run(digup_sync_state="absent")
    assert (code, changed) == (0, 0), text
    code, changed, text = site.run("--check", "--diff")
    assert code == 0 and changed > 0, text
    assert site.files() == bare

    code, _, text = site.run()
    assert code == 0, text
    assert site.pi.mark == "from the role"
    line = site.keys.read_text().strip()
    assert line.startswith(f'restrict,command="{site.pi.receive} macbook" ssh-ed25519 ')
    assert (site.laptop.config / "sync_key").stat().st_mode & 0o777 == 0o600
    for options in ((), ("--check",)):
        code, changed, text = site.run(*options)
        assert (code, changed) == (0, 0), text
    code, changed, text = site.run(entry="verify")
    assert (code, changed) == (0, 0), text
    assert re.findall(r"level: (\w+)", text) == ["OK", "OK", "OK"], text

    code, changed, text = site.run(digup_sync_state="absent")
    assert code == 0 and changed > 0, text
    assert "macbook" not in site.keys.read_text()
    assert not (site.folder / "loaded").exists()
    kept = {"authorized_keys", ".ssh", "LaunchAgents", "Logs", "hermes-digup-sync.log"}
    assert {Path(path).name for path in site.files() - bare} <= kept | {".config"}
    assert not (site.pi.source / "current").exists()
    code, changed, text = site.run(digup_sync_state="absent")
    assert (code, changed) == (0, 0), text


def test_a_sync_that_is_asked_for_is_started_by_launchd_and_waited_for(site: Site) -> None:
    code, _, text = site.run()
    assert code == 0, text
    site.laptop.fill("sent when asked for")
    code, changed, text = site.run(entry="now")
    assert (code, changed) == (0, 1), text
    assert "kickstart" in (site.folder / "launchctl.calls").read_text().split()
    assert site.pi.mark == "sent when asked for"
    site.keys.write_text("")
    code, _, text = site.run(entry="now")
    assert code != 0
    assert "The sync of macbook ended with exit code 77" in text, text


def test_another_host_key_or_a_removed_line_ends_with_77(site: Site) -> None:
    code, _, text = site.run(digup_sync_scheduler="none", digup_sync_run_now=True)
    assert code == 0, text
    command = ["/bin/bash", str(site.laptop.base / "digup-sync.sh")]
    environment = {"HOME": str(site.laptop.home)}
    kept = site.keys.read_text()
    site.keys.write_text("")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "refuses this laptop's sync key" in done.stderr) == (77, True), done.stderr
    site.keys.write_text(kept)
    known = site.laptop.config / "known_hosts"
    new_host_key(site.laptop.home)
    known.write_text("raspberrypi " + (site.laptop.home / "host_key.pub").read_text())
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "another host key" in done.stderr) == (77, True), done.stderr


def test_without_an_index_everything_is_installed_and_it_says_so(site: Site) -> None:
    shutil.rmtree(site.laptop.folder)
    code, _, text = site.run()
    assert code == 0, text
    assert "Waiting for DigUp" in text
    assert (site.laptop.base / "digup-sync.sh").exists() and (site.folder / "loaded").exists()


def test_a_pi_whose_key_opens_a_shell_is_found_out(site: Site) -> None:
    """As Tailscale SSH would: what stands in authorized_keys has no say."""
    assert site.run(digup_sync_scheduler="none")[0] == 0
    shell = site.folder / "open-ssh"
    shell.write_text('#!/bin/sh\nshift 3\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    tailscale = site.folder / "tailscale"
    tailscale.write_text("#!/bin/sh\n[ \"$*\" != 'debug prefs' ] || echo '{ \"RunSSH\": true }'\n")
    tailscale.chmod(0o755)
    code, _, text = site.run(digup_sync_scheduler="none", digup_sync_ssh=str(shell))
    assert code != 0 and "on raspberrypi: something answers before" in text, text
    assert "Tailscale SSH is on there: switch it off (tailscale set --ssh=false)" in text, text
    shell.write_text(
        "#!/bin/sh\necho '# Tailscale SSH requires an additional check. # visit: https://x/a/1'\nsleep 600\n"
    )
    quick = ["/usr/bin/perl", "-e", "alarm 3; exec @ARGV", str(shell)]
    code, _, text = site.run(digup_sync_scheduler="none", __digup_sync_login_words=quick)
    assert code != 0 and "cannot deliver to raspberrypi (127.0.0.1): # Tailscale SSH requires" in " ".join(
        text.split()
    )


def test_a_long_first_sync_shows_what_has_arrived_and_is_then_left_to_the_agent(site: Site) -> None:
    rsync = site.laptop.program("slow", '#!/bin/sh\nsleep 600\nexec /usr/bin/rsync "$@"\n')
    (site.pi.landing / ".index.sqlite.a1B2c3").write_bytes(bytes(2048))
    code, _, text = site.run(
        digup_sync_rsync=rsync,
        digup_sync_wait_seconds=2,
        __digup_sync_turn_seconds=1,
        digup_sync_agents=["raspberrypi", "attic"],
    )
    assert code == 0, text
    assert text.count("2.00 KB of about ") == 2, text
    assert "KB have arrived at raspberrypi." in text
    assert "macbook: the first sync is still copying; it goes on by itself." in text
    assert "For another one of raspberrypi, attic set digup_sync_agent" in " ".join(text.split())
    os.kill(int((site.laptop.base / "lock").read_text().split()[0]), signal.SIGTERM)
