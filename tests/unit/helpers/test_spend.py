"""The measurement of what a command and its children use."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spend import spend


def test_a_childs_memory_and_time_count(tmp_path: Path) -> None:
    work = (
        "import time; held = bytearray(80_000_000); end = time.process_time() + 0.3\nwhile time.process_time() < end: 0"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}]); print('done'); sys.exit(3)"
    spent = spend([sys.executable, "-c", parent], tmp_path, tmp_path / "out")
    assert spent.code == 3
    assert spent.cpu_s >= 0.3 > spent.own_cpu_s
    assert spent.peak_bytes >= 80_000_000
    assert (tmp_path / "out").read_text() == "done\n"
