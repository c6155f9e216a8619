"""results/report.html: valid, self-contained, hostile texts stay texts, its numbers are those of
the results.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import gzip
import json
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import html5lib
import invented_run
import pytest
from command_line import PARAMS
from invented_heads import head

from pipeline.foundation.compute import made_with
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.statistics.hubness import hubness
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.system import System
from pipeline.run.report import page
from pipeline.run.report.page import explorer
from pipeline.run.report.page.identity import Identity
from stages import cli

pytestmark = pytest.mark.slow

NOTHING: dict[str, Any] = (
    dict.fromkeys(("title", "about", "licence", "relevance", "run"), "a")
    | dict.fromkeys(
        ("headlines", "curves", "further_curves", "effects", "hubs", "failures", "stores"), ()
    )
    | {"explorer": {}, "identity": Identity({}), "finding": None, "pairs": ()}
)
NAMESPACE = {"h": "http://www.w3.org/1999/xhtml", "s": "http://www.w3.org/2000/svg"}


def parsed(text: str) -> Any:
    """A page as a tree. The parser raises at the first thing that is not valid."""
    return html5lib.HTMLParser(strict=True).parse(text)


def data_of(text: str) -> dict[str, Any]:
    """The explorer's data in a page."""
    (packed,) = re.findall(r'<script [^>]*id="data"[^>]*>([^<]*)</script>', text)
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))
    return data


def page_below(root: Path) -> str:
    return (root / "results" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def run(
    pipeline: Callable[..., Any], evaluated: Path, tmp_path: Path
) -> Callable[..., tuple[str, dict[str, Any]]]:
    """The invented run, evaluated; then `pipeline report`: the page as text, and its data."""
    shutil.copytree(evaluated, tmp_path, dirs_exist_ok=True)

    def report(*changes: str, said: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
        code, out, err = pipeline("report", *changes)
        assert code == 0, err
        assert re.search(r"results/report.html: \d+\.\d MB", out)
        assert re.findall(r"thumbnails have \d+ pixels instead of \d+", out) == list(said)
        text = page_below(tmp_path)
        return text, data_of(text)

    return report


@pytest.fixture(scope="module")
def reported(
    evaluated: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Any, dict[str, Any]]:
    """The page of the invented run with the project's settings, for all tests that read it."""
    root = tmp_path_factory.mktemp("reported")
    shutil.copytree(evaluated, root, dirs_exist_ok=True)
    with contextlib.chdir(root):
        cli.cli.main(["report", "--params", PARAMS], standalone_mode=False)
    text = page_below(root)
    return text, parsed(text), data_of(text)


def test_hostile_texts_stay_texts(reported: Any) -> None:
    _, tree, data = reported
    assert len(tree.findall(".//h:script", NAMESPACE)) == 4
    images = tree.findall(".//h:img", NAMESPACE)
    assert images
    assert all(image.attrib["src"].startswith("data:image/webp;base64,") for image in images)
    assert not [node for node in tree.iter() for name in node.attrib if str(name).startswith("on")]
    assert {caption["text"] for caption in data["captions"]} >= set(invented_run.CAPTIONS)
    assert {image["file"] for image in data["images"]} == set(invented_run.FILES)
    cells = [
        bdi.text
        for bdi in tree.find(".//h:section[@id='failures']", NAMESPACE).iter(
            f"{{{NAMESPACE['h']}}}bdi"
        )
    ]
    assert cells == ["</script>.png", "not an image <b>or</b> of an unknown format"]


def test_the_queries_are_packed(reported: Any) -> None:
    """Ranks, ids and captions repeat much: of many queries, they are a small part of the page."""
    _, tree, data = reported
    packed = tree.find(".//h:script[@id='data']", NAMESPACE).text
    assert len(packed) < 0.5 * len(json.dumps(data, ensure_ascii=False))


def test_captions_of_controls_and_of_nothing(
    pipeline: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invented_run, "CAPTIONS", ["a \x07 bell", "first\x00", " ", ""])
    invented_run.make(tmp_path)
    assert pipeline("evaluate")[0] == pipeline("report")[0] == 0
    text = page_below(tmp_path)
    parsed(text)
    data = data_of(text)
    assert {"a � bell", "first�", " ", ""} <= {caption["text"] for caption in data["captions"]}
    described = {image["file"]: image["alt"] for image in data["images"]}
    assert described[invented_run.FILES[0]] == "a � bell"
    assert (
        described[invented_run.FILES[1]] == invented_run.FILES[1]
    )  # an image is never without words


@pytest.mark.specification
def test_nothing_is_fetched(reported: Any) -> None:
    text, tree, _ = reported
    addresses = [
        value
        for node in tree.iter()
        for name, value in node.attrib.items()
        if name in ("src", "href", "action")
    ]
    assert addresses
    assert {value for value in addresses if not value.startswith(("#", "data:"))} == {
        "tables/"
    }  # a link
    assert not re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|eval\(", text)
    (policy,) = [node.attrib["content"] for node in tree.iter() if node.attrib.get("http-equiv")]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy


def test_everything_has_a_name_for_a_screen_reader(reported: Any) -> None:
    _, tree, _ = reported
    ids = [node.attrib["id"] for node in tree.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    named = [
        node.attrib[name]
        for node in tree.iter()
        for name in ("aria-labelledby", "for")
        if name in node.attrib
    ]
    assert set(named) <= set(ids)
    places = {
        node.attrib["href"] for node in tree.iter() if node.attrib.get("href", "").startswith("#")
    }
    assert {place[1:] for place in places if not place.startswith("#queries?")} <= set(ids)
    levels = [
        int(node.tag[-1]) for node in tree.iter() if re.fullmatch(r".*}h[1-6]", str(node.tag))
    ]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for field in (
        *tree.iter(f"{{{NAMESPACE['h']}}}input"),
        *tree.iter(f"{{{NAMESPACE['h']}}}select"),
    ):
        assert [label for label in tree.iter(f"{{{NAMESPACE['h']}}}label") if field in label.iter()]
    for drawing in tree.iter(f"{{{NAMESPACE['s']}}}svg"):
        assert (
            drawing.attrib.get("aria-hidden") == "true" or drawing.find("s:title", NAMESPACE).text
        )


@pytest.mark.specification
def test_numbers_and_intervals_are_those_of_the_metrics(reported: Any, evaluated: Path) -> None:
    _, tree, _ = reported
    scores = json.loads((evaluated / "results" / "metrics.json").read_text())[
        "vse2ad-RGP-bigru-s0"
    ]["all"]
    table = tree.find(".//h:table[@id='results-1-table']", NAMESPACE)
    rows = {
        "".join(row.find("h:th/h:span", NAMESPACE).itertext()): row
        for row in table.findall("h:tbody/h:tr", NAMESPACE)
    }
    row = rows["VSE+2AD, RGP, BiGRU†"]
    links = [link.attrib["href"] for link in row.iter(f"{{{NAMESPACE['h']}}}a")]
    assert links[1] == "#queries?way=i2t&b=vse2ad-RGP-bigru-s0&filter=first"
    assert len(links) == 7
    assert len(rows) == 5  # R and the region head are one system
    cells = [" ".join("".join(cell.itertext()).split()) for cell in row.findall("h:td", NAMESPACE)]
    wanted = [(scores["RSUM"], scores["interval"]["RSUM"])]  # first: a phone shows no more
    wanted += [
        (scores[way][k], scores["interval"][way][k])
        for way in ("i2t", "t2i")
        for k in ("R@1", "R@5", "R@10")
    ]
    assert cells.pop(1) == "1–4"  # rank
    assert cells.pop(1) == "a"  # letters
    assert cells == [
        "{:.1f} [{:.1f}, {:.1f}]".format(value, *interval) for value, interval in wanted
    ]
    ranks = [row.findall("h:td", NAMESPACE)[1].text for row in rows.values()]
    assert ranks == ["1–4"] * 4 + ["5"]
    letters = [row.findall("h:td", NAMESPACE)[2].text for row in rows.values()]
    assert letters == ["a"] * 4 + ["b"]  # all six images are better by the first system
    assert rows.keys() == {
        "VSE+2AD, R, BiGRU",
        "VSE+2AD, RG, BiGRU",
        "VSE+2AD, RGP, BiGRU†",
        "VSE+2AD, G, BiGRU",
        "VSE+2AD, P, BiGRU†",
    }  # trained BUTD regions


def test_it_says_what_run_it_is(reported: Any, evaluated: Path) -> None:
    _, tree, _ = reported
    facts = {
        item[0].text: " ".join("".join(item[1].itertext()).split())
        for item in tree.findall(".//h:section[@id='run']/h:dl/h:div", NAMESPACE)
    }
    machine = json.loads((evaluated / "results" / "metrics.json").read_text())[
        "vse2ad-RGP-bigru-s0"
    ]["record"]["machines"][-1]
    assert (facts["Measured"], facts["Version"]) == (
        machine["date"],
        f"vse-pipeline {machine['pipeline']}",
    )
    assert facts.get("Commit", "") == made_with.commit() == machine.get("commit", "")
    assert machine["processor"] in facts["Machine"]
    assert re.fullmatch(r"Sample, test split, manifest [0-9a-f]{12}", facts["Data"])
    assert facts["Systems"] == "5 evaluated, of 3 heads trained here"  # R is the region head
    commands = [
        item[0].text for item in tree.findall(".//h:section[@id='run']//h:ol/h:li", NAMESPACE)
    ]
    assert commands == [
        "pipeline manifest",
        *(
            f"pipeline store import scan … --feature {name}"
            if name != "patch"
            else "pipeline extract --feature patch"
            for name in invented_run.FEATURES
        ),
        *(
            f"pipeline train --recipe vse2ad --feature {name} --text bigru --seed 0"
            for name in invented_run.FEATURES
        ),
        "pipeline score",
        "pipeline ensemble",
        "pipeline evaluate",
        "pipeline report",
    ]


def test_every_part_has_the_systems_in_one_order(reported: Any, evaluated: Path) -> None:
    """By RSUM, the largest first, wherever systems are listed."""
    _, tree, data = reported
    measured = json.loads((evaluated / "results" / "metrics.json").read_text())
    sums = {name: entry["all"]["RSUM"] for name, entry in measured.items()}
    listed = [system["name"] for system in data["systems"]]
    assert [sums[name] for name in listed] == sorted((sums[name] for name in listed), reverse=True)
    titles = [system["title"].removesuffix(" †") for system in data["systems"]]
    hubs = tree.findall(".//h:section[@id='hubs']//h:tbody/h:tr/h:th", NAMESPACE)
    assert ["".join(each.itertext()).strip() for each in hubs] == titles
    shown = [
        [
            float(re.search(r"\d+\.\d", "".join(each.itertext()))[0])
            for each in tree.findall(path, NAMESPACE)
        ]
        for path in (
            ".//h:figure[@aria-labelledby='finding-systems-chart']//h:span[@class='value']",
            ".//h:table[@id='results-1-table']//h:tr/h:td[1]",
        )
    ]
    assert shown == [[round(sums[name], 1) for name in listed]] * 2
    for table in tree.findall(".//h:section[@id='members']//h:table", NAMESPACE):
        alone = [float(row[1].text) for row in table.findall("h:tbody/h:tr", NAMESPACE)]
        assert alone == sorted(alone, reverse=True)


def test_the_table_is_copied_as_latex_and_csv(reported: Any) -> None:
    _, tree, _ = reported
    source, table = (
        tree.find(f".//h:pre[@id='results-1-{form}']", NAMESPACE).text for form in ("LaTeX", "CSV")
    )
    assert source.count(r"\begin{tabular}") == 1
    head, *rows = csv.reader(table.splitlines())
    assert head[2:7] == ["System", "Rank", "Letters", "RSUM", "image → caption R@1"]
    assert len(rows) == 5
    assert [row[3] for row in rows] == ["1–4"] * 4 + ["5"]
    assert source.count("1\\textendash{}4") == 4
    assert all(row[5] in source for row in rows)


def test_ranks_and_candidates_are_those_of_the_scores(run: Any, tmp_path: Path) -> None:
    text, data = run("-S", "report.top=3", "-S", "report.queries=6")
    assert data["whole"]  # just as many as there are
    assert "Candidates are kept for" not in text
    names = [system["name"] for system in data["systems"]]
    assert names == [f"vse2ad-{part}-bigru-s0" for part in ("R", "RG", "RGP", "grid", "patch")]
    at = names.index("vse2ad-RGP-bigru-s0")
    assert [data["systems"][place]["title"] for place in data["default"]] == [
        "VSE+2AD, Region+Grid, BiGRU, seed 0",
        "VSE+2AD, Region, BiGRU, seed 0",
    ]
    store = System.open(tmp_path / "similarities" / "sample" / "vse2ad-RGP-bigru-s0.zarr")
    matrix, files, texts = store.similarity[:], invented_run.FILES, invented_run.CAPTIONS
    for query in data["t2i"]:
        text = data["captions"][query["query"]]["text"]
        if text in texts:
            column = texts.index(text)
            order = sorted(range(6), key=lambda row: -matrix[row, column])
            assert [data["images"][place]["file"] for place in query["top"][at]] == [
                files[row] for row in order[:3]
            ]
            assert (
                data["queries"]["t2i"]["ranks"][at][query["number"]] == order.index(column // 2) + 1
            )
            assert query["own"][at] == pytest.approx(matrix[column // 2, column], rel=1e-3)
            assert query["similarity"][at] == pytest.approx(matrix[order[:3], column], rel=1e-3)
    ranks = retrieval.rank(store.similarity, store.caption_image).i2t.ranks()
    asked = {way: data["queries"][way] for way in ("t2i", "i2t")}
    assert asked["i2t"]["ids"] == store.image_ids.tolist()
    assert [data["files"][row] for row in asked["i2t"]["files"]] == files
    assert asked["i2t"]["ranks"][at] == pytest.approx(ranks.tolist(), abs=0.01)
    assert asked["t2i"]["ids"] == store.caption_ids.tolist()
    assert asked["t2i"]["right"] == [[row] for row in store.caption_image.tolist()]
    assert [data["images"][query["query"]]["file"] for query in data["i2t"]] == [
        files[query["number"]] for query in data["i2t"]
    ]


def test_explorer_and_members_count_as_right_what_the_metrics_do(
    pipeline: Callable[..., Any], invented: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    """Judgements with several right images a caption, none for some, given to `evaluate` alone."""
    shutil.copytree(invented, tmp_path, dirs_exist_ok=True)
    manifest = Manifest.load(tmp_path / "data" / "sample.parquet")
    images, captions = manifest.images["image_id"].tolist(), manifest.table["caption_id"].tolist()
    right = {
        caption: sorted({images[place // 2], images[place % 6]})
        for place, caption in enumerate(captions[:-2])
    }
    Path("q.csv").write_text(
        "caption,image\n"
        + "".join(
            f"{caption},{image}\n" for caption, answers in right.items() for image in answers
        ),
        encoding="utf-8",
    )
    assert pipeline("evaluate", "--qrels", "q.csv")[0] == pipeline("report")[0] == 0
    text = page_below(tmp_path)
    tree, data = parsed(text), data_of(text)
    asked = data["queries"]["t2i"]
    assert asked["ids"] == list(right)
    assert [[images[row] for row in rows] for rows in asked["right"]] == list(right.values())
    measured = json.loads((tmp_path / "results/metrics.json").read_text(encoding="utf-8"))
    for place, system in enumerate(data["systems"]):
        for way in ("t2i", "i2t"):
            hits = [100 * (rank <= 1) for rank in data["queries"][way]["ranks"][place]]
            assert sum(hits) / len(hits) == pytest.approx(
                measured[system["name"]]["qrels"][way]["R@1"]
            )
    for query in data["t2i"]:
        files = {data["images"][place]["file"] for place in query["right"]}
        assert files == {data["files"][row] for row in asked["right"][query["number"]]}
    page = "".join(tree.itertext())
    assert "What is right here: the judgements in q.csv" in page
    whole = measured["vse2ad-RGP-bigru-s0"]["qrels"]["RSUM"]
    assert f"RSUM {whole:.1f}, protocol qrels" in "".join(
        tree.find(".//h:section[@id='members']", NAMESPACE).itertext()
    )
    Path("q.csv").write_text(
        Path("q.csv").read_text(encoding="utf-8") + f"{captions[-1]},{images[0]}\n",
        encoding="utf-8",
    )
    assert "q.csv: changed since" in refused("report")


def test_a_reranked_system_is_in_the_explorer_unless_it_is_cut_into_folds(
    pipeline: Callable[..., Any], run: Any, tmp_path: Path
) -> None:
    step = ("-S", "run.rerank=[{name: rr, retriever: region, with: RGP, k: 2}]")
    assert pipeline("rerank", *step)[0] == pipeline("evaluate", *step)[0] == 0
    name = "vse2ad-region-bigru-s0+rr"
    text, data = run(*step)
    place, described = next(each for each in enumerate(data["systems"]) if name in json.dumps(each))
    assert "rerank (with vse2ad-RGP-bigru, k 2)" in json.dumps(described)
    for query in (*data["t2i"], *data["i2t"]):  # an order is no similarity
        assert query["own"].pop(place) is None
        assert {*query["similarity"].pop(place)} == {None}
        assert None not in (*query["own"], *chain(*query["similarity"]))
    assert "gives them no similarities" in text
    assert (
        pipeline(
            "rerank",
            "--retriever",
            "vse2ad-region-bigru-s0",
            "--with",
            "vse2ad-RGP-bigru-s0",
            "--k",
            "2",
            "--folds",
            "2",
            "--name",
            name,
            "--if-changed",
            "redo",
        )[0]
        == 0
    )
    (tmp_path / "results" / "metrics.json").unlink()
    code, _, err = pipeline("report", *step)
    assert code == 0
    assert (
        f"left out of hubs and explorer, which show one pool: {name}, reranked within folds" in err
    )


def test_hubs_of_every_system_are_those_of_its_scores(reported: Any, evaluated: Path) -> None:
    _, tree, _ = reported
    rows = tree.findall(".//h:section[@id='hubs']//h:tbody/h:tr", NAMESPACE)
    name = "vse2ad-region-bigru-s0"
    store = System.open(evaluated / "similarities" / "sample" / f"{name}.zarr")
    found = hubness(store.scores, "t2i", Evaluate(resamples=1, seed=0, block_megabytes=32))
    row = next(row for row in rows if "Region, BiGRU" in "".join(row[0].itertext()))
    cells = ["".join(cell.itertext()) for cell in row]
    assert cells[4] == f"{found.skewness:.2f}"
    assert cells[5].startswith(f"{found.most} (mean {found.mean:.1f})")


def test_a_member_adds_what_the_others_lack(reported: Any, evaluated: Path) -> None:
    _, tree, _ = reported
    tables = tree.findall(".//h:section[@id='members']//h:table", NAMESPACE)
    assert len(tables) == 2
    stores = [
        System.open(evaluated / "similarities" / "sample" / f"vse2ad-{feature}-bigru-s0.zarr")
        for feature in invented_run.FEATURES
    ]
    matrices = [store.similarity[:] for store in stores]
    owner = stores[0].caption_image
    without = evaluate((matrices[0] + matrices[1]) / 2, owner).rsum
    row = tables[1].findall("h:tbody/h:tr", NAMESPACE)[2]
    cells = [" ".join("".join(cell.itertext()).split()) for cell in row]
    assert cells[0] == "patch"
    assert cells[1] == f"{evaluate(matrices[2], owner).rsum:.1f}"
    assert cells[2] == f"{without:.1f}"
    assert cells[3].startswith(
        f"{evaluate(sum(matrices) / 3, owner).rsum - without:+.1f} [".replace("-", "−")
    )


def test_one_pair_has_one_test_on_the_whole_page(reported: Any) -> None:
    """An ensemble and the mean of its other members have the numbers that the results have of them;
    where these lack the mean, p is corrected for all pairs of the results and each other.
    """
    _, tree, _ = reported

    def texts(row: Any) -> list[str]:
        return [" ".join("".join(cell.itertext()).split()).replace("†", "") for cell in row]

    pairs = {}
    for row in tree.findall(".//h:table[@id='results-1-pairs']/h:tbody/h:tr", NAMESPACE):
        a, b, difference, *chances = texts(row)
        pairs[a, b] = [difference, *chances]
    family = [float(p) for _, p, _ in pairs.values()]
    assert len(family) == 10
    shared = 0
    others = []
    members = tree.find(".//h:section[@id='members']", NAMESPACE)
    for table in members.findall(".//h:table", NAMESPACE):
        title = "".join(table.find("h:caption", NAMESPACE).itertext())
        letters = "".join(re.findall("[RGP]", title.partition(":")[0]))
        for row in table.findall("h:tbody/h:tr", NAMESPACE):
            member, _, _, difference, _, p, corrected, needed = texts(row)
            assert re.fullmatch(r"\d+ images|no number", needed)
            (marker,) = row.iter(f"{{{NAMESPACE['s']}}}circle")
            assert marker.get("class") == ""  # six images tell nothing
            left = letters.replace(member[0].upper(), "")
            systems = tuple(f"VSE+2AD, {part}, BiGRU" for part in (left, letters))
            if systems in pairs:
                shared += 1
                assert [difference, p, corrected] == pairs[systems]
            elif systems[::-1] in pairs:
                shared += 1
                assert [p, corrected] == pairs[systems[::-1]][1:]
                value = difference.split()[0].translate(str.maketrans("+−", "−+"))
                assert pairs[systems[::-1]][0].startswith(value)
            else:
                others.append((float(p), float(corrected)))
    assert (shared, len(others)) == (3, 2)
    assert all(corrected >= p for p, corrected in others)
    said = " ".join("".join(members.itertext()).split())
    # Of five systems, two have equal hits.
    assert (
        "corrected for the 6 pairs of systems under Results; for the 2 differences here that are not "
        "among these, also for one another." in said
    )
    assert "Would suffice: with so many images" in said


def test_curves_are_those_of_the_histories(reported: Any) -> None:
    _, tree, _ = reported
    titles = [
        title.text for title in tree.findall(".//h:section[@id='curves']//s:g//s:title", NAMESPACE)
    ]
    assert titles == [
        f"{feature}, seed 0, epoch {epoch}: {rsum:.1f}"
        for number, feature in enumerate(invented_run.FEATURES)
        for epoch, rsum in ((1, 100), (2, 200 + number))
    ]


def test_curves_of_the_runs_recipes_stand_before_those_of_its_ablations(
    run: Any, tmp_path: Path
) -> None:
    for name in ("vse2ad-noadopt", "vse_pp"):
        head(tmp_path / "heads" / "sample", f"{name}-region-bigru-s0", [1, 2], recipe=name)
    text, _ = run("-S", "run.ablations=[vse2ad-noadopt]")
    found = parsed(text).findall(".//h:section[@id='curves']//h:figcaption", NAMESPACE)
    assert [caption.text for caption in found] == [
        "VSE+2AD, BiGRU",
        "VSE+2AD, hard triplet loss, BiGRU",
        "VSE++, BiGRU",
    ]


def test_size_is_bounded_by_the_settings(run: Any) -> None:
    text, data = run("-S", "report.queries=5", "-S", "report.top=1", "-S", "report.thumbnail=16")
    assert len(data["i2t"]) == 5
    assert len(data["t2i"]) == 10
    shown = [top for query in (*data["t2i"], *data["i2t"]) for top in query["top"]]
    assert {len(top) for top in shown} == {1}
    assert all(len(image["thumb"]) < 2000 for image in data["images"] if image["thumb"])
    assert not data["whole"]
    assert "Candidates are kept for" in text  # of five of six images
    assert "report.queries=200" in text


def test_where_all_candidates_are_kept_nothing_is_said_of_it(
    reported: tuple[str, Any, dict[str, Any]],
) -> None:
    text, _, data = reported
    assert data["whole"]
    assert "Candidates are kept for" not in text
    assert "report.queries=200" not in text


def test_smaller_thumbnails_than_asked_for_are_said(
    run: Any, reported: tuple[str, Any, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reported[2]["thumbnail"] == 128
    monkeypatch.setattr(explorer, "THUMBNAILS", 0)
    assert run(said=["thumbnails have 16 pixels instead of 128"])[1]["thumbnail"] == 16


def test_weights_of_an_ensemble_are_short() -> None:
    made = {
        "R": {"weights": [1.0]},
        "RG": {"weights": [2 / 3, 1 / 3]},
        "RGP": {"weights": [1 / 3] * 3},
        "head": {"weights": "0123abcd"},
    }
    tree = parsed(page.render(NOTHING | {"provenance": made}))
    cells = tree.findall(".//h:section[@id='provenance']//h:dd", NAMESPACE)
    assert ["".join(cell.itertext()).strip() for cell in cells] == [
        "1.0",
        "0.667, 0.333",
        "equal",
        "0123abcd",
    ]


def test_photographs_that_are_gone_are_said_to_be(run: Any, tmp_path: Path) -> None:
    for file in (tmp_path / "photographs").iterdir():
        file.unlink()
    _, data = run()
    assert {image["thumb"] for image in data["images"]} == {None}


def test_no_licence_is_named_where_none_is_stated(
    pipeline: Callable[..., Any], tmp_path: Path
) -> None:
    for dataset, is_stated in (("sample", True), ("mine", False)):
        (tmp_path / "data" / dataset).mkdir(parents=True)
        assert pipeline("report", "-S", f"run.dataset={dataset}")[0] == 0
        text = page_below(tmp_path)
        assert ("Licence: " in text) == is_stated
        assert "yours" not in text


def test_systems_go_by_their_method_in_provenance(reported: Any) -> None:
    _, tree, _ = reported
    summaries = tree.findall(".//h:section[@id='provenance']//h:summary", NAMESPACE)
    texts = [summary.text for summary in summaries]
    assert "System: VSE+2AD, Region+Grid, BiGRU, seed 0 (vse2ad-RG-bigru-s0)" in texts


def test_a_run_that_has_not_begun_has_a_page(pipeline: Callable[..., Any], tmp_path: Path) -> None:
    assert pipeline("report")[0] == 0
    text = page_below(tmp_path)
    parsed(text)
    for command in ("extract", "train", "score", "ensemble", "evaluate"):
        assert f"<code>pipeline {command}</code>" in text
