"""The grammar of the language in EBNF: the one source of docs/grammar.md and of what the shell completes.

The parser (`dialect`) is written by hand, for its errors; a test derives random sentences from this grammar and has
them parsed. Sections are headings of the page.
"""

from collections.abc import Mapping
from functools import cache

from st_common.query.grammar.notation import Part, productions
from st_common.query.grammar.words import TYPES
from st_common.units import METRES, SECONDS, SPEEDS

START = "statements"
ONCE = "clause"  # each alternative of this production stands at most once where it is repeated
KINDS: Mapping[str, str] = {
    "WORD": "letters, digits and `_`, no digit first, and no word of this grammar in a place where it could stand",
    "QUOTED": 'any characters in double quotes: `"ships-dk"`; a quote in it is doubled',
    "NUMBER": "digits, a point, an exponent: `41`, `.5`, `1e-3`",
    "STRING": "any characters in single quotes: `'free'`; a quote in it is doubled",
    "EXTENT": "a number and its unit in single quotes: `'50 km'`, `'60 minutes'`",
    "WKT": "a polygon or multipolygon as well-known text in single quotes: `'POLYGON((0 0, 1 0, 1 1, 0 0))'`",
    "LINE": "a line or multiline as well-known text in single quotes: `'LINESTRING(0 0, 1 0, 1 1)'`",
}


def _any(words: Mapping[str, object]) -> str:
    return " | ".join(f"'{word}'" for word in words)


SECTIONS: Mapping[str, str] = {
    "Statements": """
statements ::= statement? ( ';' statement? )*
statement ::= register | replace | drop | create_area | drop_area | show | explain
register ::= 'REGISTER' 'QUERY' name 'AS' select
replace ::= 'REPLACE' 'QUERY' query 'AS' select
drop ::= 'DROP' 'QUERY' query
create_area ::= 'CREATE' ( 'OR' 'REPLACE' )? 'AREA' name 'AS' ( region | moving )
drop_area ::= 'DROP' 'AREA' area
show ::= 'SHOW' ( 'QUERIES' | 'AREAS' | 'STREAMS' )
explain ::= 'EXPLAIN' ( select | query )
""",
    "SELECT": """
select ::= 'SELECT' selection 'FROM' source ( ',' joined alias? )? join? clause*
selection ::= items | ( 'ISTREAM' | 'DSTREAM' | 'RSTREAM' ) '(' items ')'
items ::= 'DISTINCT'? ( '*' | item ( ',' item )* )
item ::= stamps | ( aggregate | expression ) ( 'AS' name )?
aggregate ::= 'COUNT' '(' ( '*' | 'DISTINCT'? expression ) ')'
    | ( 'SUM' | 'AVG' | 'MIN' | 'MAX' ) '(' expression ')'
    | 'AVGSPD' '(' ( '*' | name ) ')'
stamps ::= 'STAMPS' '(' '*' ')'
source ::= stream window* alias? | name '=' stream window*
alias ::= 'AS'? name
""",
    "Windows": """
window ::= '[' ( by_extent | by_region | by_time | by_rows ) ']'
by_extent ::= 'RANGE' 'BY' extent 'RATTR' ( 'SPACE' | 'TIME' ) ( ',' slide )?
by_region ::= 'RANGE' 'BY' region 'RATTR' 'SPACE'
by_time ::= 'RANGE' extent ( ',' ( slide | 'SLIDE' extent ) )?
by_rows ::= 'ROWS' NUMBER ( ',' ( slide | 'SLIDE' NUMBER ) )?
slide ::= 'SLIDE' 'BY' ( extent 'SATTR' ( 'SPACE' | 'TIME' ) | NUMBER 'SATTR' 'ROWS' )
extent ::= NUMBER ( length | time ) | EXTENT
""",
    "Joins": """
join ::= 'INNER'? 'JOIN' 'LAYER'? joined alias? 'ON' expression
spatial ::= ( 'ST_Intersects' | 'ST_Within' | 'ST_Contains' ) '(' name ',' name ')'
    | 'ST_DWithin' '(' name ',' name ',' NUMBER length ')'
""",
    "Clauses": """
clause ::= where | inside | knn | detect | group | window_of_members | compare | using | emit | options
where ::= 'WHERE' expression
inside ::= ( 'INSIDE' | 'GPAC-IN' ) ( region | moving )
knn ::= ( 'KNN' | 'GPAC-KNN' ) '(' ( NUMBER ',' point | moves ',' NUMBER ',' object ) ')'
    | 'REVERSE' 'KNN' '(' ( point | moves ',' object ) ')'
    | 'GROUP' 'KNN' '(' NUMBER ',' ( 'SUM' | 'MAX' | 'MIN' ) ( ',' '(' ( point | moves ',' object ) ')' )+ ')'
detect ::= 'DETECT' event ( ',' event )*
event ::= 'ENTER' | 'EXIT' | 'INSIDE' | 'OUTSIDE' | 'CROSS' | 'DWELL' NUMBER time
group ::= 'GROUP' 'BY' expression
window_of_members ::= 'WINDOW' NUMBER ( time | 'TUPLES' )
compare ::= 'COMPARE' 'WITH' 'NOT'? box
using ::= 'USING' step ( ',' step )*
step ::= 'enlarge' '(' NUMBER length ')'
    | ( 'enlarge_factor' | 'enlarge_value' ) '(' NUMBER ')'
    | 'key' '(' object ')'
    | 'box' box
    | 'filter' '(' STRING ( ',' STRING )? ')'
emit ::= 'EMIT' ( 'CHANGES' | 'EVERY' ) ( 'WITH' 'VALID' 'UNTIL' )?
options ::= 'WITH' '(' option ( ',' option )* ')'
option ::= ( 'plan' | 'windows' | 'origin' ) '=' STRING
    | ( 'min_step' | 'hysteresis' ) '=' ( EXTENT | NUMBER length )
    | 'max_gap' '=' ( EXTENT | NUMBER time )
    | ( 'enter_after' | 'exit_after' ) '=' ( EXTENT | in_a_row )
in_a_row ::= fixes ( NUMBER time )? | NUMBER time fixes?
fixes ::= NUMBER ( 'fix' | 'fixes' )
""",
    "Regions": """
region ::= box ( 'CROSSING' '180' )? | circle | corridor | WKT | area | 'FEATURE' '(' layer ',' STRING ')'
box ::= '(' number ',' number ',' number ',' number ')'
circle ::= 'CIRCLE' '(' point ',' NUMBER length? ')'
corridor ::= 'CORRIDOR' '(' LINE ',' NUMBER length? ')'
moving ::= '(' moves ',' object ',' NUMBER length? ( ',' NUMBER length? )? ')'
moves ::= "'M'" | 'M'
point ::= number ',' number
object ::= STRING | NUMBER
number ::= ( '+' | '-' )? NUMBER
""",
    "Expressions": f"""
expression ::= conjunction ( 'OR' conjunction )*
conjunction ::= negation ( 'AND' negation )*
negation ::= 'NOT'? predicate
predicate ::= spatial | sum comparison?
comparison ::= ( '=' | '<>' | '!=' | '<' | '<=' | '>' | '>=' ) sum
    | 'NOT'? ( 'IN' '(' sum ( ',' sum )* ')' | 'BETWEEN' sum 'AND' sum | ( 'LIKE' | 'ILIKE' ) sum )
    | 'IS' 'NOT'? ( 'NULL' | 'DISTINCT' 'FROM' sum )
sum ::= product ( ( '+' | '-' | '||' ) product )*
product ::= factor ( ( '*' | '/' | '%' ) factor )*
factor ::= '-'? ( value ( '::' type )* | NUMBER ( length | time | speed ) )
value ::= NUMBER
    | STRING
    | 'TRUE'
    | 'FALSE'
    | 'NULL'
    | column
    | function
    | case
    | cast
    | extract
    | '(' expression ')'
column ::= name ( '.' name )?
function ::= WORD '(' ( expression ( ',' expression )* )? ')'
case ::= 'CASE' expression? ( 'WHEN' expression 'THEN' expression )+ ( 'ELSE' expression )? 'END'
cast ::= ( 'CAST' | 'TRY_CAST' ) '(' expression 'AS' type ')'
extract ::= 'EXTRACT' '(' ( 'YEAR' | 'MONTH' | 'DAY' | 'HOUR' | 'MINUTE' | 'SECOND' | 'EPOCH' ) 'FROM' sum ')'
type ::= {_any(TYPES)}
""",
    "Names and units": f"""
name ::= WORD | QUOTED
query ::= name
stream ::= name
layer ::= name
joined ::= name
area ::= name
length ::= {_any(METRES)}
time ::= {_any(SECONDS)}
speed ::= {_any(SPEEDS)} | length '/' time
""",
}


@cache
def grammar() -> Mapping[str, Part]:
    """The productions by name."""
    return productions("\n".join(SECTIONS.values()))
