"""The tables of docs/performance.md, made from bench/results/*.json.

usage: python bench/table.py [--write docs/performance.md]

Without `--write` all tables are printed. With it, what stands between `<!-- table NAME -->` and `<!-- end -->` in the
file is replaced by the table of that name; a table without results stays as it is.
"""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PLACE = re.compile(r"(<!-- table (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]
Columns = dict[str, Callable[[Result], str]]


def results_of(pattern: str) -> list[Result]:
    """The results whose file's name matches: local before Spark, then by the numbers in the name, the last first."""
    paths = [
        path for path in RESULTS.glob("*.json") if re.fullmatch(pattern, path.stem)
    ]
    return [json.loads(path.read_text()) for path in sorted(paths, key=_place)]


def _place(path: Path) -> tuple[str, list[int], str]:
    numbers = re.findall(r"\d+", path.stem.removeprefix("p9"))
    return (
        path.stem.rpartition("-")[2],
        [int(digits) for digits in reversed(numbers)],
        path.stem,
    )


def number(name: str, form: str = ",.2f") -> Callable[[Result], str]:
    """A column of numbers; `-` where a result has none."""
    return lambda result: (
        format(result[name], form) if result.get(name) is not None else "-"
    )


def counter(name: str) -> Callable[[Result], str]:
    """A counter of the step, the median of a round."""
    return lambda result: (
        format(result["counters"][name], ",") if name in result["counters"] else "-"
    )


def percentiles(of: str) -> Callable[[Result], str]:
    """p50 / p95 / p99 in milliseconds."""
    return lambda result: " / ".join(
        format(result[of][f"p{p}_ms"], ",.0f") for p in (50, 95, 99)
    )


ROUND: Columns = {
    "engine": lambda result: result["engine"],
    "p50 s": number("p50_s"),
    "p95 s": number("p95_s"),
    "largest s": number("p100_s"),
    "rounds": number("rounds", "d"),
    "members in all": number("pairs", ","),
    "+ a round": number("plus_per_round", ","),
    "- a round": number("minus_per_round", ","),
    "bare KD-tree s": number("bare_s"),
}
RATE: Columns = {
    "engine": lambda result: result["engine"],
    "fixes/s": number("rate", ","),
    "segment's arrival to commit, p50 / p95 / p99 ms": percentiles("segment"),
    "fix's arrival to commit, p50 / p95 / p99 ms": percentiles("fix"),
    "mean of fixes ms": number("mean_fix_ms", ",.0f"),
    "step alone ms": number("step_alone_ms", ".1f"),
}
TICKS = {
    "replay": "a day of aircraft, 52 queries of all kinds, ticks of 1 s",
    "days": "ten days of aircraft, 52 queries of all kinds, ticks of 10 s",
    "q3": "10,000 cars, the average speed of 100 of them along their ways, a query each",
    "pairs": "10,000 cars, 300 queries for pairs within 1 km, each in a square",
    "joins": "10,000 cars, 300 joins of a circle around a car with a layer",
}
WHAT: Columns = {"round": lambda result: result["what"].partition(": ")[2]}
TABLES: dict[str, tuple[str, Columns]] = {
    "rounds": (r"(p9|p9-fast|circles|knn-16|fences)-(local|spark)", WHAT | ROUND),
    "shares": (r"p9-share-\d+-\w+", {"moving": number("share", ".0%")} | ROUND),
    "sizes": (
        r"p9-members-\d+-\w+",
        {"members of an answer": number("members", "g")} | ROUND,
    ),
    "stationary": (
        r"stationary-\d+-\w+",
        {"queries": number("queries", ",")}
        | ROUND
        | {"registering s": number("registering_s", ",.1f")},
    ),
    "neighbours": (r"knn-\d+-\w+", {"k": number("k", "d")} | ROUND),
    "caches": (
        r"p9-cache-\d+-moving-\d+-\w+",
        {"moving": number("share", ".0%"), "cache share": number("cache_share", "g")}
        | ROUND
        | {
            "objects and pairs looked at": counter("touched"),
            "caches refilled": counter("refills"),
        },
    ),
    "windows": (
        r"windows(-range)?-(local|spark)",
        {
            "one query": lambda result: {
                "windows": "windows of 50 km, every 10 km",
                "range": "range",
            }[result["kind"]],
            "engine": lambda result: result["engine"],
            "objects": number("objects", ","),
            "p50 s": number("p50_s"),
            "p95 s": number("p95_s"),
            "rounds": number("rounds", "d"),
            "bare arrays s": lambda result: (
                format(result["bare_s"], ".2f") if result["kind"] == "windows" else "-"
            ),
            "memory MB": lambda result: format(result["peak_mb"]["driver"], ","),
        },
    ),
    "ticks": (
        r"ticks-\w+-local",
        {
            "work": lambda result: TICKS[result["what"]],
            "fixes": number("fixes", ","),
            "ticks": number("ticks", ","),
            "changes": number("changes", ","),
            "CPU ms a tick": number("cpu_ms_per_tick", ",.1f"),
            "CPU s, median of rounds": number("round_cpu_p50_s"),
            "more memory MB": number("more_mb", ","),
        },
    ),
    "rates": (r"rate-\d+-\w+", RATE),
    "rates-moving": (r"rate-moving-\d+-\w+", RATE),
}


def table(name: str) -> str:
    """A table as Markdown, with a newline at its end; empty without results."""
    pattern, columns = TABLES[name]
    found = results_of(pattern)
    if not found:
        return ""
    lines = [
        list(columns),
        ["---"] * len(columns),
        *([column(one) for column in columns.values()] for one in found),
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def phases() -> str:
    """Where the rounds' time goes: medians of the phases, in seconds, and of the areas of profiles."""
    lines = []
    for result in results_of(r"(p9|knn-16|fences|profile-\w+)-(local|spark)"):
        worker = {
            f"in the workers {name}": seconds
            for name, seconds in result.get("worker", {}).items()
        }
        spent = sorted(
            {**result["phases"], **worker, **result.get("areas", {})}.items(),
            key=lambda item: -item[1],
        )
        lines.append(
            f"- {result['what']}: "
            + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in spent)
        )
    return "".join(f"{line}\n" for line in lines)


def kernels() -> str:
    """What BBoxDB's transformations and comparisons cost for all queries at once, beside plain ranges."""
    (found,) = results_of("comparing-kernels")
    lines = [
        "| case | pairs found | ms | times the plain range |\n",
        "| --- | --- | --- | --- |\n",
    ]
    for case in found["cases"]:
        cells = (
            case["case"],
            f"{case['pairs']:,}",
            f"{case['seconds'] * 1e3:.0f}",
            f"{case['to_plain']:.2f}",
        )
        lines.append("| " + " | ".join(cells) + " |\n")
    return "".join(lines)


def sharing() -> str:
    """CPU of a round and memory of each form of query, by the number of queries."""
    (found,) = results_of(r"sharing-\w+")
    counts = sorted({case["queries"] for case in found["cases"]})
    lines = [
        "| form | " + " | ".join(f"{count:,}" for count in counts) + " |\n",
        "| --- " * (len(counts) + 1) + "|\n",
    ]
    for form in dict.fromkeys(case["what"] for case in found["cases"]):
        of = {case["queries"]: case for case in found["cases"] if case["what"] == form}
        lines.append(
            "| "
            + " | ".join([form, *(_cost(of.get(count, {})) for count in counts)])
            + " |\n"
        )
    return "".join(lines)


def _cost(case: Result) -> str:
    if "more_mb" not in case:
        return "-"
    return f"{case['round_cpu_p50_s'] * 1e3:,.0f} ms, {case['more_mb']:,} MB"


def written(text: str) -> str:
    """The text with all tables that have results."""

    def replaced(match: re.Match[str]) -> str:
        made = OTHERS[match[2]]() if match[2] in OTHERS else table(match[2])
        return match[1] + (made or match[3]) + match[4]

    return PLACE.sub(replaced, text)


OTHERS: dict[str, Callable[[], str]] = {
    "phases": phases,
    "comparing": kernels,
    "sharing": sharing,
}


def main() -> None:
    """Prints all tables, or writes them into a document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path)
    document = parser.parse_args().write
    if document is not None:
        document.write_text(written(document.read_text()))
        return
    for name in TABLES:
        print(f"{name}\n\n{table(name)}")
    for name, made in OTHERS.items():
        print(f"{name}\n\n{made()}")


if __name__ == "__main__":
    main()
