"""`pipeline explain`: the whole data set for its test split, CxC's ratings, a system's other split,
and refusals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny_dual_encoders

from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Relevance
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.table import COLUMNS
from pipeline.judge.explain import search
from pipeline.judge.explain.differences import Difference

pytestmark = pytest.mark.slow

SPLITS = ("train", "train", "test", "val")  # in turn
IMAGES = 80


@pytest.fixture
def project(tmp_path: Path, rng: np.random.Generator) -> np.ndarray:
    """A manifest of 80 images with five or six captions each, and the scores of all of them."""
    rows = [
        (image, f"{image}.jpg", 1, SPLITS[image % 4], 10 * image + each, f"caption {image} {each}")
        for image in range(IMAGES)
        for each in range(5 + (image % 7 == 0))
    ]
    Manifest(pd.DataFrame(rows, columns=list(COLUMNS)), "mine", Path()).save(tmp_path / "m.parquet")
    owner = np.array([row[0] for row in rows])
    pictures = rng.normal(size=(IMAGES, 8))
    scores: np.ndarray = pictures @ (pictures[owner] + rng.normal(size=(len(owner), 8))).T
    np.save(tmp_path / "all.npy", scores)
    np.save(tmp_path / "owner.npy", owner)
    return scores


def published(numbers: Metrics) -> str:
    return ",".join(
        f"{way}_R@{k}={numbers[way, f'R@{k}']:.1f}" for way in ("i2t", "t2i") for k in (1, 5, 10)
    )


@pytest.mark.specification
def test_all_captions_for_those_of_the_test_split(pipeline: Any, project: np.ndarray) -> None:
    """Flickr8k's 40,456 captions in the place of 5,000 (CLIP_benchmark #48)."""
    owner = np.load("owner.npy")
    numbers = evaluate(project, owner)
    given = ("explain", "all.npy", "--manifest", "m.parquet", "--published", published(numbers))
    code, out, _ = pipeline(*given, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["explained"]
    assert [each["differences"] for each in found["variants"] if each["reproduces"]] == [
        ["all splits in one pool"]
    ]
    columns = np.flatnonzero(owner % 4 == 2)
    test = evaluate(project[2::4, columns], owner[columns] // 4)
    assert found["variants"][0]["numbers"]["i2t R@5"] == pytest.approx(test["i2t", "R@5"], abs=0.05)
    assert (found["images"], found["captions"]) == (20, len(columns))
    columns = np.flatnonzero(owner % 4 == 3)
    val = evaluate(project[3::4, columns], owner[columns] // 4)
    lines = pipeline(*given[:-1], published(val), "--most", "1")[1].splitlines()
    assert lines[lines.index("  the split val") + 1].endswith(" 6 of 6")
    assert [line for line in lines if len(line) > 80] == []
    assert " the published numbers: 1 of " in " ".join(" ".join(lines).split())


def test_the_queries_of_a_split_among_the_candidates_of_all(
    pipeline: Any, project: np.ndarray
) -> None:
    owner = np.load("owner.npy")
    queries = np.flatnonzero(owner % 4 == 2)
    first = [np.flatnonzero(owner[np.argsort(-project[i])] == i)[0] for i in range(2, IMAGES, 4)]
    place = [np.flatnonzero(np.argsort(-project[:, c]) == owner[c])[0] for c in queries]
    printed = []
    for way, ranks in (("i2t", np.array(first)), ("t2i", np.array(place))):
        printed += [f"{way}_R@{k}={100 * (ranks < k).mean():.1f}" for k in (1, 5, 10)]
    given = ("explain", "all.npy", "--manifest", "m.parquet", "--published", ",".join(printed))
    found = json.loads(pipeline(*given, "--json", "--most", "1")[1])
    assert [each["differences"] for each in found["variants"] if each["reproduces"]] == [
        ["the split's queries among the candidates of all splits"]
    ]


def test_seeds_are_measured_by_their_mean_and_each_alone(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    owner = np.repeat(np.arange(40), 5)
    recalls = []
    for name in ("a.npy", "b.npy", "c.npy"):
        pictures = rng.normal(size=(40, 8))
        scores = pictures @ (pictures[owner] + 2 * rng.normal(size=(200, 8))).T
        np.save(name, scores)
        recalls.append(100 * (owner == scores.argmax(0)).mean())
    for number, expected in ((np.mean(recalls), []), (recalls[1], ["the second seed alone"])):
        given = ("explain", "a.npy,b.npy,c.npy", "--published", f"t2i_R@1={number:.2f}")
        code, out, err = pipeline(*given, "--most", "1", "--json")
        assert code == 0, err
        found = json.loads(out)
        assert found["measured"][0]["measured"] == pytest.approx(np.mean(recalls))
        assert found["measured"][0]["seeds"] == pytest.approx(recalls)
        assert expected in [each["differences"] for each in found["variants"] if each["reproduces"]]
    said = " ".join(pipeline(*given, "--most", "1")[1].split())
    assert "Within the 95 % interval for another seed and sample of images: t2i R@1 [" in said
    assert ". a, b, c: 40 images x 200 captions" in said
    assert "From 3 seeds little is known of another one: the intervals are wide." in said
    np.save("other.npy", np.eye(30, 150))
    assert "is of other images" in refused("explain", "a.npy,other.npy", "--published", "R@1=5")


def test_equal_captions_of_two_languages_are_two_captions(
    pipeline: Any, rng: np.random.Generator
) -> None:
    """As evaluate has it with --same-text."""
    rows = []
    for image in range(20):
        for each, language in enumerate(("en", "de")):
            rows.append((image, f"{image}.jpg", 1, "test", 2 * image + each, "taxi", language))
    for row in range(0, 40, 3):
        rows[row] = (*rows[row][:5], f"caption {row}", rows[row][6])
    table = pd.DataFrame(rows, columns=[*COLUMNS, "language"])
    Manifest(table, "mine", Path()).save(Path("m.parquet"))
    np.save("s.npy", rng.normal(size=(20, 40)))
    given = ("s.npy", "--manifest", "m.parquet", "--same-text", "positive")
    code, out, err = pipeline("evaluate", *given, "--json")
    assert code == 0, err
    (whole, *_) = json.loads(out)
    found = json.loads(
        pipeline("explain", *given, "--published", "t2i_R@5=50.00", "--most", "1", "--json")[1]
    )
    assert found["variants"][0]["numbers"]["t2i R@5"] == round(whole["t2i"]["R@5"], 2)


def test_vectors_of_all_images_are_cut_into_splits(
    pipeline: Any, project: np.ndarray, rng: np.random.Generator
) -> None:
    owner, pictures = np.load("owner.npy"), rng.normal(size=(IMAGES, 8))
    captions = (pictures[owner] + rng.normal(size=(len(owner), 8))) * rng.uniform(
        0.2, 5, (len(owner), 1)
    )
    np.save("i.npy", pictures)
    np.save("c.npy", captions)
    whole = published(evaluate(pictures @ captions.T, owner))
    given = (
        "explain",
        "./i.npy:./c.npy",
        "--manifest",
        "m.parquet",
        "--published",
        whole,
        "--normalise",
        "--json",
    )
    found = json.loads(pipeline(*given)[1])
    assert found["images"] == 20
    assert [each["differences"] for each in found["variants"] if each["reproduces"]] == [
        ["vectors not divided by their lengths", "all splits in one pool"]
    ]


def test_pairs_that_cxc_rates_less_than_it_says(
    pipeline: Any, project: np.ndarray, rng: np.random.Generator
) -> None:
    owner, right, lines = (
        np.load("owner.npy"),
        set(enumerate(np.load("owner.npy"))),
        ["caption,image,rating,method"],
    )
    ids = pd.read_parquet("m.parquet")["caption_id"].to_numpy()
    columns = np.flatnonzero(owner % 4 == 2)
    rated = {
        (caption, image) for caption in columns.tolist() for image in (2, 6, int(owner[caption]))
    }
    for caption, image in sorted(rated):
        rating = 4.5 if image == owner[caption] else rng.choice([2.0, 2.6, 3.1])
        lines.append(
            f"COCO_val2014:sentid:{ids[caption]},COCO_val2014_{image:012d}.jpg,{rating},sampled"
        )
        if rating > 2.5:
            right.add((caption, image))
    Path("sits_test.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = np.array(sorted((caption, image) for caption, image in right if caption in columns))
    numbers = evaluate(
        project[2::4, columns],
        Relevance.of_pairs(
            pairs[:, 1] // 4, np.searchsorted(columns, pairs[:, 0]), (20, len(columns))
        ),
    )
    given = ("explain", "all.npy", "--manifest", "m.parquet", "--published", published(numbers))
    given = (*given, "--json", "--most", "1")
    found = json.loads(pipeline(*given, "-S", "evaluate.cxc=.")[1])
    assert [each["differences"] for each in found["variants"] if each["reproduces"]] == [
        ["pairs that CxC rates 2.5 or more right"]
    ]
    without = json.loads(pipeline(*given)[1])
    assert not without["explained"]
    assert len(without["not_tried"]["judgements"]) == 4


def test_captions_cut_at_fewer_tokens(
    pipeline: Any,
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    from pipeline.make.dual_encoders import load
    from pipeline.make.dual_encoders.base import Usage

    name = f"clip:{tiny_dual_encoders.clip(tmp_path / 'clip')}"
    texts = [
        "".join(rng.choice(list("abcdefgh"), 9)) for _ in range(40)
    ]  # a letter is a token: all are within 12
    rows = [
        (place // 2, f"{place // 2}.jpg", 1, "test", place, text)
        for place, text in enumerate(texts)
    ]
    Manifest(pd.DataFrame(rows, columns=list(COLUMNS)), "mine", Path()).save(tmp_path / "m.parquet")
    encoder = load(name, Usage())
    captions, images = encoder.embed_captions(texts), rng.normal(size=(20, 8)).astype(np.float32)
    np.save("i.npy", images)
    np.save("c.npy", captions)
    encoder.token_limit = 5
    numbers = published(evaluate(images @ encoder.embed_captions(texts).T, np.arange(40) // 2))
    monkeypatch.setattr(
        search, "DIFFERENCES", (*search.DIFFERENCES, Difference("5 tokens", "", (("tokens", 5),)))
    )
    given = (
        "explain",
        "i.npy:c.npy",
        "--manifest",
        "m.parquet",
        "--published",
        numbers,
        "--json",
        "--most",
        "1",
    )
    found = json.loads(pipeline(*given, "--encoder", name)[1])
    assert [each["differences"] for each in found["variants"] if each["reproduces"]] == [
        ["5 tokens"]
    ]
    assert "an encoder and captions" not in found["not_tried"]  # and no caption has 20 tokens
    np.save("c.npy", captions[::-1])
    assert "the captions' vectors are not this encoder's" in refused(*given, "--encoder", name)


def test_judgements_and_formats(pipeline: Any, project: np.ndarray) -> None:
    np.save("s.npy", project[:, :400])
    Path("j.txt").write_text(
        "\n".join(f"{caption} 0 {(caption // 5 + 1) % 80} 1" for caption in range(400))
    )
    given = ("explain", "s.npy", "--published", "t2i_R@10=50.0,RSUM=300.0", "--most", "1")
    given = (*given, "--captions-per-image", "5")
    for form in ((), ("--markdown",)):
        code, out, err = pipeline(*given, "--qrels", "j.txt", *form, "--rows", "3")
        assert code == 0, err
        assert out.startswith("No reason found among ")
        assert "a caption's own image alone right" in out
    assert "| measured by the protocol | " in out


def test_a_system_is_measured_by_its_name(trained: Path, pipeline: Any) -> None:
    store = trained / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr"
    whole = json.loads(pipeline("evaluate", "--system", store, "--json")[1])[0]
    rsum = f"RSUM={whole['RSUM']:.1f}"
    for name, title in (
        ("vse2ad-region-bigru-s0", "vse2ad-region-bigru-s0"),
        ("vse2ad-region-bigru", "vse2ad-region-bigru-s0"),
        ("Our model=vse2ad-region-bigru", "Our model"),
    ):
        code, out, err = pipeline(
            "explain", name, "--root", trained, "--published", rsum, "--most", "1"
        )
        assert code == 0, err
        assert out.startswith("The published number is the one measured.\n")
        assert f"\n{title}: " in out
        assert "the captions' texts" not in out


def test_bad_numbers_and_files_are_one_line(
    project: np.ndarray, refused: Callable[..., str]
) -> None:
    assert "no R@1 can be that" in refused("explain", "all.npy", "--published", "R@1=137")
    assert "no such file" in refused("explain", "none.npy", "--published", "R@1=37")
    assert "captions an image" in refused("explain", "all.npy", "--published", "R@1=37")
    np.save("two.npy", project[:3, :7])
    assert "expected 20 images" in refused(
        "explain", "two.npy", "--manifest", "m.parquet", "--published", "R@1=37"
    )
    np.save("five.npy", project[:, :400])
    assert "needs the captions' texts; give --manifest" in refused(
        "explain", "five.npy", "--published", "R@1=37", "--same-text", "positive"
    )


def test_lists_of_the_best_are_searched_as_far_as_they_go(
    pipeline: Any, refused: Callable[..., str], tmp_path: Path, rng: np.random.Generator
) -> None:
    """Runs of one direction and of both, by captions in order and by judgements."""
    owner = np.repeat(np.arange(12), 5)
    pictures = rng.normal(size=(12, 4))
    # Whole numbers have ties
    scores = np.round(pictures @ (pictures[owner] + rng.normal(size=(60, 4))).T)
    of_caption = [
        f"caption:{c} Q0 image:{i} 1 {scores[i, c]} x" for c in range(60) for i in range(12)
    ]
    of_image = [
        f"image:{i} Q0 caption:{c} 1 {scores[i, c]} x" for c in range(60) for i in range(12)
    ]
    for name, lines in (
        ("t2i.trec", of_caption),
        ("i2t.trec", of_image),
        ("both.trec", of_caption + of_image),
        # As many as are listed of each caption, and not the right one of all
        ("short.trec", [line for line in of_caption if f"image:{rng.integers(12)} " not in line]),
    ):
        (tmp_path / name).write_text("\n".join(lines))
    next_image = (owner + 1) % 12
    for name, right in (("own.qrels", owner), ("next.qrels", next_image)):
        pairs = [f"caption:{c} 0 image:{i} 1" for c, i in enumerate(right)]
        pairs += [f"image:{i} 0 caption:{c} 1" for c, i in enumerate(right)]
        (tmp_path / name).write_text("\n".join(pairs))
    above = (scores > scores[owner, np.arange(60)]).sum(0)
    best_order = f"t2i_R@1={100 * (above == 0).mean():.2f}"
    first_caption = f"t2i_R@1={100 * (above[::5] == 0).mean():.2f}"
    above_next = (scores > scores[next_image, np.arange(60)]).sum(0)
    of_next = f"t2i_R@1={100 * (above_next == 0).mean():.2f}"
    best_of_image = np.array([scores[i, owner == i].max() for i in range(12)])
    above_of_image = (scores * (owner != np.arange(12)[:, None]) > best_of_image[:, None]).sum(1)
    best_of_images = f"i2t_R@1={100 * (above_of_image == 0).mean():.2f}"
    in_order = ("--captions-per-image", "5", "--ties", "pessimistic")
    judged = ("--qrels", "own.qrels", "--ties", "pessimistic")
    best = "ties in the best order"
    for run, truth, published_number, reason in (
        ("t2i.trec", in_order, best_order, best),
        ("t2i.trec", judged, best_order, best),
        ("t2i.trec", judged, best_order.removeprefix("t2i_"), best),
        ("both.trec", in_order, best_order, best),
        ("both.trec", judged, best_order, best),
        ("i2t.trec", in_order, best_of_images, best),
        ("i2t.trec", judged, best_of_images, best),
        ("both.trec", judged, best_of_images, best),
        (
            "t2i.trec",
            ("--captions-per-image", "5", "--ties", "optimistic"),
            first_caption,
            "only the first caption of each image",
        ),
        ("both.trec", ("--qrels", "next.qrels", "--ties", "optimistic"), of_next, "measured"),
        ("both.trec", in_order, "RSUM=3", ""),
        ("both.trec", judged, "i2t_MeanR=50,t2i_MedR=50", ""),
        ("short.trec", in_order, "t2i_R@5=99", ""),
    ):
        code, out, err = pipeline(
            "explain", run, *truth, "--published", published_number, "--most", "2", "--json"
        )
        assert code == 0, (run, truth, err)
        found = json.loads(out)
        reasons = [each["differences"] for each in found["variants"] if each["reproduces"]]
        expected = [reason]
        if reason == "measured":
            expected = []
        assert (expected in reasons) == bool(reason), (run, truth, published_number, reasons)
        assert "vectors in float16" in found["not_tried"]["vectors"]
        assert "scores in float16" in found["not_tried"]["every pair's score"]
    for run, truth, published_number, said in (
        ("t2i.trec", in_order, "i2t_R@1=3", "does not rank image → caption"),
        ("t2i.trec", judged, "t2i_R@1=3,RSUM=30", "RSUM: t2i does not rank image → caption"),
        ("i2t.trec", in_order, "t2i_MedR=3", "does not rank caption → image"),
        ("short.trec", in_order, "t2i_MedR=3", "so that its ranks are not known"),
        ("t2i.trec", (), "t2i_R@1=3", "name the --manifest or --qrels"),
        ("both.trec,i2t.trec", in_order, "t2i_R@1=3", "does not rank caption → image"),
    ):
        assert said in refused("explain", run, *truth, "--published", published_number)


def test_what_evaluate_says_of_scores_is_said(pipeline: Any, tmp_path: Path) -> None:
    """What the file was read as, what of it was not used, and the likely mistake."""
    draw = np.random.default_rng(0)
    pictures = draw.normal(size=(40, 8))
    captions = np.tile(pictures, (5, 1)) + 0.1 * draw.normal(size=(200, 8))
    np.savez(tmp_path / "s.npz", sims=pictures @ captions.T, extra=np.zeros(7))
    for output in ((), ("--json",), ("--markdown",)):
        code, out, err = pipeline(
            "explain", "s.npz", "--published", "R@1=90.0", "--most", "1", *output
        )
        assert code == 0
        assert "captions follow one another (assumed); not used: extra float64 [7]" in err
        assert "far better if caption j is of image j % 40" in " ".join(out.split())
