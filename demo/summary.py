"""The demo's last words: what it came to, as tables on the screen."""

from rich.console import Console
from rich.table import Table

from tests.kit.report import Report


def show(console: Console, report: Report) -> None:
    """Prints the figures of a report and the answers of its queries."""
    console.print(figures(report))
    console.print(answers(report))


def figures(report: Report) -> Table:
    """What a stream came to, a line for each figure."""
    table = Table(
        title=f"Stream {report.stream}, engine {report.engine}",
        show_header=False,
        title_justify="left",
    )
    table.add_column(style="bold")
    table.add_column()
    rejects = ", ".join(
        f"{number:,} {reason}" for reason, number in report.rejects.items()
    )
    span = (
        f", {report.first:%F %T} to {report.last:%F %T}"
        if report.first and report.last
        else ""
    )
    table.add_row("fixes", f"{report.fixes:,} of {report.objects:,} objects{span}")
    table.add_row("rejects", f"{sum(report.rejects.values()):,}: {rejects}")
    table.add_row("late, double", f"{report.late:,}, {report.double:,}")
    table.add_row(
        "layers",
        ", ".join(f"{one.name} {sum(one.kinds.values()):,}" for one in report.layers),
    )
    table.add_row("regions", _regions(report))
    table.add_row("changes", f"{report.changes:,} of {len(report.queries)} queries")
    table.add_row("latency", _latency(report))
    table.add_row("quality", _quality(report))
    return table


def answers(report: Report) -> Table:
    """The queries with the sizes of their answers and how many changes they had."""
    table = Table(title="Queries and their answers at the end", title_justify="left")
    table.add_column("query", style="bold")
    for name in ("objects", "rows", "+", "-", "0"):
        table.add_column(name, justify="right")
    table.add_column("values")
    for query in report.queries:
        numbers = (query.objects, query.pairs, query.plus, query.minus, query.again)
        values = ", ".join(f"{group} {value:g}" for group, value in query.values)
        table.add_row(query.name, *(f"{number:,}" for number in numbers), values)
    return table


def _regions(report: Report) -> str:
    regions = report.regions
    if regions is None:
        return "none"
    mean = sum(regions.rows) / len(regions.rows)
    return f"{len(regions.rows)}, {mean:.1f} rows on average, standard deviation {regions.std_deviation:.1f}"


def _latency(report: Report) -> str:
    if report.latency_s is None:
        return "unknown"
    return "arrival to committed change {:.2f} s (median), {:.2f} s (95 %)".format(
        *report.latency_s
    )


def _quality(report: Report) -> str:
    broken = [rule for rule in report.rules if not rule.passed]
    names = (
        f"; broken: {', '.join(f'{rule.table} {rule.rule}' for rule in broken)}"
        if broken
        else ""
    )
    return f"{len(report.rules) - len(broken)} of {len(report.rules)} rules hold{names}"
