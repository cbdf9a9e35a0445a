"""Names, texts and numbers as they are written in texts."""

import re

from st_common.written import name_quoted, number, text_literal

__all__ = ["always_quoted", "is_plain", "number", "quoted", "text_literal"]

_OF_DUCKDB = frozenset(
    word
    for line in (
        "ARRAY BIGINT BINARY BOOLEAN INTEGER TIMESTAMP VARCHAR",
        "ANALYSE ANALYZE ANTI ANY ASOF ASYMMETRIC AT AUTHORIZATION BIT BOTH BY CAST CHAR CHARACTER CHECK",
        "COALESCE COLLATION COLUMNS CONCURRENTLY CREATE DEC DECIMAL DEFERRABLE DESCRIBE DO EXISTS EXTRACT",
        "FLOAT FOREIGN FREEZE GENERATED GLOB GROUP GROUPING GROUPING_ID ILIKE INITIALLY INOUT INT INTERVAL",
        "LAMBDA LAYER LEADING MAP NATIONAL NCHAR NONE NULLIF NUMERIC ONLY ORDER OUT OVERLAPS OVERLAY",
        "PIVOT_LONGER PIVOT_WIDER PLACING POSITION POSITIONAL PRECISION PRIMARY REAL ROW SEMI SETOF SHOW",
        "SIMILAR SMALLINT STRUCT SUBSTRING SUMMARIZE SYMMETRIC TABLESAMPLE TIME TO TRAILING TREAT TRIM",
        "TRY_CAST TUPLE UNPACK VALUES VARIADIC VERBOSE XMLATTRIBUTES XMLCONCAT XMLELEMENT XMLEXISTS XMLFOREST",
        "XMLNAMESPACES XMLPARSE XMLPI XMLROOT XMLSERIALIZE XMLTABLE",
    )
    for word in line.split()
)  # words that DuckDB reads as something else, and LAYER, which we do after JOIN
_OF_SQL = frozenset(
    word
    for line in (
        "ALL AND AS ASC AUTOINCREMENT AUTO_INCREMENT BETWEEN CASE COLLATE COLUMN CONSTRAINT CROSS",
        "CURRENT_CATALOG CURRENT_DATE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEFAULT DESC",
        "DETECT DISTINCT DROP ELSE EMIT END EXCEPT FALSE FETCH FOR FROM FULL HAVING IN INNER INSIDE INTERSECT",
        "INTO IS ISNULL JOIN KNN LATERAL LEFT LIKE LIMIT LOCALTIME LOCALTIMESTAMP NATURAL NOT NOTNULL NULL",
        "OFFSET ON OR OUTER OVER PARTITION PARTITIONED_BY PIVOT QUALIFY REFERENCES REGEXP REGISTER REPLACE",
        "RETURNING RIGHT RLIKE ROLLUP SELECT SOME STRAIGHT_JOIN TABLE THEN TRUE UNION UNIQUE UNNEST UNPIVOT",
        "USING WHEN WHERE WINDOW WITH XOR",
    )
    for word in line.split()
)  # words of ours, and of SQL beside
_TAKEN = _OF_DUCKDB | _OF_SQL
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_plain(name: str) -> bool:
    """Whether a name needs no quotes: neither our grammar nor DuckDB reads it as anything else."""
    return bool(_PLAIN.fullmatch(name)) and name.upper() not in _TAKEN


def quoted(name: str) -> str:
    """The name as an identifier, in double quotes only where it needs them."""
    return name if is_plain(name) else always_quoted(name)


def always_quoted(name: str) -> str:
    """The name in double quotes."""
    return name_quoted(name)
