"""What a person may answer, and what the tailnet proposes."""

from __future__ import annotations

import getpass

import pytest
import yaml
from inventories.setup.__main__ import distinct
from inventories.setup.machines import AnswerError, Machine, Peer, propose, read_answer, read_status
from inventories.setup.writing import hosts_yml

ME = getpass.getuser()
PEERS = [
    Peer("macbook.tail1.ts.net", "macOS", ("100.64.0.1",), is_this=True),
    Peer("mac-mini.tail1.ts.net", "macOS", ("100.64.0.2",)),
    Peer("nas.tail1.ts.net", "linux", ("100.64.0.3",)),
    Peer("raspberrypi.tail1.ts.net", "linux", ("100.64.0.4", "fd7a::4")),
]


def read(answer: str) -> Machine:
    return read_answer(answer, user="me", name="laptop", peers=PEERS)


@pytest.mark.parametrize(
    ("answer", "machine"),
    [
        ("anna@mac-mini.tail1.ts.net", Machine("mac-mini", "mac-mini.tail1.ts.net", "anna")),
        ("anna@mac-mini.tail1.ts.net.", Machine("mac-mini", "mac-mini.tail1.ts.net", "anna")),
        ("raspberrypi", Machine("raspberrypi", "raspberrypi", "me")),
        ("pi@100.64.0.4", Machine("raspberrypi", "100.64.0.4", "pi")),
        ("pi@fd7a::4", Machine("raspberrypi", "fd7a::4", "pi")),
        ("pi@192.0.2.7", Machine("laptop", "192.0.2.7", "pi")),
        (f"{ME}@localhost", Machine("macbook", "macbook.tail1.ts.net", ME, is_this=True)),
        (f"{ME}@100.64.0.1", Machine("macbook", "100.64.0.1", ME, is_this=True)),
        ("somebody@localhost", Machine("macbook", "macbook.tail1.ts.net", "somebody")),
    ],
)
def test_an_answer_names_a_machine(answer: str, machine: Machine) -> None:
    assert read(answer) == machine


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "@",
        "anna@",
        "-oProxyCommand=x",
        "anna@-x",
        "a b@c",
        "$(x)@pi",
        'pi@"x"',
        "pi@x/y",
        "pi@h:22",
        "pi@ä",
        "x" * 300,
        "pi@a..b",
    ],
)
def test_an_answer_that_could_mean_something_else_to_ssh_or_yaml_is_refused(answer: str) -> None:
    with pytest.raises(AnswerError):
        read(answer)


def test_without_a_tailnet_localhost_is_refused() -> None:
    with pytest.raises(AnswerError, match="name on the tailnet"):
        read_answer("localhost", user="me", name="laptop", peers=[])


def test_the_tailnet_is_read_from_what_tailscale_says() -> None:
    status = {
        "BackendState": "Running",
        "Self": {"DNSName": "macbook.tail1.ts.net.", "OS": "macOS", "TailscaleIPs": ["100.64.0.1"]},
        "Peer": {
            "a": {"DNSName": "mac-mini.tail1.ts.net.", "OS": "macOS", "TailscaleIPs": ["100.64.0.2"]},
            "b": {"DNSName": "$(reboot)", "OS": "linux"},
            "c": None,
            "d": {"OS": "linux", "TailscaleIPs": "none"},
        },
    }
    assert read_status(status) == PEERS[:2]


@pytest.mark.parametrize(
    "status", [None, [], "x", {}, {"BackendState": "Stopped", "Self": {"DNSName": "a.b."}}]
)
def test_a_tailnet_that_is_not_running_proposes_nothing(status: object) -> None:
    assert read_status(status) == []
    assert propose([]) == ("", "", "")


def test_a_book_is_the_laptop_and_a_pi_is_the_agent() -> None:
    assert propose(PEERS[::-1]) == (
        "macbook.tail1.ts.net",
        "mac-mini.tail1.ts.net",
        "raspberrypi.tail1.ts.net",
    )


def test_the_inventory_says_what_was_answered_and_which_machine_this_is() -> None:
    machines = {"laptops": [read(f"{ME}@localhost")], "model_servers": [], "agents": [read("pi@100.64.0.4")]}
    assert yaml.safe_load(hosts_yml(machines))["all"]["children"] == {
        "laptops": {
            "hosts": {
                "macbook": {
                    "ansible_host": "macbook.tail1.ts.net",
                    "ansible_user": ME,
                    "ansible_connection": "local",
                }
            }
        },
        "model_servers": {"hosts": {}},
        "agents": {"hosts": {"raspberrypi": {"ansible_host": "100.64.0.4", "ansible_user": "pi"}}},
    }


def test_each_machine_has_one_name_of_its_own_in_all_groups() -> None:
    mac, other, third = (Machine("mac", host, "anna") for host in ("mac.a.net", "mac.b.net", "mac.c.net"))
    taken = Machine("mac-2", "mac-2", "anna")
    named = distinct({"laptops": [mac, taken, other, mac], "model_servers": [mac], "agents": [third]})
    assert {group: [machine.name for machine in members] for group, members in named.items()} == {
        "laptops": ["mac", "mac-2", "mac-3"],
        "model_servers": ["mac"],
        "agents": ["mac-4"],
    }
    assert [machine.host for machine in named["laptops"]] == ["mac.a.net", "mac-2", "mac.b.net"]
