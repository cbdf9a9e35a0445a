"""How the coordinates of columns are written: with commas, letters, minutes, as whole numbers, or both in one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from st_common.detect.rows import Rows

Numbers = NDArray[np.float64]

_POINT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_PARTS = re.compile(r"\d+(?:[.,]\d+)?")
_MARKS = "['\u2032\u2019\u00b4:\\s]*"
_SECONDS = "[\"\u2033\u201d'\u2032\\s]*"
_PART = r"([.,]\d+)?"
_LETTERED = re.compile(
    rf"[NSEWO]?\s*[-+]?\d{{1,3}}{_PART}[\s°º˚:]*(\d{{1,2}}{_PART}{_MARKS}(\d{{1,2}}{_PART}{_SECONDS})?)?[NSEWO]?",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[°º˚NSEWO]", re.IGNORECASE)
_SOUTH_OR_WEST = re.compile(r"[SW-]", re.IGNORECASE)
_NUMBER = r"[-+]?\d{1,3}(?:[.,]\d+)?"
_PAIR = re.compile(
    rf"[\s(\[]*(?P<one>{_NUMBER})\s*(?:,\s|[,;/|]|\s)\s*(?P<two>{_NUMBER})[\s)\]]*"
)
_LETTERED_PAIR = re.compile(
    r"[\s(\[]*([^NSEWnsew,;]+[NSns]|[NSns][^NSEWnsew,;]+)[\s,;/]*([^NSEWnsew,;]+[EWew]|[EWew][^NSEWnsew,;]+)[\s)\]]*"
)
_HALVES = {"x": frozenset("EW"), "y": frozenset("NS")}
_SCALES = {"e7": 1e7, "e6": 1e6, "e5": 1e5}
_LEAST_SHARE = 0.9
_MOST_X, _MOST_Y = 180.0, 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How coordinates are written.

    Attributes:
        settings: the keys that say it.
        notes: what else would fit.
        x: the degrees of each record; NaN where it has none.
        y: likewise.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    x: Numbers
    y: Numbers


def written_in(rows: Rows, x: str, y: str, *, may_be_scaled: bool) -> Written:
    """How the coordinates of two columns are written.

    Args:
        rows: some records.
        x: the column.
        y: likewise.
        may_be_scaled: whether whole numbers may be parts of degrees: the columns are called longitude and latitude.
    """
    of_x, of_y = numbers_of(rows, x), numbers_of(rows, y)
    settings = {"decimal": ","} if has_commas(rows, (x, y)) else {}
    if may_be_scaled and (scaled := _scaled(of_x, of_y, (x, y))) is not None:
        form, notes = scaled
        return Written(
            settings={**settings, "coordinates": form},
            notes=notes,
            x=_unscaled(of_x, form),
            y=_unscaled(of_y, form),
        )
    return Written(settings=settings, x=of_x, y=of_y)


def has_commas(rows: Rows, names: Sequence[str]) -> bool:
    """Whether the numbers of columns have decimal commas."""
    texts = [
        one for row in rows for name in names if (one := row.get(name, "").strip())
    ]
    commas = sum(_COMMA.fullmatch(one) is not None for one in texts)
    points = sum("." in one and _POINT.fullmatch(one) is not None for one in texts)
    return commas > points


def numbers_of(rows: Rows, name: str) -> Numbers:
    """The numbers of a column, also with a decimal comma, with a letter, or in minutes; NaN for what is none."""
    values = (_number(row.get(name, "").strip()) for row in rows)
    return np.fromiter(values, np.float64, count=len(rows))


def _number(text: str) -> float:
    if _POINT.fullmatch(text):
        return float(text)
    if _COMMA.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    if not (text and _SIGN.search(text) and _LETTERED.fullmatch(text)):
        return np.nan
    parts = [float(one.replace(",", ".")) for one in _PARTS.findall(text)]
    degrees = sum(part / 60**place for place, part in enumerate(parts))
    return float(-degrees if _SOUTH_OR_WEST.search(text) else degrees)


def _scaled(
    of_x: Numbers, of_y: Numbers, names: tuple[str, str]
) -> tuple[str, tuple[str, ...]] | None:
    """In which parts of degrees whole numbers count, or that degrees and minutes stand in one; None: in degrees."""
    far = [_furthest(of_x), _furthest(of_y)]
    if max(far) <= _MOST_X:
        return None
    if _are_minutes(of_x) and _are_minutes(of_y) and far[1] <= _MOST_Y * 100:
        return "nmea", ()
    known = np.concatenate([of_x, of_y])
    known = known[np.isfinite(known)]
    if not len(known) or (known != np.floor(known)).any():
        return None
    fit = [
        form
        for form, times in _SCALES.items()
        if far[0] <= _MOST_X * times and far[1] <= _MOST_Y * times
    ]
    called = "".join(names).lower()
    fit.sort(key=lambda form: (form not in called, _SCALES[form]))
    if not fit or max(far) < 1e5:
        return None
    best, *others = fit
    notes = tuple(
        f'coordinates of {names[0]} and {names[1]} are taken for {best}; also fits: coordinates = "{one}"'
        for one in others
        if best not in called
    )
    return best, notes


def _are_minutes(numbers: Numbers) -> bool:
    """Whether numbers can be degrees and minutes in one: 6010.2 is 60 degrees and 10.2 minutes."""
    known = np.abs(numbers[np.isfinite(numbers)])
    if not len(known) or known.max() > _MOST_X * 100:
        return False
    return bool((known % 100 < 60).all() and known.max() > _MOST_X)


def _unscaled(numbers: Numbers, form: str) -> Numbers:
    if form != "nmea":
        return numbers / _SCALES[form]
    whole = np.floor(np.abs(numbers) / 100)
    degrees = whole + (np.abs(numbers) - whole * 100) / 60
    return np.asarray(np.sign(numbers) * degrees, np.float64)


def _furthest(numbers: Numbers) -> float:
    known = np.abs(numbers[np.isfinite(numbers)])
    return float(np.sort(known)[len(known) * 9 // 10]) if len(known) else 0.0


def halves_in(names: Sequence[str], rows: Rows, axis: str) -> str | None:
    """The column whose values are the letters of hemispheres alone: N and S, or E and W."""
    for name in names:
        values = {row.get(name, "").strip().upper() for row in rows} - {""}
        if values and values <= _HALVES[axis]:
            return name
    return None


def lettered_in(names: Sequence[str], rows: Rows, axis: str) -> str | None:
    """The column whose coordinates have the letters of an axis: `13.4E`, or `N 52.5`."""
    letters = "".join(_HALVES[axis])
    pattern = re.compile(rf"[{letters}].*|.*[{letters}]", re.IGNORECASE | re.DOTALL)
    for name in names:
        texts = [one for row in rows if (one := row.get(name, "").strip())]
        if texts and all(
            pattern.fullmatch(one) and not np.isnan(_number(one)) for one in texts
        ):
            return name
    return None


def pair_in(
    names: Sequence[str], rows: Rows
) -> tuple[str, Mapping[str, str], str] | None:
    """The column that holds both coordinates, the keys that say in which order, and what else fits; None: none does.

    Args:
        names: of the columns.
        rows: some records.
    """
    for name in names:
        texts = [one for row in rows if (one := row.get(name, "").strip())]
        if not texts:
            continue
        if all(map(_LETTERED_PAIR.fullmatch, texts)):
            return name, {}, ""
        pairs = [_PAIR.fullmatch(one) for one in texts]
        found = [(one["one"], one["two"]) for one in pairs if one is not None]
        if len(found) >= _LEAST_SHARE * len(texts) and (
            order := _order_of(name, found)
        ):
            return (name, *order)
    return None


def _order_of(
    name: str, pairs: Sequence[tuple[str, str]]
) -> tuple[Mapping[str, str], str] | None:
    """In which order two numbers stand, by those that are no latitude; None: they are no degrees."""
    if not all(set(one) & set(".,") for pair in pairs for one in pair):
        return None
    far = [
        max(abs(float(one.replace(",", "."))) for one in side)
        for side in zip(*pairs, strict=True)
    ]
    if max(far) > _MOST_X or min(far) > _MOST_Y:
        return None
    order, other = ("lon lat", "") if far[0] > _MOST_Y else ("lat lon", "lon lat")
    settings = {"place_order": order}
    if all("," in one for pair in pairs for one in pair):
        settings["decimal"] = ","
    also = (
        f'; also fits: place_order = "{other}"' if other and far[1] <= _MOST_Y else ""
    )
    return settings, f"{name} holds both coordinates, taken for {order}{also}"
