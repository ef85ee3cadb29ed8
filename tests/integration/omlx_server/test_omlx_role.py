"""The whole role, run by Ansible against every kind of oMLX: set up, again, check, doctor, absent, logs."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from tests.integration.omlx_server.rig import OTHER_KEY, SELF, TOKEN

pytestmark = pytest.mark.timeout(1800)  # the first test tells the whole story
SERVED = ("strict", "app", "homebrew", "by_hand")
FOLDER = "omlx_server : Hand on | Make the settings folder"  # made by then if there was something to note
WAIT = "omlx_server : Model | Wait for the download"


def test_only_the_one_that_cannot_serve_the_model_fails_and_says_which_to_install(
    story: SimpleNamespace,
) -> None:
    for ran in (story.bare, story.first, story.second, story.check):
        failures = ran.failures()
        assert set(failures) == {"old"}, ran.text[-6000:]
        sentence = failures["old"]
        assert sentence.startswith("'old: oMLX 0.4.5.dev1 cannot serve EmbeddingGemma 2 ("), sentence
        assert "Install a release of October 2026 or later" in sentence
        assert sentence.rstrip("'").endswith("run this again")
    old = story.macs["old"].omlx
    assert old.state.models.keys() == {"tiny-chat"} and story.keys["old"] == []


def test_check_mode_on_a_bare_mac_tells_what_will_change_and_changes_nothing(story: SimpleNamespace) -> None:
    assert story.after_bare == story.before
    for name in SERVED:
        assert story.bare.changed(name) - {FOLDER} == story.first.changed(name) - {FOLDER, WAIT}, name
        assert len(story.bare.changed(name)) == 5, name


@pytest.mark.parametrize("name", SERVED)
def test_the_first_run_exposes_pins_loads_and_hands_on_a_key(story: SimpleNamespace, name: str) -> None:
    mac, settings = story.macs[name], json.loads(story.set_up[name]["settings.json"])
    assert settings["server"]["host"] == "0.0.0.0"
    assert json.loads(story.set_up[name]["model_settings.json"])["models"][mac.gemma] == {"is_pinned": True}
    assert story.loaded[name] >= {mac.gemma} | ({"tiny-chat"} if name != "strict" else set())
    (key,) = story.keys[name]
    assert f"DIGUP_EMBED_API_KEY={key}\n" in story.env[name]
    assert f"DIGUP_EMBED_URL=http://{SELF}:" in story.env[name]
    assert f"DIGUP_EMBED_MODEL={mac.gemma}\n" in story.env[name]


def test_a_second_run_and_check_mode_after_it_change_nothing(story: SimpleNamespace) -> None:
    for ran in (story.second, story.check):
        assert sum(map(int, re.findall(r"changed=(\d+)", ran.text))) == 0, ran.text
    assert story.after_check == story.set_up


def test_a_person_sees_how_far_the_download_is_while_it_runs_and_it_survives_a_restart(
    story: SimpleNamespace,
) -> None:
    text, states = story.progress[0]
    assert re.match(r"\d+ MB of 1\.5 GB \(\d+ %\), also shown by http://127\.0\.0\.1:\d+/admin$", text)
    assert states == ["downloading"], "it was told only afterwards"
    assert story.macs["strict"].omlx.requests.count(("POST", "/admin/api/hf/download")) == 2


@pytest.mark.parametrize(
    ("name", "check", "level", "words"),
    [
        ("strict", "address for the agents", "WARN", "is not listened to | ansible-playbook site.yml"),
        ("strict", "admin login", "OK", "not open on the local network"),
        ("strict", "sub key", "FAIL", "hermes-digup: 0 | ansible-playbook site.yml"),
        ("app", "oMLX", "FAIL", "does not check keys"),
        ("homebrew", "oMLX", "OK", "version 0.7.0"),
        ("homebrew", "model", "WARN", "not pinned, not in memory | ansible-playbook site.yml"),
        ("homebrew", "vectors", "OK", "768 values"),
        ("homebrew", "file for the agents", "OK", "0600"),
        ("by_hand", "model", "FAIL", "is of the kind llama, not an EmbeddingGemma 2"),
        ("by_hand", "vectors", "SKIP", "not asked"),
        ("old", "oMLX", "FAIL", "does not answer on port"),
        ("old", "file for the agents", "FAIL", "is missing"),
    ],
)
def test_each_fault_has_its_row(
    story: SimpleNamespace, name: str, check: str, level: str, words: str
) -> None:
    row = story.macs[name].rows()[check]
    assert row[0] == level and words in row[1], row


def test_verify_changes_nothing_on_any_mac(story: SimpleNamespace) -> None:
    assert story.verify.code == 0, story.verify.text[-6000:]
    for name in story.macs:
        assert not [task for task in story.verify.changed(name) if "Verify |" in task]


def test_an_agent_alone_gets_a_key_even_if_it_must_be_made(story: SimpleNamespace) -> None:
    assert story.limited.code == 0, story.limited.text[-6000:]
    assert story.limited.changed("pi -> strict") == {"omlx_server : Key | Find or make the sub key there"}


def test_absent_in_check_mode_tells_the_truth_and_touches_nothing(story: SimpleNamespace) -> None:
    assert story.after_absent_check == story.mended
    for name in ("strict", "old"):
        assert story.absent_check.changed(name) >= story.absent.changed(name) - {
            "omlx_server : Absent | Remove it if it is empty"
        }
        assert story.absent_check.changed(name) <= story.absent.changed(name)


@pytest.mark.parametrize("name", ["strict", "app", "homebrew", "by_hand", "old"])
def test_absent_leaves_everything_of_others_byte_for_byte(story: SimpleNamespace, name: str) -> None:
    mac, expected = story.macs[name], {n: json.loads(text) for n, text in story.before[name].items()}
    expected["settings.json"]["server"]["host"] = "0.0.0.0"  # others may use it by now
    if name != "old":
        expected["model_settings.json"]["models"][mac.gemma] = {"is_pinned": False}
    assert mac.files() == {n: json.dumps(content, indent=2) for n, content in expected.items()}
    assert not mac.ours.exists()


def test_absent_again_is_nothing(story: SimpleNamespace) -> None:
    assert story.absent.code == 0, story.absent.text[-6000:]
    assert story.absent_again.code == 0, story.absent_again.text[-6000:]
    assert sum(map(int, re.findall(r"changed=(\d+)", story.absent_again.text))) == 0


def test_no_secret_is_in_the_loudest_log(story: SimpleNamespace) -> None:
    secrets = [TOKEN, OTHER_KEY, "omlx_admin_session", *(key for keys in story.keys.values() for key in keys)]
    for mac in story.macs.values():
        secrets += [mac.key, mac.omlx.state.settings["auth"]["secret_key"]]
    assert len(secrets) >= 3 + 4 + 2 * 5
    assert [secret for secret in secrets if secret in story.site.log] == []
