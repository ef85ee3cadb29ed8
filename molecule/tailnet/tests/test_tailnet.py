"""A site set up from nothing: from the first question, over all that can happen to it, to its end."""

from __future__ import annotations

import json

import between_machines as faults
import pytest
from net import Net
from tests.faults import Fault, names, suffer
from tests.soak import SOAK

LEASE = "Lease agreement Harbour Street 14.pdf"
# In a long run each of them alone; else those that cost little time, as many at once as can be told apart.
ROUNDS = (
    [*([fault] for fault in faults.ALL), []]
    if SOAK
    else [[faults.CUT_OFF, faults.SERVER_DOWN], [faults.DISK_FULL, faults.MODEL_SWAPPED], []]
)


@pytest.fixture(scope="session")
def net() -> Net:
    return Net()


def test_hermes_gets_a_file_of_the_laptop_for_a_question(net: Net) -> None:
    answer = net.ask_hermes("the tenant keeps one cat or one small dog")
    told = json.loads(answer)["result"]
    assert LEASE in told and "on macbook" in told and "meaning" in told, answer


def test_a_file_that_digup_has_just_read_is_found_after_one_sync(net: Net) -> None:
    net.write_note("Heron.txt", "The heron lends out umbrellas at the ferry pier.")
    assert net.sync() == 0, net.last_sync()
    assert net.finds("heron umbrellas", "Heron.txt")


def test_a_pi_that_is_rebooted_in_mid_publish_answers_and_gets_the_copy_with_the_next_sync(net: Net) -> None:
    faults.reboot_in_mid_publish(net)
    assert net.sync() == 0, net.last_sync()
    assert net.finds("wombat minutes", "Wombat.txt")


@pytest.mark.parametrize("together", ROUNDS, ids=names)
def test_the_doctor_names_what_is_wrong_and_what_it_says_mends_it(net: Net, together: list[Fault]) -> None:
    suffer(net, together)
    assert net.finds("heron umbrellas", "Heron.txt")
    if faults.DISK_FULL in together:
        assert net.finds("numbat organ", "Numbat.txt")
