"""What a terminal, a log file and a mistyped word show."""

from __future__ import annotations

import errno
import io
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from pipeline.foundation.parts.errors import unknown
from stages import cli, progress
from stages.progress import Progress
from stages.terminal import judged

pytestmark = pytest.mark.slow


def pipeline(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, *arguments: str | Path
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    monkeypatch.setattr(sys, "argv", ["pipeline", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), out, err


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that pass between two looks at the clock, and the time."""
    state = [0.0, 0.0]

    def now() -> float:
        state[1] += state[0]
        return state[1]

    monkeypatch.setattr(progress.time, "monotonic", now)
    return state


def test_without_a_terminal_progress_is_a_line_now_and_then(clock: list[float], capfd: Any) -> None:
    clock[0] = 1.0
    with Progress("extract grid", "image", 200) as bar:
        for _ in range(200):
            bar.update()
    lines = capfd.readouterr().err.splitlines()
    assert 3 <= len(lines) <= 14
    assert re.fullmatch(
        r"extract grid: \d+ of 200 images, [\d.]+ images/s, 0:0\d:\d\d left", lines[0]
    )
    assert re.fullmatch(r"extract grid: 200 of 200 images in 0:0\d:\d\d", lines[-1])


def test_the_time_left_is_that_of_what_is_left(clock: list[float], capfd: Any) -> None:
    with Progress("head", "step", 100) as bar:
        clock[0] = 31.0
        for _ in range(2):
            bar.update(40)
    for line in capfd.readouterr().err.splitlines()[:2]:
        form = r"head: (\d+) of 100 steps, ([\d.]+) steps/s, 0:(\d\d):(\d\d) left"
        shown = re.fullmatch(form, line)
        assert shown is not None, line
        done, rate, minutes, seconds = map(float, shown.groups())
        assert (60 * minutes + seconds) * rate == pytest.approx(100 - done, rel=0.05)


def test_what_fails_is_not_said_to_be_done(clock: list[float], capfd: Any) -> None:
    def fail() -> None:
        with Progress("head", "step", 100) as bar:
            clock[0] = 31.0
            bar.update(40)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("head: 40 of 100 steps, ")


def test_what_is_quickly_done_says_nothing(capfd: Any) -> None:
    with Progress("rank", "query", 3) as bar:
        bar.update(3)
    assert capfd.readouterr().err == ""


def test_units_done_before_do_not_count_as_speed(clock: list[float], capfd: Any) -> None:
    with Progress("head", "step") as bar:
        bar.resume(900, 1000)
        clock[0] = 31.0
        bar.update()
    line = capfd.readouterr().err.splitlines()[0]
    assert line.startswith("head: 901 of 1,000 steps, 0.0")


def test_a_terminal_has_a_bar_and_messages_stand_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("head", "step", 10) as bar:
        bar.update(5)
        progress.say("epoch 1")
        bar.update(5)
    shown = terminal.getvalue()
    before = shown[: shown.index("epoch 1")]
    assert "head" in before
    assert before.split("\r")[-1].strip() == ""  # the bar is wiped before the message


def test_an_error_does_not_stand_behind_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def fail() -> None:
        with Progress("extract", "image", 10) as bar:
            bar.update(3)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    progress.say("error: broken")
    last = terminal.getvalue().splitlines()[-1]
    assert click.unstyle(last.split("\r")[-1]) == "error: broken"


@pytest.mark.parametrize(
    ("variables", "is_terminal", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_and_bold_are_for_terminals_and_two_variables(
    variables: dict[str, str],
    is_terminal: bool,
    expected: bool,
    scores: Path,
    capfd: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm"} | variables).items():
        monkeypatch.setenv(name, value)
    shown = {name: Terminal() if is_terminal else io.StringIO() for name in ("stdout", "stderr")}
    for name, stream in shown.items():
        monkeypatch.setattr(sys, name, stream)
    pipeline(monkeypatch, capfd, "evaluate", scores, best(scores))
    pipeline(monkeypatch, capfd, "evaluate", scores, "--latex", "--json")
    progress.say("warning: of a thing", "no warning: here")
    out, err = (stream.getvalue() for stream in shown.values())
    assert ("\x1b[1m600.0\x1b[0m" in out) == expected
    assert ("\x1b[31m\x1b[1merror:\x1b[0m --latex" in err) == expected
    assert "\x1b[33m\x1b[1mwarning:\x1b[0m of a thing\nno warning: here\n" in err or not expected
    assert ("\x1b" in out + err) == expected


def test_verdicts_of_trace_verify_and_explain_have_colour(
    trained: Path, scores: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr"
    commands = {
        ("trace", store, "--root", trained, "--embed", "0"): "\x1b[32mall match\x1b[0m",
        ("store", "verify", store): "\x1b[32mall as written\x1b[0m",
        ("explain", scores, "--published", "i2t_R@1=99.9"): "\x1b[1mNo reason found",
    }
    for variable, has_colour in {"FORCE_COLOR": True, "NO_COLOR": False}.items():
        monkeypatch.setenv(variable, "1")
        for command, verdict in commands.items():
            code, out, _ = pipeline(monkeypatch, capfd, *command)
            assert (code, verdict in out, "\x1b" in out) == (0, has_colour, has_colour)


@pytest.mark.parametrize("verdict", ["matches", "differs", "missing", "not recorded"])
def test_the_verdict_of_a_step_has_colour_and_words_in_its_path_have_none(verdict: str) -> None:
    line = f"    a missing/matches of it  c0ffee  {verdict}: 1 missing"
    assert judged(line).count("\x1b[0m") == 1
    assert click.unstyle(judged(line)) == line


def test_a_log_has_no_colour(
    tmp_path: Path, scores: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    log = ("--log", tmp_path / "run.log")
    _, out, _ = pipeline(monkeypatch, capfd, "evaluate", scores, best(scores), *log)
    assert "\x1b" in out
    assert "\x1b" not in (tmp_path / "run.log").read_text(encoding="utf-8")


def test_quiet_shows_no_bar_and_no_lines(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(Progress, "quiet", True)
    clock[0] = 100.0
    with Progress("head", "step", 10) as bar:
        bar.update(5)
    assert terminal.getvalue() == ""


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """A matrix of 10 images and 50 captions."""
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).random((10, 50)))
    return tmp_path / "scores.npy"


def best(scores: Path) -> Path:
    """Scores of the same images and captions that find all."""
    file = scores.with_name("best.npy")
    np.save(file, np.eye(10).repeat(5, axis=1))
    return file


def test_a_log_holds_the_command_what_it_printed_and_its_error(
    tmp_path: Path, scores: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "run.log"
    code, out, _ = pipeline(monkeypatch, capfd, "evaluate", "--system", scores, "--log", log)
    assert code == 0
    code, _, err = pipeline(
        monkeypatch, capfd, "evaluate", "--system", tmp_path / "none.npy", "--log", log
    )
    assert code == 2
    text = log.read_text()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", line) for line in text.splitlines())
    said = [line[21:] for line in text.splitlines()]
    assert said[0] == f"pipeline evaluate --system {scores} --log {log}"
    assert [line for line in out.splitlines() if line not in said] == []
    assert said[-1] == err.strip()


def test_a_log_that_cannot_be_written_is_refused(
    tmp_path: Path, scores: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = pipeline(
        monkeypatch, capfd, "evaluate", "--system", scores, "--log", scores / "log"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "--log" in err
    log = tmp_path / "new" / "folder" / "log"
    code, _, _ = pipeline(monkeypatch, capfd, "evaluate", "--system", scores, "--log", log)
    assert code == 0
    assert "pipeline evaluate" in log.read_text()


@pytest.mark.specification
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evalute"], "unknown command 'evalute'; did you mean evaluate?"),
        (["verify", "x.zarr"], "unknown command 'verify'; did you mean store verify?"),
        (["store", "verfy"], "unknown command 'verfy'; did you mean verify?"),
        (["store", "evaluate"], "unknown command 'evaluate'; did you mean evaluate?"),
        (["stroe", "verify"], "unknown command 'stroe'; did you mean store?"),
        (["extract", "--featre", "region"], "unknown option '--featre'; did you mean --feature?"),
        (["evaluate", "--zzz"], "unknown option '--zzz'; the nearest of "),
        (["--root", "x", "evaluate"], "comes after their name: pipeline COMMAND --root …"),
        (["extract", "--feature", "rigion"], "'rigion'; did you mean region?"),
        (["train", "--feature", "region", "--pooling", "gpoo"], "'gpoo'; did you mean gpo?"),
        (
            ["evaluate", "s.npy", "--protocol", "flickr30k_1kk"],
            "'flickr30k_1kk'; did you mean flickr30k_1k?",
        ),
        (
            ["evaluate", "s.npy", "--beside", "flickr30"],
            "--beside flickr30: no published rows of it are shipped",
        ),
        (["evaluate", "smis.npy"], "smis.npy: no such file; did you mean sims.npy?"),
        (
            ["compare", "mine-region", "mine-regoin"],
            "did you mean similarities/sample/mine-region.zarr?",
        ),
        (
            ["rescore", "mine-regoin", "--by", "csls"],
            "did you mean similarities/sample/mine-region.zarr?",
        ),
        (["rescore", "mine-region", "--by", "cls"], "unknown rescorer 'cls'; did you mean csls?"),
        (["score", "--system", "mine-regoin"], "did you mean heads/sample/mine-region?"),
        (["store", "verify", "regoin.zarr"], "did you mean region.zarr?"),
        (
            ["explain", "sims.npy", "--published", "coco_5k:IMRMA"],
            "no published row has 'IMRMA'; the nearest: IMRAM R BUTD bigru ensemble (i2t_R@1=53.7,",
        ),
        (
            ["tables", "--table", "vse2ad_tabel1"],
            "unknown table 'vse2ad_tabel1'; did you mean vse2ad_table1?",
        ),
        (["audit", "smaple"], "unknown data set 'smaple'; did you mean sample?"),
        (
            ["train", "--feature", "region", "--recipe", "vse2a"],
            "unknown recipe 'vse2a'; did you mean vse2ad?",
        ),
        (
            ["train", "--feature", "region", "-S", "traning.sample.epochs=3"],
            "did you mean training?",
        ),
        (
            ["extract", "--feature", "region", "--dataset", "flickr9k"],
            "unknown data set 'flickr9k'; did you mean",
        ),
        (["extract"], "Missing option '--feature'"),
    ],
)
def test_a_mistyped_word_is_one_line(
    words: list[str], meant: str, capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "params.yaml").write_bytes((Path(__file__).parents[2] / "params.yaml").read_bytes())
    for name in ("heads/sample/mine-region", "similarities/sample/mine-region.zarr", "region.zarr"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sims.npy").touch()
    monkeypatch.chdir(tmp_path)
    code, _, err = pipeline(monkeypatch, capfd, *words)
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("error: ")
    assert meant in err


def test_where_none_is_meant_all_are_listed_and_of_many_those_that_are_near() -> None:
    assert (
        str(unknown("pooling", "zzz", ["mean", "max"]))
        == "unknown pooling 'zzz'; there are: mean, max"
    )
    many = [*"abcdefghijklmnopqrstuvw", "my-recipe"]
    assert str(unknown("recipe", "any", many, "a file")) == (
        "unknown recipe 'any'; the nearest of 24: n, a; a file has all"
    )
    assert (
        str(unknown("recipe", "zzzzz", many, "a file"))
        == "unknown recipe 'zzzzz'; there are 24; a file has all"
    )
    assert str(unknown("recipe", "zzzzz", many)) == "unknown recipe 'zzzzz'; there are 24"


@pytest.mark.parametrize("name", cli.commands())
def test_help_fits_and_its_examples_can_be_pasted(
    name: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = pipeline(monkeypatch, capfd, *name.split(), "--help")
    assert [line for line in out.splitlines() if len(line) > 80] == []
    examples = re.findall(r"^  Example: ((?:.*\\\n)*.*\n)\n", out, re.MULTILINE)
    assert len(examples) == out.count("Example: ") > 0
    written = (cli.command(name).help or "").replace("\b\n", "")
    expected = [
        each.removeprefix("Example: ")
        for each in written.split("\n\n")
        if each.startswith("Example: ")
    ]
    assert [shlex.split(each.replace("\\\n", "")) for each in examples] == [
        shlex.split(each.replace("\\\n", "")) for each in expected
    ]


COMMAND = "`pipeline evaluate --system vse2ad-RGP-bigru-s0`"
SENTENCE = f"  results/a table.md: {'of words ' * 6}made by {COMMAND} by {COMMAND}"
LINES = [
    "  results/a table.md: of words of words of words of words of words of words made",
    f"    by {COMMAND} by",
    f"    {COMMAND}",
]


def test_lines_are_as_wide_as_columns_says_and_paths_and_commands_whole(
    monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    progress.say(SENTENCE, err=False)
    monkeypatch.setenv("COLUMNS", "80")
    progress.say(SENTENCE, "short", err=False)
    assert capfd.readouterr().out.splitlines() == [SENTENCE, *LINES, "short"]
    monkeypatch.setenv("COLUMNS", "12")
    progress.say("results/a table.md: 3 rows")
    assert capfd.readouterr().err.splitlines() == ["results/a table.md:", "  3 rows"]


def test_a_terminal_s_lines_are_broken_and_an_error_that_a_program_reads_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, _, err = pipeline(monkeypatch, capfd, "evaluate", "--system", tmp_path / "none.npy")
    assert (code, err.count("\n")) == (2, 1)
    assert len(err) > 40
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    progress.say("error: " + "of words " * 6, whole=True)
    assert terminal.getvalue().count("\n") == 2


def test_a_link_that_leads_in_a_circle_gives_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("circle").symlink_to("circle")
    Path("captions.csv").write_text("image,caption\na.jpg,a\n")
    for arguments in (
        ("init", "mine", "--images", "circle", "--captions", "captions.csv"),
        ("store", "verify", "circle"),
        ("manifest", "mine", "--images", "circle", "--annotations", "captions.csv"),
    ):
        code, out, err = pipeline(monkeypatch, capfd, *arguments)
        assert (code, out, err.count("\n"), err.startswith("error: ")) == (2, "", 1, True), (
            arguments
        )


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_says_how_to_go_on_and_a_second_one_ends_at_once(
    number: int, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    ends: list[int] = []
    monkeypatch.setattr(cli.os, "_exit", ends.append)
    monkeypatch.setattr(cli.cli, "main", lambda **options: signal.raise_signal(number))
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert pipeline(monkeypatch, capfd) == (
            code,
            "",
            f"{said}; run the same command again to resume\n",
        )
        signal.raise_signal(number)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert ends == [code]


def test_a_ctrl_c_while_python_ends_does_not_change_the_exit_code() -> None:
    script = """
import os, signal
from stages import cli
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)
late = Late()  # is deleted when Python has taken its handlers of signals away
def interrupted(**options):
    raise KeyboardInterrupt
cli.cli.main = interrupted
cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        130,
        "interrupted; run the same command again to resume\n",
    )


class Unwritable(io.StringIO):
    """A stream of a full disk, or whose reader has ended."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def fileno(self) -> int:
        return self.number

    number = -1


def test_messages_that_cannot_be_written_are_left_out_and_results_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "stream").open("w") as file:
        for error in (BrokenPipeError(errno.EPIPE, ""), OSError(errno.ENOSPC, "full")):
            stream = Unwritable(error)
            stream.number = file.fileno()
            monkeypatch.setattr(sys, "stderr", stream)
            progress.say("a message")
            monkeypatch.setattr(sys, "stdout", stream)
            with pytest.raises(type(error)) as raised:
                progress.say("a result", err=False)
            named = "standard output" if error.errno == errno.ENOSPC else None
            assert raised.value.filename == named


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    np.save(tmp_path / "sims.npy", np.eye(2, dtype="f4"))
    words = "evaluate sims.npy --captions-per-image 1 --run run.txt --log log.txt >&- 2>&- <&-"
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m stages.cli {words}"], cwd=tmp_path
    )
    assert done.returncode == 0
    assert "RSUM 600.0" in (tmp_path / "log.txt").read_text()
    assert len((tmp_path / "run.txt").read_text().splitlines()) == 8


def test_a_log_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full(io.StringIO):
        name = "a.log"
        flush = fail

    monkeypatch.setattr(Progress, "log", Full())
    monkeypatch.setattr(sys, "stderr", progress.Copied(sys.stderr, Progress.log))
    monkeypatch.setattr(sys, "stdout", progress.Copied(sys.stdout, Progress.log))
    with pytest.raises(OSError, match="No space left") as raised:
        progress.say("a message")
    assert raised.value.filename == "a.log"
    progress.say("printed without it")
    assert capfd.readouterr().err == "printed without it\n"
