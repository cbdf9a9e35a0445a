"""All figures, one after the other, each in a process of its own; results as JSON in bench/results.

usage: python bench/run.py [NAME ...] [--engine spark|local] [--OPTION VALUE ...]

NAME is a figure or a group of them, as below; all figures when none is given. `--engine` and what follows go to the
programs; figures that name no engine run on the local one without it, and their results carry its name. Tables and
plots are made from the results by `bench/table.py` and `bench/plots.py`.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RATES = (100, 500, 1000, 2000, 4000)
SHARES = (1, 10, 50, 100)
MEMBERS = (1, 3, 11, 30, 100)
NEIGHBOURS = (1, 4, 16, 64, 256)
STATIONARY = (1_000, 10_000, 100_000, 1_000_000)
CACHES = (0, 75, 100)
LOCAL_W1 = [
    "throughput",
    "--engine",
    "local",
    "--replays",
    "40",
    "--batch-mb",
    "3",
    "--segment-mb",
    "1",
    "--queries",
]

ENGINE_GIVEN = {
    "w1-1000-spark-backlog-3gb": [
        "throughput",
        "--queries",
        "1000",
        "--copies",
        "11",
        "--batch-mb",
        "128",
        "--segment-mb",
        "8",
        "--warm",
        "2",
    ],
    "w1-1000-spark": ["throughput", "--queries", "1000", "--batch-mb", "16"],
    "w1-10000-spark": [
        "throughput",
        "--queries",
        "10000",
        "--copies",
        "3",
        "--batch-mb",
        "64",
    ],
    "w3-10000-spark": [
        "throughput",
        "--workload",
        "w3",
        "--queries",
        "10000",
        "--copies",
        "12",
        "--batch-mb",
        "32",
    ],
    "w2-buildings-spark": [
        "throughput",
        "--workload",
        "w2",
        "--copies",
        "3",
        "--batch-mb",
        "64",
    ],
    "w2-buildings-local": [
        "throughput",
        "--engine",
        "local",
        "--workload",
        "w2",
        "--replays",
        "40",
        "--batch-mb",
        "3",
        "--segment-mb",
        "1",
    ],
    "w3-10000-local": [
        "throughput",
        "--engine",
        "local",
        "--workload",
        "w3",
        "--queries",
        "10000",
        "--batch-mb",
        "2",
        "--segment-mb",
        "1",
    ],
    **{f"w1-{q}-local": [*LOCAL_W1, str(q)] for q in (1, 10, 100, 1000, 10000)},
    "w1-1000-by-script": ["by_script"],
    "latency-local": ["latency", "--engine", "local"],
    "latency-spark": [
        "latency",
        "--engine",
        "spark",
        "--seconds",
        "30",
        "--warm-s",
        "15",
    ],
    "latency-spark-archive": [
        "latency",
        "--engine",
        "spark",
        "--seconds",
        "25",
        "--warm-s",
        "12",
        "--archive",
    ],
}

ANY_ENGINE = {
    "p9": ["rounds"],
    "p9-fast": ["rounds", "--divisor", "250", "--rounds", "10"],
    "circles": ["rounds", "--kind", "circles", "--rounds", "10"],
    **{
        f"p9-share-{share}": ["rounds", "--share", str(share / 100), "--rounds", "10"]
        for share in SHARES
    },
    **{
        f"p9-members-{members}": ["rounds", "--members", str(members), "--rounds", "6"]
        for members in MEMBERS
    },
    **{
        f"p9-cache-{cache}-moving-{share}": [
            "rounds",
            "--cache-share",
            str(cache / 100),
            "--share",
            str(share / 100),
            "--rounds",
            "8",
        ]
        for share in (1, 10, 100)
        for cache in CACHES
    },
    **{
        f"stationary-{queries}": [
            "rounds",
            "--kind",
            "stationary",
            "--queries",
            str(queries),
            "--rounds",
            "6",
        ]
        for queries in STATIONARY
    },
    **{
        f"knn-{k}": [
            "rounds",
            "--kind",
            "nearest",
            "--queries",
            "5000",
            "--share",
            "0.5",
            "--k",
            str(k),
            "--divisor",
            "250",
            "--rounds",
            "10",
        ]
        for k in NEIGHBOURS
    },
    "fences": ["rounds", "--kind", "fences", "--objects", "10000", "--divisor", "250"],
    "berlinmod9": ["berlinmod9"],
    **{f"rate-{rate}": ["rate", "--rate", str(rate)] for rate in RATES},
    **{
        f"rate-moving-{rate}": ["rate", "--kind", "squares", "--rate", str(rate)]
        for rate in RATES
    },
    "windows": ["windows"],
    **{
        f"ticks-{what}": ["ticks", "--what", what, "--queries", queries]
        for what, queries in (
            ("replay", "52"),
            ("days", "52"),
            ("q3", "100"),
            ("pairs", "300"),
            ("joins", "300"),
        )
    },
    "sharing": ["sharing"],
    "scaling": ["scaling", "--shards", "1,4,16,64"],
    "scaling-all": ["scaling", "--shards", "1,4,16,64", "--following", "64"],
    "scaling-one": ["scaling", "--shards", "1,4,16,64", "--following", "1"],
    "scaling-p9": [
        "scaling",
        "--shards",
        "1,4,16",
        "--workload",
        "p9",
        "--queries",
        "100000",
    ],
    "scaling-guests": ["guests"],
    "scaling-w2": ["scaling", "--shards", "1,4,16,64", "--workload", "w2"],
    "scaling-roads": ["scaling", "--shards", "1,4,16,64", "--workload", "roads"],
    "scaling-w3": [
        "scaling",
        "--shards",
        "1,4,16,64",
        "--workload",
        "w3",
        "--queries",
        "10000",
    ],
    "placing": ["placing"],
    "windows-range": ["windows", "--ask", "range", "--warm", "10"],
    "profile-squares": ["profile_round"],
    "profile-stationary": ["profile_round", "--kind", "stationary"],
    "profile-knn": [
        "profile_round",
        "--kind",
        "nearest",
        "--queries",
        "5000",
        "--share",
        "0.5",
        "--divisor",
        "250",
    ],
    "profile-fences": [
        "profile_round",
        "--kind",
        "fences",
        "--objects",
        "10000",
        "--divisor",
        "250",
    ],
}

GROUPS = {
    "shares": [f"p9-share-{share}" for share in SHARES],
    "sizes": [f"p9-members-{members}" for members in MEMBERS],
    "caches": [name for name in ANY_ENGINE if name.startswith("p9-cache-")],
    "stationary": [f"stationary-{queries}" for queries in STATIONARY],
    "neighbours": [f"knn-{k}" for k in NEIGHBOURS],
    "rates": [f"rate-{rate}" for rate in RATES],
    "rates-moving": [f"rate-moving-{rate}" for rate in RATES],
    "scalings": [name for name in ANY_ENGINE if name.startswith("scaling")],
    "profiles": [name for name in ANY_ENGINE if name.startswith("profile-")],
}
FIGURES = {**ENGINE_GIVEN, **ANY_ENGINE}


def main() -> int:
    """Runs the figures that are named and stores what each prints."""
    words = sys.argv[1:]
    cut = next((n for n, word in enumerate(words) if word.startswith("--")), len(words))
    names, options = words[:cut], words[cut:]
    wanted = [figure for name in names for figure in GROUPS.get(name, [name])] or list(
        FIGURES
    )
    if unknown := [name for name in wanted if name not in FIGURES]:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join([*GROUPS, *FIGURES])}")
        return 2
    return 1 if [name for name in wanted if not ran(name, options)] else 0


def ran(name: str, options: list[str]) -> bool:
    """Whether a figure was measured with right counts."""
    module, *arguments = FIGURES[name]
    engine = (
        options[options.index("--engine") + 1] if "--engine" in options else "local"
    )
    target = name if name in ENGINE_GIVEN else f"{name}-{engine}"
    command = [sys.executable, "-m", f"bench.{module}", *arguments, *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode or not last.startswith("{"):
        print(
            f"{name}: failed ({done.returncode})\n{last}\n{done.stderr[-2000:]}",
            flush=True,
        )
        return False
    results = ROOT / "bench" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{target}.json").write_text(
        json.dumps(json.loads(last), indent=1) + "\n"
    )
    print(f"{target}: {last}", flush=True)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
