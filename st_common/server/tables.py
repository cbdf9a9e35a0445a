"""Tables by HTTP: rows put, looked up and deleted, rows in a rectangle, pairs of two tables."""

from dataclasses import asdict, replace
from typing import Any

from starlette.responses import Response

from st_common.config.parameters import Parameter
from st_common.errors import LayerError
from st_common.server.endpoint import BBOX, Endpoint
from st_common.server.parameters import ANY_TEXT, AbsentError, Parameters
from st_common.server.replies import value_reply
from st_common.server.schemas import (
    FEATURE,
    TEXT,
    TEXTS,
    TIME,
    TRUTH,
    WHOLE,
    a_list,
    an_object,
    or_null,
)

_MOST_ROWS = 10_000
_KEY = Parameter("key", ANY_TEXT, "the key of a row", is_required=True)
_BOX = replace(BBOX, is_required=True)
_PUT = an_object(table=TEXT, version=WHOLE, rows=WHOLE, streams=TEXTS)
_FILES = {"files_read": WHOLE, "files": WHOLE}
_TABLE = an_object(
    table=TEXT,
    version=WHOLE,
    rows=WHOLE,
    key=or_null(TEXT),
    columns=TEXTS,
    versions=WHOLE,
    ttl_s=or_null(WHOLE),
    group=or_null(TEXT),
)
_VERSION = {
    **FEATURE,
    "properties": FEATURE["properties"] | {"put_at": or_null(TIME), "deleted": TRUTH},
}
_GEOJSON = ("application/geo+json", "application/json")


@Endpoint("GET", "/v1/tables", an_object(tables=a_list(_TABLE)))
def list_tables(asked: Parameters) -> Response:
    """All tables and layers: how many rows they have, and how they were declared."""
    from st_common.layers.find import tables_shown

    return value_reply({"tables": tables_shown(asked.place.home)})


@Endpoint(
    "GET",
    "/v1/tables/{table}/rows",
    an_object(rows=a_list(_VERSION)),
    params=(_KEY,),
)
def get_row(asked: Parameters) -> Response:
    """The row of a key as a feature, then its older versions."""
    from st_common.layers.find import get

    table, key = _known(asked, "table"), asked.params["key"]
    rows = get(asked.place.home, table, key)
    if not rows:
        raise AbsentError(f"table {table!r} has no row {key!r}")
    return value_reply({"rows": rows})


@Endpoint("PUT", "/v1/tables/{table}/rows", _PUT, takes=_GEOJSON, apart="register")
def put_rows(asked: Parameters) -> Response:
    """Puts a feature, or all of a FeatureCollection in one commit, over the rows of the same keys."""
    value = asked.json()
    rows = value.get("features") if value.get("type") != "Feature" else [value]
    if not isinstance(rows, list) or not rows:
        raise LayerError(
            "the body has no feature",
            hint='a Feature, or {"type": "FeatureCollection", "features": [..]}',
        )
    if len(rows) > _MOST_ROWS:
        raise LayerError(
            f"the body has {len(rows):,} rows, more than {_MOST_ROWS:,}",
            hint="send several, or load a file: fairway table load",
        )
    return value_reply(asdict(_changed(asked).put(_known(asked, "table"), rows)))


@Endpoint("DELETE", "/v1/tables/{table}/rows", _PUT, params=(_KEY,), lane="queries")
def delete_row(asked: Parameters) -> Response:
    """Deletes the row of a key."""
    table, key = _known(asked, "table"), asked.params["key"]
    return value_reply(asdict(_changed(asked).delete(table, [key])))


@Endpoint(
    "GET",
    "/v1/tables/{table}/items",
    an_object({"version": WHOLE}, type=TEXT, features=a_list(FEATURE), **_FILES),
    params=(_BOX,),
    apart="read",
)
def in_box(asked: Parameters) -> Response:
    """The rows in a rectangle of the table's coordinates, and how many files were read."""
    from st_common.layers.find import in_rectangle

    table = _known(asked, "table")
    found = in_rectangle(asked.place.home, table, asked.params["bbox"])
    return value_reply(found.to_json())


@Endpoint(
    "GET",
    "/v1/tables/{table}/joined/{other}",
    an_object(
        pairs=a_list(TEXTS), left=a_list(FEATURE), right=a_list(FEATURE), **_FILES
    ),
    params=(_BOX,),
    apart="read",
)
def joined(asked: Parameters) -> Response:
    """The pairs of rows of two tables that meet in a rectangle, and how many files were read."""
    from st_common.layers.find import join_in_rectangle

    left, right = _known(asked, "table"), _known(asked, "other")
    found = join_in_rectangle(asked.place.home, left, right, asked.params["bbox"])
    return value_reply(found.to_json())


def _known(asked: Parameters, part: str) -> str:
    """The name of a table in an address.

    Raises:
        AbsentError: there is none of that name.
    """
    from st_common.layers.table import newest_version

    name = asked.path[part]
    if newest_version(asked.place.home, name) is None:
        raise AbsentError(f"there is no table {name!r}", hint="see GET /v1/tables")
    return name


def _changed(asked: Parameters) -> Any:
    from st_common.query.table_rows import TableHome

    place = asked.place
    return TableHome(
        home=place.home,
        conf=place.conf,
        streams=place.streams,
        before_writing=asked.before_writing,
    )
