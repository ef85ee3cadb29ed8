#!/usr/bin/python
"""Ask for vectors exactly as the Pi's server will, and check what comes back (a question's first stop)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: omlx_proof
short_description: Prove that a model server gives good vectors, and only to those with the key
description:
  - Read-only. Runs on the model server or, by delegation, on an agent.
  - Checks that the server refuses without a key and with a wrong one, that a vector has 768 finite values,
    and that a text alone and the same text in a mixed batch get the same vector.
options:
  host: {description: Inventory name of this host; sentences begin with it., type: str, required: true}
  urls:
    description: Base URLs, tried in order; the first that answers is tested.
    type: list
    elements: str
    required: true
  api_key: {description: The sub key., type: str, required: true}
  model: {description: Id of the model., type: str, required: true}
  timeout_seconds: {description: How long one answer may take., type: int, default: 120}
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Prove it from here
  omlx_proof:
    host: raspberrypi
    urls: [http://mac-mini.example.ts.net:8000]
    api_key: "{{ key }}"
    model: embeddinggemma-2
"""

RETURN = r"""
url: {description: The base URL that answered., type: str, returned: success}
milliseconds: {description: Time for one short vector., type: int, returned: success}
agreement: {description: Cosine of a text alone and in a mixed batch., type: float, returned: success}
silent: {description: URLs that did not answer., type: list, returned: success}
"""

import math
import secrets
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.omlx_client import OmlxAwayError, OmlxError, OmlxRefusedError, exchange, said

DIMENSIONS = 768
AGREEMENT = 0.999
# The prompt of EmbeddingGemma for a search; oMLX adds none by itself.
QUERY = "task: search result | query: {0}"
TEXTS = (
    QUERY.format("letter from the landlord about the heating"),
    QUERY.format(" ".join(["a much longer text, so that padding in a batch would show"] * 12)),
    QUERY.format("tax"),
)


def main():
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "urls": {"type": "list", "elements": "str", "required": True},
            "api_key": {"type": "str", "required": True, "no_log": True},
            "model": {"type": "str", "required": True},
            "timeout_seconds": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        result = prove(**{name: value for name, value in module.params.items() if name != "host"})
    except OmlxError as error:
        module.fail_json(msg=said(module, error).replace(module.params["api_key"], "[hidden]"))
    module.exit_json(changed=False, **result)


def prove(urls, api_key, model, timeout_seconds):
    """All checks against the first URL that answers. Raises: OmlxError with what is wrong and the way out."""
    url, silent = first_answering([item.rstrip("/") for item in urls])
    check_refusal(url, "", "without a key")
    check_refusal(url, secrets.token_hex(32), "with a wrong key")
    started = time.monotonic()
    single = vectors(url, api_key, model, TEXTS[:1], timeout_seconds)[0]
    milliseconds = int(1000 * (time.monotonic() - started))
    batch = vectors(url, api_key, model, TEXTS, timeout_seconds)
    agreement = cosine(single, batch[0])
    if agreement < AGREEMENT:
        raise OmlxError(
            "{0} gives another vector for a text alone than for the same text in a batch (cosine {1:.4f}). "
            "This oMLX pools {2} wrongly; update oMLX".format(url, agreement, model)
        )
    return {"url": url, "milliseconds": milliseconds, "agreement": round(agreement, 6), "silent": silent}


def first_answering(urls):
    """The first base URL whose /health answers, and those before it that did not."""
    silent = []
    for url in urls:
        try:
            if exchange(url + "/health", timeout=5).status == 200:
                return url, silent
        except OmlxAwayError:
            pass
        silent.append(url)
    raise OmlxAwayError(
        "No model server answers at {0}. Start oMLX there, expose it (omlx_server_expose: all), let "
        "it through the firewall, then run this again".format(" or ".join(silent) or "any address")
    )


def check_refusal(url, key, how):
    """Raises: OmlxError if the list of models is shown to somebody who has no right to it."""
    headers = {"Authorization": "Bearer " + key} if key else {}
    if exchange(url + "/v1/models", headers=headers, timeout=15).status != 401:
        raise OmlxError(
            "{0} answers {1}. Set a main key in oMLX (Settings, Security) and turn its key checks on, then "
            "run this again".format(url, how)
        )


def vectors(url, key, model, texts, timeout):
    """One unit vector per text, in order.

    Shapes: len(texts) lists of 768 floats.
    Raises: OmlxError for every other kind of answer. A status of 200 proves nothing: a fault that comes after
    the header leaves a blank or broken body.
    """
    answer = exchange(
        url + "/v1/embeddings",
        "POST",
        {"model": model, "input": list(texts)},
        {"Authorization": "Bearer " + key},
        timeout,
    )
    if answer.status == 401:
        raise OmlxRefusedError(
            "{0} refuses our sub key. Run the playbook again to make a new one".format(url), 401, ""
        )
    rows = answer.body.get("data") if isinstance(answer.body, dict) else None
    if answer.status != 200 or not isinstance(rows, list):
        raise OmlxError(
            "{0} gave no vector with {1}: HTTP {2} {3}. Look at {0}/admin, then run this again".format(
                url, model, answer.status, answer.detail or "(empty or broken answer)"
            )
        )
    by_index = {row.get("index"): row.get("embedding") for row in rows if isinstance(row, dict)}
    if len(rows) != len(texts) or sorted(by_index, key=str) != sorted(range(len(texts)), key=str):
        raise OmlxError(
            "{0} gave {1} vectors for {2} texts. Restart oMLX, then run this again".format(
                url, len(rows), len(texts)
            )
        )
    return [unit(url, by_index[number]) for number in range(len(texts))]


def unit(url, values):
    """The vector with length 1. Raises: OmlxError unless it is 768 finite numbers that aren't all zero."""
    if not isinstance(values, list) or len(values) != DIMENSIONS:
        size = len(values) if isinstance(values, list) else "no"
        raise OmlxError(
            "{0} gave a vector with {1} values, not {2}: wrong model. Set omlx_server_model to an "
            "EmbeddingGemma 2, then run this again".format(url, size, DIMENSIONS)
        )
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values):
        raise OmlxError(
            "{0} gave a vector with values that are no finite numbers. Restart oMLX, then run this "
            "again".format(url)
        )
    length = math.sqrt(sum(v * v for v in values))
    if length < 1e-6:
        raise OmlxError("{0} gave a vector of zeros. Restart oMLX, then run this again".format(url))
    return [v / length for v in values]


def cosine(a, b):
    """Of two unit vectors."""
    return sum(x * y for x, y in zip(a, b))  # noqa: B905 - zip has no `strict` in Python 3.9; unit() has checked both lengths


if __name__ == "__main__":
    main()
