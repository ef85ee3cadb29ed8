"""Asks for the machines, tries each login, writes the inventory, and says what comes next."""

from __future__ import annotations

import getpass
import sys
import textwrap
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from inventories.setup.logins import Facts, LoginError, look, missing, wants_sudo_password
from inventories.setup.machines import AnswerError, Machine, Peer, propose, read_answer, tailnet
from inventories.setup.writing import write_inventory

INVENTORIES = Path("inventories")
GREETING = """\
Answer as user@host: the login there, and the machine's name on your tailnet or
its 100.x address. Several laptops: with blanks between them.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what the answer may leave out."""

    text: str
    host: str  # proposed; empty for none
    user: str
    name: str  # in the inventory, when the answer is a bare address
    least: int = 1
    most: int = 1


def main() -> int:
    if (INVENTORIES / "home").exists():
        print("Your inventory is inventories/home/hosts.yml already, and it is left as it is.")
        print("To start over, move that folder away. To go on:")
        say_what_next(set())
        return 0
    try:
        machines = ask_for_machines()
        facts = look_at_all(machines)
    except (EOFError, KeyboardInterrupt):
        print("\nStopped. Nothing was written.")
        return 1
    written = write_inventory(INVENTORIES, machines)
    print(f"\nWritten: {written}")
    say_what_next({name for name, found in facts.items() if wants_sudo_password(found)})
    return 0


def ask_for_machines() -> dict[str, list[Machine]]:
    """What stands in each group of the inventory."""
    peers = tailnet()
    if peers:
        print("On your tailnet:")
        for peer in peers:
            print(f"  {peer.name}  {peer.system}{'  (this machine)' if peer.is_this else ''}")
        print()
    print(GREETING)
    laptop, server, agent = propose(peers)
    me = getpass.getuser()
    questions = {
        "laptops": Question("Laptop, the Mac with the DigUp app", laptop, me, "laptop", most=9),
        "model_servers": Question(
            "Always-on Mac with oMLX (- for none)", server, me, "model-server", least=0
        ),
        "agents": Question("Where Hermes Agent lives, mostly a Raspberry Pi", agent, "pi", "agent"),
    }
    return distinct({group: ask(question, peers) for group, question in questions.items()})


def ask(question: Question, peers: list[Peer]) -> list[Machine]:
    """Asks until the answer can be read."""
    proposal = f"{question.user}@{question.host}" if question.host else ""
    while True:
        print(f"{question.text}:")
        answer = input(f"  [{proposal}] " if proposal else "  ").strip() or proposal
        words = [] if answer == "-" else answer.split()
        if not (words or answer == "-") or not question.least <= len(words) <= question.most:
            print("  Please name one machine.")
            continue
        try:
            return [read_answer(word, user=question.user, name=question.name, peers=peers) for word in words]
        except AnswerError as error:
            print(textwrap.fill(str(error), 78, initial_indent="  ", subsequent_indent="  "))


def distinct(machines: dict[str, list[Machine]]) -> dict[str, list[Machine]]:
    """Each machine under one name in all its groups, and no other machine under that name."""
    names: dict[Machine, str] = {}
    for machine in (machine for group in machines.values() for machine in group):
        tries = chain([machine.name], (f"{machine.name}-{number}" for number in count(2)))
        names.setdefault(machine, next(name for name in tries if name not in names.values()))
    return {
        group: [replace(machine, name=names[machine]) for machine in dict.fromkeys(members)]
        for group, members in machines.items()
    }


def look_at_all(machines: dict[str, list[Machine]]) -> dict[str, Facts]:
    """What is on each machine that lets us in; what a person has to do there is said."""
    print("\nLooking at each machine. Nothing is changed there.\n")
    found = {}
    for machine in dict.fromkeys(machine for group in machines.values() for machine in group):
        facts = look_until_in(machine)
        if facts is None:
            continue
        found[machine.name] = facts
        say(machine, "ok", f"lets {machine.user} in")
        for sentence in missing(facts, {group for group, members in machines.items() if machine in members}):
            say(machine, "to do", sentence)
    return found


def look_until_in(machine: Machine) -> Facts | None:
    """Lets a person mend what keeps us out, and looks again; None when they go on without this machine."""
    while True:
        try:
            return look(machine)
        except LoginError as error:
            say(machine, "to do", str(error))
        try:
            if input("    Enter: look again. s: go on without it. ").strip().lower() == "s":
                return None
        except EOFError:
            print()
            return None


def say(machine: Machine, state: str, text: str) -> None:
    sentence, *commands = text.split("\n")
    head = f"{machine.name}  {state}  {sentence}"
    print(textwrap.fill(head, 78, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False))
    for command in commands:
        print(f"    {command}")


def say_what_next(sudo_at: set[str]) -> None:
    print("\nNext, in this folder:\n  . .venv/bin/activate")
    print(f"  ansible-playbook site.yml{' --ask-become-pass' if sudo_at else ''}")
    for name in sorted(sudo_at):
        print(f"It asks for the sudo password of {name}, where a package is missing.")


if __name__ == "__main__":
    sys.exit(main())
