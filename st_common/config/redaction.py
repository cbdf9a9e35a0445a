"""Secrets stay out of what is written down: what this process reads as a secret is replaced wherever it would appear.

A receiver may repeat in its answer what it was sent; so whoever writes down words of others passes them through here.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MARK = "***"
_LEAST = 4  # characters: shorter ones would stand in every other word
_BEARER = re.compile(r"(?i)\b(bearer|basic|digest)\s+[A-Za-z0-9._~+/=-]{4,}")
_NAMED = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api[_-]?key|(?:access|auth)[_-]?token|client[_-]?secret"
    r"|passw(?:or)?d|sasl\.password)(\\?[\"']?\s*[:=]\s*\\?[\"']?)((?:(?:bearer|basic|digest)\s+)?[^\s\"'\\,;&}]+)"
)
_LONG = 8  # characters: what is shorter is a word such as `hooks` or `v1`, unless it has a digit
_ADDRESS = re.compile(
    r"^([a-z][a-z0-9+.-]*://)?([^/?#]*)(.*)$", re.IGNORECASE | re.DOTALL
)
_forms: set[str] = set()
_hosts: set[str] = set()  # addresses are told up to here


def keep_secret(value: str) -> None:
    """From now on `value` is replaced by `redacted`, as it is and as URLs, JSON, HTML, base64 and hex encode it.

    Small and capital letters are alike.

    What is shorter than four characters is not kept: it would stand in every other word.
    """
    _forms.update(form for form in _encoded(value) if len(form) >= _LEAST)


def keep_url(url: str) -> None:
    """From now on an address is told by scheme and host alone: its path and query let whoever knows them in.

    Parts of the path and the query are replaced where they stand alone, too, but for short words.
    """
    parts = urlsplit(url)
    _hosts.add(f"{parts.scheme}://{parts.netloc}")
    values = [raw.partition("=")[2] or raw for raw in parts.query.split("&")]
    values += [value for _, value in parse_qsl(parts.query)]
    segments = [part for raw in parts.path.split("/") for part in (raw, unquote(raw))]
    telling = [part for part in (*values, *segments) if _may_be_secret(part)]
    if telling:
        telling += [f"{parts.path}?{parts.query}", parts.path, parts.query]
    for part in telling:
        keep_secret(part)


def shown_url(url: str) -> str:
    """An address by scheme and host alone; it may be a wrong one.

    https://user:pw@hooks.example.com/services/T0/B1?key=2   ->   https://hooks.example.com/...
    """
    match = _ADDRESS.match(url)
    scheme, host, rest = (
        (match[1] or "", match[2], match[3]) if match else ("", "", url)
    )
    return f"{scheme}{host.rpartition('@')[2]}{'/...' if rest else ''}"


def _may_be_secret(part: str) -> bool:
    return len(part) >= _LONG or (
        len(part) >= _LEAST and any(character.isdigit() for character in part)
    )


def redacted(text: str) -> str:
    """The text with every secret that this process knows, and what looks like one in a header, replaced by a mark.

        with the secret s3cr3t-t0ken:   the answer was s3cr3t-t0ken, s3cr3   ->   the answer was ***, ***

    Of addresses that `keep_url` was told scheme and host stay. At the end of the text, where it may have been cut, the
    beginning of a secret is one too.
    """
    for host in _hosts:
        text = re.sub(rf"(?i)({re.escape(host)})/[^\s\"'<>\\]*", r"\1/...", text)
    # Longest first: a secret may be a part of another.
    for form in sorted(_forms, key=len, reverse=True):
        text = re.sub(re.escape(form), MARK, text, flags=re.IGNORECASE)
    text = _NAMED.sub(rf"\1\2{MARK}", text)
    text = _BEARER.sub(rf"\1 {MARK}", text)
    return _without_cut_one(text)


def _without_cut_one(text: str) -> str:
    end = text.casefold()
    for form in map(str.casefold, _forms):
        for length in range(min(len(form) - 1, len(text)), _LEAST - 1, -1):
            if end.endswith(form[:length]):
                return text[:-length] + MARK
    return text


def _encoded(value: str) -> Iterator[str]:
    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    yield html.escape(value)
    yield value.encode().hex()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value.encode()).decode().rstrip("=")
