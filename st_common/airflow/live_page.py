"""The live page of the home that runs work on, which `fairway serve` gives out: where it is, and whether it answers."""

import os
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from st_common.errors import ConfigError
from st_common.loopback import SERVE_PORT

VARIABLE = "FAIRWAY_PAGE_URL"
DEFAULT = f"http://127.0.0.1:{SERVE_PORT}"
"""Where `fairway serve` listens when nothing else was said."""
_PATIENCE_S = 5.0
_TITLE = "<title>Fairway</title>"


def page_url(environment: Mapping[str, str] = os.environ) -> str:
    """The address of the page without a slash at its end, as the variable FAIRWAY_PAGE_URL says it, else the usual one.

    Raises:
        ConfigError: what the variable says is no address of a page.
    """
    text = environment.get(VARIABLE, "").strip() or DEFAULT
    parts = urlsplit(text)
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ConfigError(f"{VARIABLE} is no address of a page", hint=f"such as {DEFAULT}")  # fmt: skip
    return text.rstrip("/")


def answers(url: str) -> bool:
    """Whether a server of Fairway gives out its page there."""
    import httpx

    try:
        reply = httpx.get(f"{url}/", timeout=_PATIENCE_S, trust_env=False)
    except httpx.HTTPError:
        return False
    return reply.status_code == httpx.codes.OK and _TITLE in reply.text


def place_of(job: str, summary: Mapping[str, object]) -> str | None:
    """Where on the page what a job made is seen, as the part of an address behind #; None: it made nothing to be seen.

        load_layer, {"layer": "parks"}   ->   tab=server&layer=parks          partition, ..   ->   tab=server&regions=1

    Args:
        job: its name.
        summary: what it printed.
    """
    job = job.rpartition(".")[2]
    if job == "load_layer" and "layer" in summary:
        return urlencode({"tab": "server", "layer": str(summary["layer"])})
    if job in ("partition", "load_layer") and summary:
        return urlencode({"tab": "server", "regions": "1"})
    return "tab=queries" if job in ("report_streams", "reprocess") and summary else None
