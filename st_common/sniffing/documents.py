"""Where lists of records lie in a JSON document, of which the end may be cut."""

import re
from collections.abc import Iterator
from itertools import islice

from st_common.formats.member_lines import list_of

_LIST = re.compile(rb'"([^"\\.]+)"\s*:\s*\[\s*\{')
_OBJECT = re.compile(rb'"([^"\\.]+)"\s*:\s*\{')
_MOST = 8  # names of each kind that are looked at


def lists_in(document: bytes) -> Iterator[str]:
    """The paths of the lists of objects in a document, also of those in an object of it: `vehicles`, `data.vehicles`.

    Lists inside of records are none; of names the first ones count.
    """
    if not document.startswith(b"{"):
        return
    lists = _names(_LIST, document)
    outer = _names(_OBJECT, document)
    paths = (*lists, *(f"{one}.{name}" for one in outer for name in lists))
    yield from (path for path in paths if list_of(document, path) is not None)


def _names(pattern: re.Pattern[bytes], document: bytes) -> list[str]:
    """The names that a pattern takes, each once."""
    names = (one[1].decode("utf-8", "replace") for one in pattern.finditer(document))
    return list(islice(dict.fromkeys(names), _MOST))
