"""A model download in oMLX: start or join it, follow it a while, say in one sentence why it failed."""

from __future__ import annotations

import time

from ansible.module_utils.omlx_client import OmlxError

ACTIVE = ("pending", "downloading")
_ALREADY_RUNNING = "already in progress"
_EVERY_SECONDS = 2


class Progress:
    """How a download stands: `done`, or running as `task_id` with a text for a person."""

    def __init__(self, done, task_id="", text=""):
        self.done = done
        self.task_id = task_id
        self.text = text


class Download:
    """The download of one repository. `is_there()` says whether the server lists the model."""

    def __init__(self, client, repo, token, is_there):
        self._client = client
        self._repo = repo
        self._token = token
        self._is_there = is_there

    def follow(self, task_id, wait_seconds):
        """Start it, or join the one that runs, and follow it for at most `wait_seconds`.

        `task_id` is the download an earlier call of the same run followed ("" at first): if that one failed,
        this raises instead of starting another.

        Raises: OmlxError in one sentence with the way out.
        """
        deadline = time.monotonic() + wait_seconds
        while True:
            task = self._task(task_id)
            if task is None:
                # New, or the server was restarted: the list lives in memory and the download stopped with it.
                if task_id and self._is_there():
                    return Progress(done=True)
                task = self._started()
            task_id = str(task.get("task_id", ""))
            if self._finished(task):
                return Progress(done=True)
            if time.monotonic() >= deadline:
                return Progress(False, task_id, _text(task))
            time.sleep(min(_EVERY_SECONDS, max(0.1, deadline - time.monotonic())))

    def _finished(self, task):
        """Raises: OmlxError for a task that failed or that only claims to be complete."""
        state = task.get("status")
        if state in ("failed", "cancelled"):
            raise OmlxError(_failure(self._client, self._repo, task, self._token))
        if state in ACTIVE:
            return False
        # When the hub can't be reached, a folder without weights "completes" as well: only the list counts.
        if not self._is_there():
            raise OmlxError(
                "oMLX says it has {0}, but does not list it: its files are incomplete and the hub could not "
                "be reached. Check the network, delete the folder in {1}/admin (Models) and run this "
                "again".format(self._repo, self._client.base_url)
            )
        return True

    def _task(self, task_id):
        """The download that counts: the newest if it runs or this run follows one, else none.

        An older failure is not ours to report: this run has not tried yet.
        """
        tasks = self._client.tasks(self._repo)
        newest = tasks[-1] if tasks else None
        return newest if newest and (task_id or newest.get("status") in ACTIVE) else None

    def _started(self):
        body = {"repo_id": self._repo}
        if self._token:
            body["hf_token"] = self._token
        answer = self._client.ask("POST", "/admin/api/hf/download", body)
        task = answer.body.get("task") if isinstance(answer.body, dict) else None
        if answer.status == 200 and isinstance(task, dict):
            return task
        if answer.status == 400 and _ALREADY_RUNNING in answer.detail:
            running = self._task("")
            if running is not None:
                return running
        raise OmlxError(
            "oMLX at {0} did not start the download of {1}: HTTP {2} {3}".format(
                self._client.base_url,
                self._repo,
                answer.status,
                self._client.redacted(answer.detail, self._token),
            )
        )


def _text(task):
    """ "612 MB of 1.5 GB (41 %)", or that it is waiting for others."""
    total, got = _number(task.get("total_size")), _number(task.get("downloaded_size"))
    if task.get("status") == "pending":
        return "waiting for another download to finish"
    if not total:
        return "asking the hub for the size"
    return "{0} of {1} ({2} %)".format(size(got), size(total), int(100 * min(got, total) / total))


def size(count):
    """Bytes for a person, in decimal units as macOS shows them."""
    for unit, factor, digits in (("GB", 1e9, 1), ("MB", 1e6, 0), ("kB", 1e3, 0)):
        if count >= factor:
            return "{0:.{1}f} {2}".format(count / factor, digits, unit)
    return "{0:.0f} bytes".format(count)


def _number(value):
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _failure(client, repo, task, token):
    """One sentence for a failed download. oMLX words several causes alike, so each way out is named."""
    reason = client.redacted(" ".join(str(task.get("error") or "no reason given").split())[:400], token)
    start = "The download of {0} failed: ".format(repo)
    low = reason.lower()
    if task.get("status") == "cancelled":
        return start + "it was cancelled in oMLX. Run this again to go on from where it stopped"
    if "no space" in low or "errno 28" in low or "disk" in low:
        return start + "the disk is full ({0}). Free at least 2 GB and run this again".format(reason)
    if "not found" in low or "gated" in low or "401" in low or "403" in low:
        if token:
            return start + (
                "the hub hides it from this token ({0}). Check that the token is valid and that its account "
                "has accepted the licence at https://huggingface.co/{1}, then run this "
                "again".format(reason, repo)
            )
        return start + (
            "the hub does not give it to strangers, or has no such model ({0}). Accept the licence at "
            "https://huggingface.co/{1}, make a read token there, set omlx_server_hf_token, and run this "
            "again".format(reason, repo)
        )
    if "stalled" in low or "connect" in low or "timed out" in low or "resolve" in low or "network" in low:
        return start + "the hub could not be reached ({0}). Check the network and run this again".format(
            reason
        )
    return start + "{0}. Look at {1}/admin (Downloads) and run this again".format(reason, client.base_url)
