"""What goes wrong between three machines, and what a person does about it."""

from __future__ import annotations

import shlex

from net import HOME, KNOWN_HOSTS, SOURCES, Net, call, wait_for
from tests.faults import Fault

SLOW_RSYNC = "/var/tmp/slow-rsync"
SETTINGS = f"{HOME}/.config/hermes-digup/sync.env"
REVOKE = """
import json, urllib.request as web
auth = json.load(open('/home/pi/.omlx/settings.json'))['auth']
opener = web.build_opener(web.HTTPCookieProcessor())
def ask(method, path, **body):
    url, headers = 'http://127.0.0.1:8000/admin/api/' + path, {'Content-Type': 'application/json'}
    opener.open(web.Request(url, json.dumps(body).encode(), headers, method=method)).close()
ask('POST', 'login', api_key=auth['api_key'])
for sub in auth['sub_keys']:
    ask('DELETE', 'sub-keys', key=sub['key'])
"""
# Its pattern does not match itself.
HOLD_PUBLISHING = (
    "until pid=$(pgrep -f 'digup[ ]publish') && kill -STOP $pid; do sleep 0.01; done; touch /var/tmp/held"
)
# A disk of its own for the copies, with room for a little more: not for another index.
SMALL_DISK = """
cp -a {sources} /var/tmp/copies
mount -t tmpfs -o size=$(($(du -sk {sources} | cut -f 1) + 128))k,uid=1000,gid=1000,mode=700 small {sources}
cp -a /var/tmp/copies/. {sources}
"""
LARGE_DISK = """
rm -rf /var/tmp/copies
cp -a {sources} /var/tmp/copies
umount {sources}
rm -rf {sources}/*
cp -a /var/tmp/copies/. {sources}
rm -rf /var/tmp/copies
"""


def cut_off_in_mid_sync(net: Net) -> None:
    net.laptop.run(f"printf '#!/bin/sh\\nexec /usr/bin/rsync --bwlimit=150 \"$@\"\\n' >{SLOW_RSYNC}")
    net.laptop.run(f"chmod 755 {SLOW_RSYNC}; sed -i 's|^DIGUP_RSYNC=.*|DIGUP_RSYNC={SLOW_RSYNC}|' {SETTINGS}")
    net.write_note("Quokka.txt", "The quokka has moved into the lighthouse.")
    net.start_sync()
    wait_for(lambda: net.pi.run(f"ls -A {SOURCES}/macbook/landing | grep '^[.]index.sqlite'", check=False))
    net.laptop.leave_the_network()
    assert net.is_syncing()


def wake_the_laptop(net: Net) -> None:
    net.laptop.run(f"sed -i 's|^DIGUP_RSYNC=.*|DIGUP_RSYNC=\"/usr/bin/rsync\"|' {SETTINGS}")
    net.laptop.come_back()
    # The run that was cut off finishes, or the next one does.
    if net.end_of_sync() == 75:
        net.sync()
    assert net.finds("quokka lighthouse", "Quokka.txt"), net.last_sync()


def stop_omlx(net: Net) -> None:
    net.model_server.run("systemctl stop omlx", user="root")
    answer = net.search("the tenant keeps one cat or one small dog")
    assert "unreachable" in str(answer["warnings"]), answer


def change_the_laptops_host_key(net: Net) -> None:
    net.laptop.new_host_key()


def trust_it_again(net: Net, host: str = "macbook") -> None:
    name = net.laptop.container.removesuffix("macbook") + host
    call("ssh-keygen", "-R", name, "-f", KNOWN_HOSTS)


def revoke_the_key(net: Net) -> None:
    net.model_server.run(f"python3 -c {shlex.quote(REVOKE)}")


def reboot_in_mid_publish(net: Net) -> None:
    net.write_note("Wombat.txt", "A wombat keeps the minutes of the harbour meeting.")
    net.pi.run(f"({HOLD_PUBLISHING}) >/dev/null 2>&1 &")
    net.start_sync()
    wait_for(lambda: "held" in net.pi.run("ls /var/tmp"))
    net.pi.reboot()
    net.pi.run("rm /var/tmp/held")
    assert net.finds("heron umbrellas", "Heron.txt")
    assert net.end_of_sync() == 75, net.last_sync()
    # The containers' names are served anew after a restart.
    wait_for(lambda: net.laptop.run(f"getent hosts {net.pi.container}", check=False))


def fill_the_disk(net: Net) -> None:
    net.pi.run(SMALL_DISK.format(sources=SOURCES), user="root")
    net.write_note("Numbat.txt", "The numbat plays the organ on Sundays.")
    assert net.sync() == 5, net.last_sync()


def make_room(net: Net) -> None:
    net.pi.run(LARGE_DISK.format(sources=SOURCES), user="root")


def swap_the_model(net: Net) -> None:
    net.model_server.run("printf wrong-size >.omlx/double-fault")
    answer = net.search("the tenant keeps one cat or one small dog")
    assert "wrong_model" in str(answer["warnings"]), answer


def swap_it_back(net: Net) -> None:
    net.model_server.run("rm .omlx/double-fault")


def set_the_pi_up_anew(net: Net) -> None:
    net.pi.new_host_key()
    trust_it_again(net, "raspberrypi")
    assert net.sync() == 77, net.last_sync()


CUT_OFF = Fault(
    "laptop cut off in mid-sync",
    cut_off_in_mid_sync,
    {"macbook: host": "WARN"},
    "did not answer at",
    wake_the_laptop,
)
SERVER_DOWN = Fault(
    "model server down",
    stop_omlx,
    {"mac-mini: oMLX": "FAIL", "raspberrypi: model server": "FAIL"},
    "is not running",
)
OTHER_LAPTOP_KEY = Fault(
    "laptop shows another host key",
    change_the_laptops_host_key,
    {"macbook: host": "FAIL"},
    "shows another host key",
    trust_it_again,
)
KEY_REVOKED = Fault(
    "key revoked",
    revoke_the_key,
    {"mac-mini: sub key": "FAIL", "raspberrypi: model server": "FAIL"},
    "hermes-digup: 0",
)
REBOOTED = Fault(
    "Pi rebooted in mid-publish",
    reboot_in_mid_publish,
    {"macbook: last sync": "WARN"},
    "the Pi cannot be reached",
)
DISK_FULL = Fault(
    "Pi's disk full",
    fill_the_disk,
    {"macbook: last sync": "FAIL", "raspberrypi: disk": "WARN"},
    "no room left on the Pi",
    make_room,
)
MODEL_SWAPPED = Fault(
    "model swapped",
    swap_the_model,
    {"raspberrypi: model server": "FAIL", "mac-mini: vectors": "FAIL"},
    "1024",
    swap_it_back,
)
OTHER_PI_KEY = Fault(
    "Pi shows another host key",
    set_the_pi_up_anew,
    {"macbook: last sync": "FAIL"},
    "another host key",
)
ALL = (
    CUT_OFF,
    SERVER_DOWN,
    OTHER_LAPTOP_KEY,
    KEY_REVOKED,
    REBOOTED,
    MODEL_SWAPPED,
    DISK_FULL,
    OTHER_PI_KEY,
)
