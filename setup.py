"""What pyproject.toml cannot say: files from beside the packages that go into the wheel, to `st_common/shipped`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = (
    "data_contracts/*.yaml",
    "data_contracts/*.json",
    "conf/*.toml",
    "conf/schema/*.json",
    "pom.xml",
    "requirements/jars.sha256",
)


class BuildWithShipped(build_py):
    """Copies them beside the modules; where the package is installed as it lies here, they are read where they lie."""

    def run(self) -> None:
        """Builds the packages, then adds the files."""
        super().run()
        if self.editable_mode:
            return
        for pattern in SHIPPED:
            paths = sorted(ROOT.glob(pattern))
            if not paths:
                raise FileNotFoundError(f"{pattern}: the sources are not whole")
            for path in paths:
                target = Path(
                    self.build_lib, "st_common", "shipped"
                ) / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


setup(cmdclass={"build_py": BuildWithShipped})
