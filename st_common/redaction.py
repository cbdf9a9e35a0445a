"""Secrets stay out of what is written down: what this process reads as a secret is replaced wherever it would appear.

A receiver may repeat in its answer what it was sent; so whoever writes down words of others passes them through here.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MARK = "***"
_LEAST = 4  # characters: shorter ones would stand in every other word
_BEARER = re.compile(r"(?i)\b(bearer|basic|digest)\s+[A-Za-z0-9._~+/=-]{4,}")
_NAMED = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api[_-]?key|(?:access|auth)[_-]?token|client[_-]?secret"
    r"|passw(?:or)?d|sasl\.password)(\\?[\"']?\s*[:=]\s*\\?[\"']?)((?:(?:bearer|basic|digest)\s+)?[^\s\"'\\,;&}]+)"
)
_forms: set[str] = set()


def keep_secret(value: str) -> None:
    """From now on `value` is replaced by `redacted`, as it is and in the ways in which it is usually encoded."""
    _forms.update(form for form in _encoded(value) if len(form) >= _LEAST)


def redacted(text: str) -> str:
    """The text with every secret that this process knows, and what looks like one in a header, replaced by a mark.

    At the end of the text, where it may have been cut, the beginning of a secret is one too.
    """
    for form in sorted(_forms, key=len, reverse=True):
        text = text.replace(form, MARK)
    text = _NAMED.sub(rf"\1\2{MARK}", text)
    text = _BEARER.sub(rf"\1 {MARK}", text)
    return _without_cut_one(text)


def _without_cut_one(text: str) -> str:
    for form in _forms:
        for length in range(min(len(form) - 1, len(text)), _LEAST - 1, -1):
            if text.endswith(form[:length]):
                return text[:-length] + MARK
    return text


def _encoded(value: str) -> Iterator[str]:
    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    yield html.escape(value)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value.encode()).decode().rstrip("=")
