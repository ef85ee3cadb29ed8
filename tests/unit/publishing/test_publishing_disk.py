"""Files that arrived are opened as a stranger's; files of ours appear whole."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from hermes_digup.errors import RefusedCopyError
from hermes_digup.publishing.disk import opened_file, remove, sha256_of, small_file, write_durably


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)

    assert small_file(tmp_path / "file", 100) == b"x" * 100
    with pytest.raises(RefusedCopyError, match="larger than 99 bytes"):
        small_file(tmp_path / "file", 99)


def test_a_missing_file_is_no_fault_of_its_content(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        small_file(tmp_path / "file", 10)


def a_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"secret")
    path.symlink_to("target")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("place", [a_link, os.mkfifo, Path.mkdir, a_socket])
def test_nothing_but_a_regular_file_is_opened_and_nothing_waits(place, tmp_path: Path) -> None:
    place(tmp_path / "file")

    with pytest.raises(RefusedCopyError, match="regular file"), opened_file(tmp_path / "file"):
        pass


def test_a_digest_covers_the_whole_file_from_its_start(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(data)

    with opened_file(tmp_path / "file") as descriptor:
        os.read(descriptor, 10)
        assert sha256_of(descriptor) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_written_file_is_private_and_leaves_no_work_file(tmp_path: Path) -> None:
    write_durably(tmp_path / "file", b"old")
    write_durably(tmp_path / "file", b"new")

    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_removing_takes_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "link").symlink_to("folder")

    remove(tmp_path / "link")
    remove(tmp_path / "link")

    assert (tmp_path / "folder" / "file").exists()
    remove(tmp_path / "folder")
    assert not list(tmp_path.iterdir())
