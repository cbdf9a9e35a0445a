"""What tools have in common that write a page of docs/ from the code."""

import argparse
import sys
from pathlib import Path


def write_or_check(page: Path, text: str, *, target: str, about: str | None) -> int:
    """Writes a page; with `--check` on the command line compares it instead. Gives back the exit code.

    Args:
        page: where it stands.
        text: what it should be.
        target: of `make`, which writes it.
        about: what the tool says of itself to `--help`.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page} is not what the code says: make {target}", file=sys.stderr)
    return 1
