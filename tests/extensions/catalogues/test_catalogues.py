"""`pipeline evaluate --export`: what catalogues' own schema and readers find in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as parquet
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.judge.tables.catalogues import CATALOGUES, of_form

pytestmark = pytest.mark.slow

# https://github.com/evaleval/every_eval_ever at 9bce413, by its licence beside it.
SCHEMA = json.loads(Path(__file__).with_name("eval.schema.json").read_text(encoding="utf-8"))
# Characters that a terminal obeys, or that reverse text.
HOSTILE = "Evil\x1b[31m\x07\x7f\x9b1m\u202eend"
FOR_EVERY_EVAL_EVER = {"model": "us/ours", "organisation": "us", "relationship": "first_party"}
FOR_EVAL_RESULTS = {"dataset": "others/benchmark", "task_id": "1e5", "metric": "t2i_R@1"}
IMAGES, CAPTIONS = 20, 100

Export = Callable[..., str]


@pytest.fixture
def export(pipeline: Any, rng: np.random.Generator) -> Export:
    """What `evaluate` prints in a form for `sims.npy`, of 20 images with five captions each."""
    scores = rng.normal(size=(IMAGES, CAPTIONS))
    scores[np.arange(CAPTIONS) // 5, np.arange(CAPTIONS)] += 2
    np.save("sims.npy", scores)

    def text(form: str, about: dict[str, str], *options: str, file: str = "sims.npy") -> str:
        said = []
        for key, value in about.items():
            said += ["--about", f"{key}={value}"]
        code, out, err = pipeline("evaluate", file, "--export", form, *said, *options)
        assert code == 0, err
        return str(out)

    return text


def record_of(text: str) -> dict[str, Any]:
    """A record of Every Eval Ever that its schema accepts, with finite numbers alone."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    record: dict[str, Any] = json.loads(text, parse_constant=refuse)
    jsonschema.Draft7Validator(SCHEMA).validate(record)
    for result in record["evaluation_results"]:
        metric = result["metric_config"]
        # float() reads "Infinity" too
        lower, upper = float(metric["min_score"]), float(metric["max_score"])
        assert lower <= result["score_details"]["score"] <= upper
    return record


def test_a_record_holds_every_number_with_its_interval(pipeline: Any, export: Export) -> None:
    options = ("--folds", "2", "--metric", "nDCG@10", "--metric", "MedR")
    about = {**FOR_EVERY_EVAL_EVER, "dataset": "others/benchmark"}
    record = record_of(export("every-eval-ever", about, *options))
    (measured,) = json.loads(pipeline("evaluate", "sims.npy", *options, "--json")[1])
    results = {each["evaluation_result_id"]: each for each in record["evaluation_results"]}
    assert len(results) == 2 * 6 + 1
    for way in ("i2t", "t2i"):
        for metric in ("R@1", "R@5", "R@10", "MedR", "MeanR", "nDCG@10"):
            score = results[f"benchmark.2fold.{way}.{metric}"]["score_details"]
            assert score["score"] == measured[way][metric]
            ends = measured["interval"][way].get(metric)
            assert ("uncertainty" in score) == (ends is not None) == (metric != "MeanR")
            if ends is not None:
                interval = score["uncertainty"]["confidence_interval"]
                assert [interval["lower"], interval["upper"]] == ends
                assert interval["confidence_level"] == 0.95
    total = results["benchmark.2fold.RSUM"]
    assert total["score_details"]["score"] == measured["RSUM"]
    assert total["metric_config"]["max_score"] == 600
    assert "of the share of 600" in str(total["score_details"]["uncertainty"])
    recall, median = (results[f"benchmark.2fold.t2i.{name}"] for name in ("R@5", "MedR"))
    assert recall["metric_config"]["metric_id"] == "hit_rate_at_5"
    assert recall["score_details"]["details"] == {"queries": "100", "images": "20"}
    assert recall["source_data"]["hf_repo"] == "others/benchmark"
    assert median["metric_config"]["max_score"] == "Infinity"
    assert median["metric_config"]["lower_is_better"]
    assert "percentile bootstrap" in str(median["score_details"]["uncertainty"])
    assert record["model_info"]["additional_details"]["deployment_type"] == "unknown"


def test_the_same_evaluation_has_one_id_and_another_has_another(
    export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {**FOR_EVERY_EVAL_EVER, "dataset": "others/benchmark"}
    first = record_of(export("every-eval-ever", about))
    monkeypatch.setattr("time.time", lambda: 2e9)
    second = record_of(export("every-eval-ever", about))
    assert second.pop("retrieved_timestamp") == "2000000000"
    assert first.pop("retrieved_timestamp") != "2000000000"
    assert first == second
    of_folds = record_of(export("every-eval-ever", about, "--folds", "2"))
    assert of_folds["evaluation_id"] != first["evaluation_id"]


def test_what_lists_of_one_direction_do_not_tell_is_left_out(export: Export) -> None:
    scores = np.load("sims.npy")
    lines = []
    for caption in range(CAPTIONS):
        for rank, image in enumerate(np.argsort(-scores[:, caption])[:3]):
            lines.append(f"caption:{caption} Q0 image:{image} {rank} {scores[image, caption]} run")
    Path("run.trec").write_text("\n".join(lines))
    about = {**FOR_EVERY_EVAL_EVER, "dataset": "others/benchmark"}
    record = record_of(
        export("every-eval-ever", about, "--captions-per-image", "5", file="run.trec")
    )
    names = [each["evaluation_result_id"] for each in record["evaluation_results"]]
    assert names == [f"benchmark.all.t2i.R@{k}" for k in (1, 5, 10)]
    details = record["evaluation_results"][0]["score_details"]["details"]
    assert details["longest_list"] == "3"


def test_a_run_of_anything_has_candidates_and_queries(export: Export) -> None:
    rows = [f"q{query} Q0 d{query // 2} 1 0.5 run" for query in range(10)]
    Path("run.trec").write_text("\n".join(rows))
    Path("qrels.txt").write_text("\n".join(f"q{query} 0 d{query // 3} 1" for query in range(10)))
    about = {**FOR_EVERY_EVAL_EVER, "dataset": "others/benchmark"}
    text = export("every-eval-ever", about, "--qrels", "qrels.txt", file="run.trec")
    first = record_of(text)["evaluation_results"][0]
    assert first["score_details"]["details"]["candidates"] == "5"
    assert first["source_data"]["additional_details"] == {
        "protocol": "all",
        "candidates": "5",
        "queries": "10",
    }
    card = export(
        "model-index", {"dataset": "others/benchmark"}, "--qrels", "qrels.txt", file="run.trec"
    )
    for said in (text, card):
        assert "queries drawn" in said
        assert "image" not in said.replace("image-text", "").replace("Image-text", "")


def test_a_leaderboards_entry_says_one_number_and_its_interval(
    pipeline: Any, export: Export
) -> None:
    about = {
        **FOR_EVAL_RESULTS,
        "revision": "12345678e9",
        "date": "2026-11-29",
        "url": "https://example.org/ours",
        "user": "1e5",
    }
    text = export("eval-results", about)
    assert "oken" not in text
    # YAML 1.2, as on Hugging Face, reads these as numbers where they have no quotes.
    assert "task_id: '1e5'" in text
    assert "user: '1e5'" in text
    assert "revision: '12345678e9'" in text
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    (measured,) = json.loads(pipeline("evaluate", "sims.npy", "--json")[1])
    assert entry.value == measured["t2i"]["R@1"]
    lower, upper = measured["interval"]["t2i"]["R@1"]
    assert f"95 % interval {lower:.2f} to {upper:.2f} (Wilson's score" in str(entry.notes)
    assert (entry.dataset_id, entry.task_id, entry.date) == (
        "others/benchmark",
        "1e5",
        "2026-11-29",
    )
    assert (entry.source_url, entry.source_user) == ("https://example.org/ours", "1e5")
    assert (entry.source_org, entry.verify_token) == (None, None)


def test_a_model_card_has_all_numbers_but_ranks_with_intervals(pipeline: Any, corpus: Path) -> None:
    pipeline(
        "manifest",
        "mine",
        "--images",
        str(corpus / "images"),
        "--annotations",
        str(corpus / "dataset_sample.json"),
    )
    rows = parquet.read_table("data/mine.parquet").to_pandas().query("split == 'test'")
    images = rows["image_id"].nunique()
    scores = np.random.default_rng(0).standard_normal((images, len(rows)))
    np.save("ours.npy", scores.astype(np.float32))
    manifest = ("ours.npy", "--manifest", "data/mine.parquet", "--metric", "nDCG@10")
    card = pipeline("evaluate", *manifest, "--export", "model-index")[1]
    start, text, end = card.split("---\n") if card.endswith("---\n") else ("?", "", "")
    assert (start, end) == ("", "")
    name, results = model_index_to_eval_results(yaml.safe_load(text)["model-index"])
    (measured,) = json.loads(pipeline("evaluate", *manifest, "--json")[1])
    values = {
        f"{way} {metric}": value
        for way in ("i2t", "t2i")
        for metric, value in measured[way].items()
    }
    values["RSUM"] = measured["RSUM"]
    assert name == "ours"
    assert {each.metric_name: each.metric_value for each in results} == {
        key: value for key, value in values.items() if "Med" not in key and "Mean" not in key
    }
    assert {(each.dataset_type, each.dataset_split, each.task_type) for each in results} == {
        ("mine", "test", "image-text-retrieval")
    }
    recall = next(each for each in results if each.metric_name == "t2i R@5")
    lower, upper = measured["interval"]["t2i"]["R@5"]
    said = recall.metric_args["confidence_interval"]
    assert (said["lower"], said["upper"], said["confidence_level"]) == (lower, upper, 0.95)
    assert said["method"].startswith("Wilson's score interval")
    counts = [recall.metric_args[name] for name in ("unit", "queries", "images")]
    assert counts == ["percent", len(rows), images]
    total = next(each for each in results if each.metric_name == "RSUM")
    assert total.metric_args["queries"] == images + len(rows)
    assert "give its --manifest" in pipeline("evaluate", "ours.npy", "--export", "model-index")[2]


@pytest.mark.usefixtures("export")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--export", "every-eval-ever", "--about", "model=a/b"), "give --about organisation=…"),
        (
            ("--export", "every-eval-ever", "--about", "colour=red"),
            "there are: model, organisation",
        ),
        (("--export", "eval-results", "--about", "verifyToken=a"), "unknown key"),
        (("--about", "model=a/b"), "give --export"),
        (("--export", "model-index", "--about", "dataset"), "expected KEY=VALUE"),
        (("--export", "model-index", "--about", "dataset=sims"), "expected OWNER/NAME"),
        (("--export", "model-index", "--json"), "two ways to print"),
        (("--export", "model-index", "--as", "open_clip"), "for our own numbers"),
    ],
)
def test_what_is_missing_or_meant_otherwise_is_one_line(
    pipeline: Any, options: tuple[str, ...], said: str
) -> None:
    code, out, err = pipeline("evaluate", "sims.npy", *options)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err


@pytest.mark.usefixtures("export")
@pytest.mark.parametrize(
    ("form", "about"),
    [("every-eval-ever", FOR_EVERY_EVAL_EVER), ("eval-results", FOR_EVAL_RESULTS)],
)
def test_a_file_of_one_model_takes_no_other(
    pipeline: Any, form: str, about: dict[str, str]
) -> None:
    Path("again").mkdir()
    Path("again/sims.npy").write_bytes(Path("sims.npy").read_bytes())
    said = []
    for key, value in about.items():
        said += ["--about", f"{key}={value}"]
    for files in (("sims.npy", "B=sims.npy"), ("sims.npy,again/sims.npy",)):
        code, _, err = pipeline("evaluate", *files, "--export", form, *said)
        assert code == 2
        assert "name one FILE alone" in err


@pytest.mark.parametrize(
    ("form", "about"),
    [
        ("model-index", {}),
        ("every-eval-ever", {**FOR_EVERY_EVAL_EVER, "organisation": HOSTILE}),
        ("eval-results", {**FOR_EVAL_RESULTS, "task_id": HOSTILE}),
        ("eval-results", {**FOR_EVAL_RESULTS, "url": f"https://{HOSTILE}"}),
        ("eval-results", {**FOR_EVAL_RESULTS, "date": "2026-11-29\x1b10:30"}),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(form: str, about: dict[str, str]) -> None:
    scores = np.eye(6) + np.random.default_rng(0).random((6, 6))
    numbers = evaluate(scores, np.arange(6)).as_dict() | {"dataset": HOSTILE, "split": HOSTILE}
    written = of_form(form, about).text([(HOSTILE, numbers)])
    assert "Evil" in written
    assert not {"\x1b", "\x07", "\x7f", "\x9b", "\u202e"} & set(written)


def test_the_page_names_every_form_and_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "paper.md").read_text(encoding="utf-8")
    for form in CATALOGUES:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{form}` |")]
        for key in CATALOGUES.declared(form).model_fields:
            assert f"`{key}`" in row
