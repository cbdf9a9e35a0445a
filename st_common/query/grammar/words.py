"""The words of the language, as sqlglot's tokenizer takes them.

New words get token types that no SQL of ours uses, so that they are never read as an alias. Words of other SQL that
people call their attributes by ("object", "load", "number") are plain names here.
"""

import re
from functools import cache
from typing import ClassVar

from sqlglot import parser, tokens
from sqlglot.tokenizer_core import TokenType

from st_common.written import number, text_literal

__all__ = [
    "FairwayTokenizer",
    "always_quoted",
    "is_plain",
    "number",
    "quoted",
    "text_literal",
]

REGISTER, REPLACE, DROP = TokenType.INSTALL, TokenType.REPLACE, TokenType.DROP
INSIDE, KNN, REVERSE_KNN, GROUP_KNN = (
    TokenType.POLICY,
    TokenType.PREWHERE,
    TokenType.PACKAGE,
    TokenType.VOLUME,
)
EMIT, COMPARE, USING = TokenType.POOL, TokenType.SUMMARIZE, TokenType.USING
DETECT = TokenType.RULE

_OURS = {
    "REGISTER": REGISTER,
    "INSIDE": INSIDE,
    "GPAC-IN": INSIDE,  # as the GPAC paper prints it, with and without blanks
    "GPAC - IN": INSIDE,
    "KNN": KNN,
    "GPAC-KNN": KNN,
    "GPAC - KNN": KNN,
    "REVERSE KNN": REVERSE_KNN,
    "GROUP KNN": GROUP_KNN,
    "DETECT": DETECT,
    "EMIT": EMIT,
    "COMPARE WITH": COMPARE,
}
TYPES = {
    "BIGINT": "BIGINT",
    "BOOL": "BOOLEAN",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "DOUBLE": "DOUBLE",
    "INT": "INT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "STRING": "VARCHAR",
    "TEXT": "VARCHAR",
    "TIMESTAMP": "TIMESTAMP",
    "VARCHAR": "VARCHAR",
}
_NAMES = frozenset(
    word
    for line in (
        "ALTER ANALYZE APPLY BEGIN CACHE CALL COMMENT COMMIT COPY CREATE CUBE DATABASE DELETE DESCRIBE DIV",
        "ENUM ESCAPE EXECUTE EXPLAIN FILE FILTER FIRST FORMAT FUNCTION GRANT INDEX INSERT KEEP KILL LIST LOAD",
        "LOCK MERGE NAMESPACE NEXT NULLABLE OBJECT OPERATOR OPTIMIZE ORDINALITY OUT OVERWRITE PERCENT PRAGMA",
        "PREPARE PROCEDURE RANGE RECURSIVE REF REFRESH RENAME REVOKE ROLLBACK ROW ROWS SCHEMA SEQUENCE",
        "SESSION SESSION_USER SET SETTINGS SHOW STR TEMP TEMPORARY TRIGGER TRUNCATE UNCACHE UNKNOWN UPDATE",
        "USE VACUUM VECTOR VIEW VOLATILE",
    )
    for word in line.split()
)
_DUCKDB = frozenset(
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
)  # names that DuckDB reads as something else, and LAYER, which we do after JOIN
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _is_sql(word: str, kind: TokenType) -> bool:
    is_type = kind in parser.Parser.TYPE_TOKENS and word[0].isalpha()
    return word in ("NULL", "UNION") or (
        word != "/*+" and word not in _NAMES and not is_type
    )


class FairwayTokenizer(tokens.Tokenizer):
    """The words of SQL, and ours."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **{
            word: kind
            for word, kind in tokens.Tokenizer.KEYWORDS.items()
            if _is_sql(word, kind)
        },
        **_OURS,
    }
    COMMANDS: ClassVar[set[TokenType]] = (
        set()
    )  # no statement takes its tail as raw text


def is_plain(name: str) -> bool:
    """Whether a name needs no quotes: neither our tokenizer nor DuckDB's reads it as anything else."""
    return bool(_PLAIN.fullmatch(name)) and name.upper() not in _reserved()


def quoted(name: str) -> str:
    """The name as an identifier, in double quotes only where it needs them."""
    return name if is_plain(name) else always_quoted(name)


def always_quoted(name: str) -> str:
    """The name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


@cache
def _reserved() -> frozenset[str]:
    return frozenset(FairwayTokenizer.KEYWORDS) | _DUCKDB
