"""A folder that leads nowhere known is told, and never quietly means everything."""

from __future__ import annotations

import pytest

from hermes_digup.service.folders import folder_fault


@pytest.mark.parametrize("folder", ["..", "../..", "../../", "~/..", "~/../..", "a/../..", "./..", " ../x "])
def test_a_folder_outside_the_home_that_is_no_full_path_is_not_clear(folder: str) -> None:
    assert folder_fault(folder).startswith(f"folder: {folder.strip()!r} leads out of the home folder. Give a")


@pytest.mark.parametrize(
    "folder", ["", "  ", "/", "/..", "/Volumes/../Users", "~", "~/a/..", "a/b/../c", "."]
)
def test_any_other_folder_is_clear(folder: str) -> None:
    assert folder_fault(folder) == ""
