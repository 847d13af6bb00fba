"""Builds the native kernel, once per instruction set; without a compiler the package works in plain JAX."""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

SOURCES = Path("native")
LEVELS = {  # name: (compiler flags, bytes of a vector, rows and columns of a tile)
    "base": ([], 16, 4, 6),
}
if platform.machine().lower() in ("x86_64", "amd64"):
    LEVELS = {
        "base": ([], 16, 3, 4),
        "v3": (["-march=x86-64-v3"], 32, 3, 4),
        "v4": (["-march=x86-64-v4", "-mprefer-vector-width=512"], 64, 4, 6),
    }


class BuildKernel(build_ext):
    """Compiles `kernel.cpp` for every level and `handlers.cpp` once, and links them into one library."""

    def build_extension(self, ext: Extension) -> None:
        try:
            self.compile_and_link(ext)
        except Exception as error:
            sentence = "lintra: the native kernel could not be compiled; plain JAX will be used, which is slower."
            print(sentence, file=sys.stderr)
            raise CompileError(str(error)) from error  # `optional` lets the installation go on

    def compile_and_link(self, ext: Extension) -> None:
        import jaxlib  # its wheel carries the headers of XLA's foreign function interface

        flags = ["-O3", "-std=c++17", "-fPIC", "-Wall"]
        objects = []
        for name, (level_flags, width, rows, columns) in LEVELS.items():
            macros = {"ISA": name, "VECTOR_BYTES": width, "TILE_ROWS": rows, "TILE_COLS": columns}
            objects += self.compiler.compile(
                [str(SOURCES / "kernel.cpp")],
                output_dir=str(Path(self.build_temp) / name),
                macros=[(f"LINTRA_{key}", str(value)) for key, value in macros.items()],
                extra_postargs=flags + level_flags,
                depends=ext.depends,
            )
        headers = Path(jaxlib.__file__).parent / "include"
        objects += self.compiler.compile(
            [str(SOURCES / "handlers.cpp")],
            output_dir=self.build_temp,
            macros=[("LINTRA_X86_LEVELS", "1")] if len(LEVELS) > 1 else [],
            extra_postargs=[*flags, "-isystem", str(headers)],
            depends=ext.depends,
        )
        target = self.get_ext_fullpath(ext.name)
        self.compiler.link_shared_object(objects, target, target_lang="c++", extra_postargs=["-s"])

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"  # no Python in it, so one name for all versions


depends = [str(path) for path in sorted(SOURCES.iterdir())]
kernel = Extension("lintra.kernel._native", sources=[], depends=depends, optional=True, language="c++")
setup(ext_modules=[kernel], cmdclass={"build_ext": BuildKernel})
