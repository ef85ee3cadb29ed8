"""Which of oMLX's models makes our vectors, and getting it served: its type, its place in memory."""

from __future__ import annotations

import re

from ansible.module_utils.omlx_client import OmlxError, model_path, wait_for
from ansible.module_utils.omlx_restart import loaded_models, reload_models

CONFIG_TYPE = "embedding_gemma2"
SERVED_TYPE = "embedding"
_QUANTISED = re.compile(
    r"(?i)(?:^|[-_.])(?:\d+[-_]?bits?|q\d\w*|int\d|(?:mx|nv)?fp[48]|dwq|awq|gptq)(?:$|[-_.])"
)
# Even squeezed to 4 bits it is larger: a smaller one is the rest of a download that was cut off.
_SMALLEST_BYTES = 200_000_000
_REMEMBERED = "previous load failure"
# Seen to take it for a vision model and to fail to load it.
_TOO_OLD = (0, 4, 5)


def choose(models, repo, wanted):
    """The model to use among the server's, or None.

    A wanted id must be there. Else an EmbeddingGemma 2, the repository's own name first, then unquantised
    ones; a server too old to know the type lists it under the repository's name with another type.
    """
    if wanted:
        return next((m for m in models if wanted in (m["id"], m.get("display_name"))), None)
    name = repo.rpartition("/")[2]
    candidates = [m for m in models if _is_gemma(m, repo) and not 0 < _bytes(m) < _SMALLEST_BYTES]
    return min(candidates, key=lambda m: (m["id"] != name, quantised(m), m["id"]), default=None)


def _is_gemma(model, repo):
    named = model["id"] == repo.rpartition("/")[2] and model.get("source_repo_id") in (None, "", repo)
    return named or model.get("config_model_type") == CONFIG_TYPE


def _bytes(model):
    size = model.get("estimated_size")
    return size if isinstance(size, (int, float)) else 0


def quantised(model):
    """True if the name says that the weights were squeezed: its vectors differ from DigUp's."""
    return any(
        _QUANTISED.search(str(model.get(field) or "")) for field in ("id", "display_name", "source_repo_id")
    )


def change(client, model_id, settings):
    """Change documented settings of one model."""
    client.call(
        "PUT",
        model_path(model_id, "settings"),
        settings,
        what="change {0}'s settings".format(model_id),
    )


def load_model(client, model_id, seconds):
    """Load it, joining a load that already runs, and forgetting one earlier failure.

    Returns the ids of other models that this has unloaded and that could not be loaded again.
    Raises: OmlxError saying that this oMLX can't serve it, or that memory is short.
    """
    missing = []
    answer = _settled_load(client, model_id, seconds)
    if _REMEMBERED in answer.detail:
        # The one way to make oMLX forget a failure unloads every model, so what others use is loaded again.
        wanted = loaded_models(client)
        client.call("POST", "/admin/api/reload", timeout=seconds, what="look for its models anew")
        missing = reload_models(client, wanted)
        answer = _settled_load(client, model_id, seconds)
    if answer.status != 200:
        raise OmlxError(_load_failure(client, model_id, answer))
    return missing


def _settled_load(client, model_id, seconds):
    """The answer to a request to load, which blocks; repeated while somebody else loads or unloads it."""
    answers = []

    def settled():
        answers.append(client.ask("POST", model_path(model_id, "load"), timeout=seconds))
        return answers[-1].status not in (202, 409) or _REMEMBERED in answers[-1].detail

    wait_for(settled, seconds, every=1)
    return answers[-1]


def _load_failure(client, model_id, answer):
    """One sentence for a model that can't be loaded."""
    reason = client.redacted(answer.detail or "no reason given")
    low = reason.lower()
    if any(words in low for words in ("not supported", "unsupported", "model type", _REMEMBERED)):
        return _unserved(client.version(), model_id, reason)
    if answer.status == 507 or "memory" in low:
        return (
            "oMLX has no room in memory for {0} ({1}). Unload a model in {2}/admin or raise its memory "
            "limit, then run this again".format(model_id, reason, client.base_url)
        )
    return "oMLX could not load {0}: HTTP {1} {2}. Look at {3}/admin, then run this again".format(
        model_id, answer.status, reason, client.base_url
    )


def check_version(client):
    """Raises: OmlxError, before 1.5 GB are fetched, for a version that was seen not to serve the model."""
    version = client.version()
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if numbers and numbers <= _TOO_OLD:
        raise OmlxError(_unserved(version, "EmbeddingGemma 2", "known of 0.4.5 and older"))


def check_kind(client, model):
    """Raises: OmlxError if a model of another kind stands behind the name."""
    kind = model.get("config_model_type")
    if kind and kind != CONFIG_TYPE:
        raise OmlxError(
            "the model {0} in oMLX is of the kind {1}, not an EmbeddingGemma 2. Remove it or give it another "
            "name in {2}/admin (Models), or set omlx_server_model, then run this again".format(
                model["id"], kind, client.base_url
            )
        )


def check_type(client, model_id):
    """Raises: OmlxError unless the server serves it as an embedding model."""
    now = client.model(model_id) or {}
    if now.get("model_type") != SERVED_TYPE:
        kind = now.get("model_type") or "unknown"
        raise OmlxError(_unserved(client.version(), model_id, "it takes it for " + kind))


def _unserved(version, model_id, reason):
    return (
        "oMLX {0} cannot serve {1} ({2}). Install a release of October 2026 or later (the app's own update, "
        "brew upgrade omlx, or https://github.com/jundot/omlx/releases), then run this again".format(
            version or "(version unknown)", model_id, reason
        )
    )
