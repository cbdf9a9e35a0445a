"""A report as one HTML file: no script, style or picture from anywhere else, light and dark."""

import html
import re
from collections.abc import Sequence

from st_common.serving.map_picture import draw
from st_common.serving.report import QueryFacts, Report, RuleFacts

_STYLE = """
:root{color-scheme:light dark;--page:#fbfaf8;--card:#fff;--ink:#1d2329;--soft:#69727c;--line:#e6e2db;--accent:#1f5fd0;
--good:#1d7f4f;--bad:#c2371b;--answer:#e2552b;--query:#1f5fd0;--land:#f5f3ee;--park:#d3e6c0;--forest:#bcd8ab;
--water:#b9d6ea;--building:#e2dbd0;--road:#fff;--edge:#d8d0c3;--rail:#c4bbae;--region:#7c6cf2;--object:#4b5a68;
--note:#6b6459}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1c2026;--ink:#e8eaed;--soft:#98a2ad;--line:#2c323a;
--accent:#7aa9ff;--good:#5cc68f;--bad:#ff8066;--answer:#ff7a4d;--query:#86b1ff;--land:#1a1e23;--park:#24382a;
--forest:#1f3325;--water:#1d3448;--building:#282d34;--road:#3a4049;--edge:#22262c;--rail:#3f4650;--region:#9b8dff;
--object:#9fb0c0;--note:#98a2ad}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1320px;margin:0 auto;padding:36px 24px 64px}
h1{font-size:30px;letter-spacing:-.02em;margin:0}h2{font-size:17px;margin:0 0 12px}h3{font-size:14px;margin:18px 0 8px}
.lead{color:var(--soft);margin:6px 0 26px;max-width:74ch}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:12px;margin-bottom:22px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{padding:14px 16px}.tile b{display:block;font-size:25px;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}.tile.good b{color:var(--good)}.tile.bad b{color:var(--bad)}
.card{padding:20px;margin-bottom:18px;overflow-x:auto}
.two{display:grid;grid-template-columns:minmax(0,1.12fr) minmax(0,1fr);gap:18px;align-items:start}
@media (max-width:980px){.two{grid-template-columns:1fr}}
.picture{padding:0;overflow:hidden}.sticky{position:sticky;top:18px}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;padding:12px 18px;border-top:1px solid var(--line);color:var(--soft);
font-size:13px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:50%;margin-right:6px;vertical-align:-1px}
.legend i.box{border-radius:2px;background:none!important;border:2px solid}.legend i.dash{height:0;border-radius:0;
border-top:2px dotted;background:none!important;vertical-align:3px;width:16px}
table{border-collapse:collapse;width:100%;font-size:14px}
th{font-weight:500;color:var(--soft);font-size:12.5px;text-align:left;padding:0 16px 7px 0;white-space:nowrap}
td{padding:7px 16px 7px 0;border-top:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td:last-child,th:last-child{padding-right:0}
tr[data-q]{cursor:default}tr[data-q]:hover td{background:color-mix(in srgb,var(--accent) 8%,transparent)}
code{font:12.5px/1.45 ui-monospace,"Cascadia Mono",Menlo,monospace;color:var(--soft);display:block;margin-top:2px;
overflow-wrap:anywhere}
.bars{display:flex;align-items:flex-end;gap:2px;height:74px;margin:10px 0 6px}
.bars i{flex:1;background:var(--region);opacity:.75;border-radius:2px 2px 0 0;min-width:2px}
details{margin-top:14px}summary{cursor:pointer;color:var(--accent);font-size:14px;margin-bottom:8px}
.ok{color:var(--good)}.no{color:var(--bad)}.soft{color:var(--soft)}.none{color:var(--soft);margin:0}
.map.one .o.in,.map.one .partner,.map.one .area,.map.one .label{opacity:.1}
.map.one .on{opacity:1!important}
footer{color:var(--soft);font-size:13px;margin-top:26px}
"""

_SCRIPT = """
const map=document.querySelector('.map');
for(const row of document.querySelectorAll('tr[data-q]')){
 row.addEventListener('mouseenter',()=>{map.classList.add('one');
  for(const e of map.querySelectorAll('.'+row.dataset.q))e.classList.add('on')});
 row.addEventListener('mouseleave',()=>{map.classList.remove('one');
  for(const e of map.querySelectorAll('.on'))e.classList.remove('on')});}
"""

_SAID = re.compile(
    r"^\s*(register|replace)\s+query\s.*?\sas\s+", re.IGNORECASE | re.DOTALL
)  # the name stands above it

_LEGEND = (
    ('style="background:var(--answer)"', "in the answer of a query"),
    ('style="background:var(--object)"', "in none"),
    ('class="box" style="border-color:var(--query)"', "region of a query"),
    (
        'class="box" style="border-color:var(--answer)"',
        "feature that objects are joined with",
    ),
    ('class="dash" style="border-color:var(--region)"', "border of a region"),
)


Cells = Sequence[str | int]
"""A row of a table: HTML, or whole numbers."""


def page(report: Report, *, title: str, lead: str = "", footer: str = "") -> str:
    """The report as HTML; `title`, `lead` and `footer` are plain text.

    Pointing at a query's row shows its answer alone on the map.
    """
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><main>",
            f'<h1>{_text(title)}</h1><p class="lead">{_text(lead)}</p>',
            _tiles(report),
            f'<div class="two"><div class="sticky">{_picture(report)}</div>{_queries(report)}</div>',
            f'<div class="two"><div>{_regions(report)}{_quality(report)}{_layers(report)}</div>',
            f"<div>{_rejects(report)}{_steps(report)}</div></div>",
            f"<footer>{_text(footer)}</footer></main><script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def _tiles(report: Report) -> str:
    broken = [
        rule for rule in report.rules if not rule.passed and rule.severity == "error"
    ]
    kept = sum(rule.passed for rule in report.rules)
    tiles = [
        ("", f"{report.fixes:,}", f"fixes of {report.objects:,} objects"),
        ("", f"{report.changes:,}", "changes of answers"),
        ("", f"{len(report.queries):,}", "continuous queries"),
        ("", f"{sum(report.rejects.values()):,}", "rejects, kept with reasons"),
        ("", f"{report.late:,} + {report.double:,}", "late and double fixes"),
        *([("", f"{report.cut:,}", "fixes cut from windows")] if report.cut else []),
        ("", f"{len(report.regions.rows) if report.regions else 1:,}", "regions"),
    ]
    if report.latency_s:
        tiles.append(
            (
                "",
                f"{report.latency_s[0]:.1f} s",
                f"arrival to commit; 95 %: {report.latency_s[1]:.1f} s",
            )
        )
    if report.rules:
        tiles.append(
            (
                "bad" if broken else "good",
                f"{kept} / {len(report.rules)}",
                "quality rules hold",
            )
        )
    cells = (
        f'<div class="tile {name}"><b>{number}</b><span>{what}</span></div>'
        for name, number, what in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


def _picture(report: Report) -> str:
    entries = "".join(f"<span><i {look}></i>{what}</span>" for look, what in _LEGEND)
    return f'<div class="card picture">{draw(report.scene)}<div class="legend">{entries}</div></div>'


def _queries(report: Report) -> str:
    rows: list[Cells] = [
        [
            f"<b>{_text(query.name)}</b><code>{_text(_SAID.sub('', query.text))}</code>{_values(query)}",
            query.objects,
            query.pairs,
            query.plus,
            query.minus,
            query.again,
        ]
        for query in report.queries
    ]
    head = ("query", "objects", "rows", "+", "−", "0")  # noqa: RUF001 - a minus as long as the plus
    marks = [f"q{number}" for number in range(len(rows))]
    return _card(
        "Queries and their answers now",
        _table(head, rows, marks=marks) if rows else _none("No query."),
    )


def _values(query: QueryFacts) -> str:
    """The values of an aggregate by group, below its text."""
    return ", ".join(
        f"{_text(group)} <b>{value:g}</b>" for group, value in query.values
    )


def _rejects(report: Report) -> str:
    rows: list[Cells] = [
        [_text(reason), number] for reason, number in report.rejects.items()
    ]
    return _card(
        "Rejects",
        _table(("reason", "rows"), rows) if rows else _none("Every record was a fix."),
    )


def _regions(report: Report) -> str:
    regions = report.regions
    if regions is None:
        return _card("Regions", _none("The space is not divided yet."))
    top = max(*regions.rows, 1)
    bars = "".join(
        f'<i style="height:{100 * rows / top:.1f}%" title="{rows:,}"></i>'
        for rows in regions.rows
    )
    mean = sum(regions.rows) / len(regions.rows)
    about = (
        f"{len(regions.rows)} regions by {_text(regions.strategy)}, version {regions.version}: {mean:,.1f} rows on "
        f"average, standard deviation {regions.std_deviation:,.1f}"
    )
    return _card(
        f"Regions of {_text(regions.group)}",
        f'<div class="bars">{bars}</div><p class="none">{about}</p>',
    )


def _quality(report: Report) -> str:
    """A line for each table, what is broken beneath, and all rules behind a click."""
    if not report.rules:
        return _card("Quality", _none("Nothing was checked yet."))
    head = ("", "table", "rule", "severity", "expected", "found")
    broken = [rule for rule in report.rules if not rule.passed]
    lines: list[Cells] = [
        [
            _verdict(passed=all(rule.passed for rule in of)),
            _text(name),
            f"{sum(rule.passed for rule in of)} of {len(of)}",
        ]
        for name, of in _by_table(report.rules).items()
    ]
    body = _table(("", "table", "rules that hold"), lines)
    if broken:
        body += f"<h3>Broken</h3>{_table(head, [_rule(rule) for rule in broken])}"
    every = _table(head, [_rule(rule) for rule in report.rules])
    return _card(
        "Quality",
        f"{body}<details><summary>all {len(report.rules)} rules</summary>{every}</details>",
    )


def _by_table(rules: Sequence[RuleFacts]) -> dict[str, list[RuleFacts]]:
    found: dict[str, list[RuleFacts]] = {}
    for rule in sorted(rules, key=lambda rule: rule.table):
        found.setdefault(rule.table, []).append(rule)
    return found


def _rule(rule: RuleFacts) -> Cells:
    found = "" if rule.passed else rule.details
    words = (rule.table, rule.rule, rule.severity, rule.expected, found)
    return [_verdict(passed=rule.passed), *(_text(word) for word in words)]


def _layers(report: Report) -> str:
    rows: list[Cells] = [
        [
            _text(layer.name),
            layer.version,
            sum(layer.kinds.values()),
            _text(
                ", ".join(f"{number:,} {kind}" for kind, number in layer.kinds.items())
            ),
        ]
        for layer in report.layers
    ]
    head = ("layer", "version", "features", "kinds")
    return _card("Layers", _table(head, rows) if rows else _none("No layer is loaded."))


def _steps(report: Report) -> str:
    rows: list[Cells] = [
        [_text(step.name), _text(step.what), f"{step.seconds:.1f} s"]
        for step in report.steps
    ]
    return _card("What was done", _table(("step", "", "took"), rows)) if rows else ""


def _table(
    head: Sequence[str], rows: Sequence[Cells], *, marks: Sequence[str] = ()
) -> str:
    """A table of HTML cells; whole numbers stand right."""
    right = [isinstance(cell, int) or str(cell).endswith(" s") for cell in rows[0]]
    names = "".join(
        f"<th{_right(number)}>{name}</th>"
        for name, number in zip(head, right, strict=True)
    )
    body = []
    for place, row in enumerate(rows):
        mark = f' data-q="{marks[place]}"' if marks else ""
        cells = (f"{cell:,}" if isinstance(cell, int) else cell for cell in row)
        tds = "".join(
            f"<td{_right(number)}>{cell}</td>"
            for cell, number in zip(cells, right, strict=True)
        )
        body.append(f"<tr{mark}>{tds}</tr>")
    return (
        f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def _right(number: bool) -> str:  # noqa: FBT001 - a cell's look
    return ' class="n"' if number else ""


def _verdict(*, passed: bool) -> str:
    return '<span class="ok">holds</span>' if passed else '<b class="no">broken</b>'


def _card(title: str, body: str) -> str:
    return f'<section class="card"><h2>{title}</h2>{body}</section>'


def _none(text: str) -> str:
    return f'<p class="none">{text}</p>'


def _text(text: str) -> str:
    return html.escape(text)
