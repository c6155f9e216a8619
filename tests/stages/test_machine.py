"""`pipeline lab machine` shows what all commands go by."""

from __future__ import annotations

import given_cpus
import pytest
from click.testing import CliRunner

from pipeline.foundation.compute import measured
from stages import cli

pytestmark = pytest.mark.slow


def test_the_choices_and_the_measurements_are_shown(given_cpu: dict[str, float]) -> None:
    ran = CliRunner().invoke(cli.cli, ["lab", "machine"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    out = ran.stdout
    if given_cpu == given_cpus.PLAIN:
        assert (
            "a product takes 24 times as long as in float32, so --precision bf16 is refused" in out
        )
    else:
        assert "a product takes 0.5 times as long as in float32\n" in out
    assert str(measured.kept_in()) in out
