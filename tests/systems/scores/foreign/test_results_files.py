"""Files of results given as scores: what they are, and their numbers as explain takes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain import printed
from pipeline.judge.systems.scores.foreign import open_system, results_file
from pipeline.judge.systems.scores.judged import Columns

# Content of a file -> its numbers, as they are printed after --published.
FILES = {
    "benchmark.json": (
        json.dumps({"dataset": "mscoco", "metrics": {"image_retrieval_recall@5": 0.55}}),
        ["t2i R@5 55"],
    ),
    "evaluate.txt": (
        json.dumps({"txt_r1": 58.1, "img_r1": 40.0}),
        ["i2t R@1 58.1", "t2i R@1 40.0"],
    ),
    "mteb.json": (
        json.dumps(
            {"mteb_version": "2", "scores": {"test": [{"hit_rate_at_1": 0.5, "recall_at_1": 0.1}]}}
        ),
        ["R@1 50", "Recall@1 10"],
    ),
    "x_score.json": (json.dumps({"hit@1": 0.75, "ndcg_linear@5": 0.9}), ["R@1 75", "nDCG@5 90"]),
    "log.txt": ("epoch 3 test_txt_r1: 58.1 test_img_r1: 40.0\n", ["i2t R@1 58.1", "t2i R@1 40.0"]),
}


def of_mteb(split: str, **by_subset: float) -> dict[str, object]:
    """A split of mteb's results, with the same number in all old and new names of a hit."""
    scores = []
    for subset, number in by_subset.items():
        hits = {"hit_rate_at_1": number, "cv_recall_at_1": number}
        nauc = {"nauc_ndcg_at_1_max": float("nan"), "kg": None}
        scores.append({**hits, **nauc, "main_score": number, "hf_subset": subset})
    return {split: scores}


def lines(*objects: object) -> str:
    return "\n".join(map(json.dumps, objects))


def epoch(number: int, recall: float) -> dict[str, float]:
    return {"image_to_text_R@1": recall, "image_to_text_mean_rank": 3.2, "epoch": number}


# A file with the numbers of several evaluations; words behind it -> the numbers, or what is said.
SEVERAL = {
    "mteb.json": (
        json.dumps({"scores": of_mteb("test", en=0.5, fr=0.712) | of_mteb("dev", en=0.25)}),
        {
            "": r"holds 3 evaluations: en:test, fr:test, en:dev; name one, such as \S*mteb\.json:en:dev",
            ":test": "holds 2 evaluations: en:test, fr:test; name one",
            ":it": "holds no results of it, but en:test, fr:test, en:dev; name one",
            ":fr:test": ["R@1 71.2"],
            ":test:en": ["R@1 50"],
            ":dev": ["R@1 25"],
        },
    ),
    "results.jsonl": (
        lines(epoch(1, 0.5), epoch(2, 0.61), epoch(2, 0.61), epoch(3, 0.7), epoch(3, 0.75)),
        {
            "": "holds 4 evaluations",
            ":2": ["i2t R@1 61"],
            ":3": "holds 2 evaluations: 3:line4, 3:line5; name one",
            ":3:line4": ["i2t R@1 70"],
        },
    ),
    "evaluate.txt": (
        lines({"txt_r1": 58.1, "img_r1": 40.0}, {"txt_r1": 60.25, "img_r1": 41}),
        {":line2": ["i2t R@1 60.25", "t2i R@1 41.00"], ":line3": "but line1, line2; name one"},
    ),
    "blip.txt": (
        lines({"val_txt_r1": 50.5, "test_txt_r1": 40.5, "train_loss": 1}),
        {"": "evaluations: val, test;", ":val": ["i2t R@1 50.5"]},
    ),
    "log.txt": (
        "Epoch: [3] test_txt_r1: 58.1\n{'epoch': 4, 'test_txt_r1': 59.2}\n",
        {"": "evaluations: 3, 4;", ":4": ["i2t R@1 59.2"]},
    ),
    "x:metrics.json": (
        json.dumps({"metrics": {"vidore/a:b": {"ndcg_at_5": 0.61}, "c": {"ndcg_at_5": 0.7}}}),
        {":vidore/a:b": ["nDCG@5 61"], ":c": ["nDCG@5 70"]},
    ),
    "own.yaml": ("val: {i2t_R@1: 0.5}\ntest: {i2t_R@1: 71.2}\n", {":val": ["i2t R@1 0.5"]}),
}


@pytest.mark.parametrize("name", FILES)
def test_results_are_no_scores_and_their_numbers_can_be_explained(
    name: str, tmp_path: Path
) -> None:
    content, numbers = FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="results, not scores") as scores:
        open_system(name, root=tmp_path)
    line = str(scores.value).rpartition("--published ")[2]
    for typed in (line, str(tmp_path / name)):
        assert list(map(str, printed.read(typed)[0])) == numbers


@pytest.mark.parametrize("name", SEVERAL)
def test_one_of_several_results_is_chosen_by_its_labels(name: str, tmp_path: Path) -> None:
    content, choices = SEVERAL[name]
    (tmp_path / name).write_text(content)
    for words, expected in choices.items():
        typed = f"{tmp_path / name}{words}"
        if isinstance(expected, list):
            assert list(map(str, printed.read(typed)[0])) == expected, typed
        else:
            with pytest.raises(InputError, match=expected):
                printed.read(typed)


def test_the_numbers_of_queries_are_those_of_the_choice(tmp_path: Path) -> None:
    sets = {"a": {"hit@1": 0.5, "num_data": 52}, "b": {"hit@1": 0.5, "num_data": 40}}
    file = tmp_path / "model.json"
    file.write_text(json.dumps({"metrics": {"image": sets}}))
    assert [results_file.queries(f"{file}:{each}") for each in sets] == [52, 40]


def test_several_results_are_no_scores_and_one_of_them_is_named(tmp_path: Path) -> None:
    (tmp_path / "evaluate.txt").write_text(SEVERAL["evaluate.txt"][0])
    advice = r"save.*with --published \S*evaluate\.txt:line2$"
    with pytest.raises(InputError, match=f"holds LAVIS' or BLIP's results, not scores; .*{advice}"):
        open_system("evaluate.txt", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    {
        '{"mteb_version": "2", "recall_at_1": NaN, "ndcg_at_5": null}': "holds no number by a name",
        '{"a":' * 99_999: "is no whole JSON: nested too deeply",
        '{"a":' * 99 + '{"R@1": 5}' + "}" * 99: "is no whole JSON: nested more than 50 levels deep",
        '{"R@1": 58.1, "R@5": 8': "is no whole JSON: .* at character 22",
        '{"R@1": 58.1, "R@1": 60}': "is no whole JSON: has 'R@1' twice in an object",
        " " * (1 << 23) + '{"R@1": 58.1}': "is larger than 8,388,608 bytes",
    }.items(),
    ids=["no numbers", "bomb", "deep", "cut", "twice", "large"],
)
def test_files_without_numbers_are_refused_in_a_line(
    content: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(InputError, match=rf"^--published \S*results\.json: {said}"):
        printed.read(str(tmp_path / "results.json"))


def test_numbers_that_cannot_be_are_said_to_be_a_files(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"R@1": 58.1, "R@5": 40.2}')
    with pytest.raises(InputError, match=r"x\.json: --published: R@5 40\.2 is less than R@1 58\.1"):
        printed.read(str(tmp_path / "x.json"))


def test_a_file_that_is_not_there_is_no_published_row(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(InputError, match=r"no such file; did you mean \S*/results\.json\?$"):
        printed.read(f"{tmp_path}/result.json:en:test")


def test_results_without_recalls_are_known_by_their_tool(tmp_path: Path) -> None:
    content = {"metadata": {"vidore_benchmark_version": "5"}, "metrics": {"x": {"ndcg_at_5": 0.6}}}
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(
        InputError, match=r"x\.json: holds vidore-benchmark results, not scores; run mteb"
    ):
        open_system("x.json", root=tmp_path)


def test_damaged_scores_are_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"caption:1": {"image:1": "r"}')
    np.save(tmp_path / "sims.npy", np.zeros((4, 9)))
    for name in ("run.json", "sims.npy"):
        with pytest.raises(InputError) as raised:
            open_system(name, Columns(captions_per_image=2), root=tmp_path)
        assert "results" not in str(raised.value)


def test_a_file_whose_bytes_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scores.npy").symlink_to("/proc/self/mem")  # a regular file without a first byte
    with pytest.raises(InputError, match=r"^cannot read \S*/scores\.npy: Input/output error"):
        open_system("scores.npy", root=tmp_path)
