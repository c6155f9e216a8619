"""Tables of the pages show the files of measurements; other numbers of README and docs/measured.md
stand in those files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import invented_facts
import invented_results
import pytest
from pages import PAGES, ROOT

from benchmarks import docs, measure, numbers, slopes
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.made import Made

FILES = sorted(
    file.relative_to(numbers.FILES).with_suffix("").as_posix()
    for file in numbers.FILES.rglob("*.*")
)
"""The names of the files of numbers."""
BETWEEN = "<!-- numbers: {name} -->\n<!-- end -->\n"


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if docs.MARKED.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.name,
)
def test_a_page_shows_the_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == docs.rendered(text), "run `python -m benchmarks.docs`"


def test_every_table_is_found_and_every_file_shown_or_linked() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = [name for _, name, _ in docs.MARKED.findall(text)]
    assert len(shown) == len(re.findall("^<!-- numbers: ", text, re.MULTILINE))
    linked = re.findall(r"\]\(measured/data/([\w/.-]+)\.(?:json|csv)\)", text)
    assert {*shown, *linked} == {*FILES, *docs.COMPUTED}


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_a_table_as_it_was_written(name: str) -> None:
    head, rule, *rows = docs.rendered(BETWEEN.format(name=name)).splitlines()[2:-4]
    columns = rule.count("|")
    assert rows
    assert {line.count("|") for line in (head, *rows)} == {columns}


def decimals(text: str) -> set[str]:
    """The numbers with a decimal point in a text."""
    return {*re.findall(r"(?<![\d,.])\d+\.\d+", text)}


def measured() -> set[str]:
    """The numbers with a decimal point in all files, as pages show them."""
    return decimals("\n".join(map(numbers.rendered_file, FILES)))


def test_readmes_measured_numbers_stand_in_the_data_of_measurements() -> None:
    """Those with a decimal point, in the sections on results and speed."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = "".join(
        re.findall(r"^## (?:Results|Speed)\n(.*?)(?=^## )", readme, re.MULTILINE | re.DOTALL)
    )
    stated = decimals(said)
    assert len(stated) > 20
    assert sorted(stated - measured() - decimals(docs.speeds())) == []


def test_the_measured_pages_numbers_stand_in_its_data() -> None:
    """Those with a decimal point, in its text."""
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    stated = decimals(re.sub("^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))
    assert len(stated) > 80
    assert sorted(stated - measured()) == []


def test_readmes_speeds_follow_from_the_measured_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "FILES", tmp_path)
    for folder, ours in (("avx512", 100), ("avx2", 50)):
        columns = [("", ""), *((name, ".0f") for name in ("ours", "released"))]
        numbers.write(tmp_path / folder / "training_step.json", "true", columns, [["a", ours, 210]])
        rows = [
            [f"{pool} [128, {items}, 1024]", 1, times, times, 0, 0, 0]
            for pool, items, times in (
                ("adpool", 36, 5),
                ("adpool", 256, 14),
                ("gpo", 36, 2),
                ("gpo", 256, 7),
            )
        ]
        numbers.write(tmp_path / folder / "pooling.json", "true", measure.REPORTED, rows)
    cells = [
        line.split(" | ")[1:]
        for line in docs.speeds().replace(" |\n", "\n").removesuffix(" |").splitlines()[2:]
    ]
    assert cells == [
        ["2.1 ×", "4.2 ×"],
        ["5.0 ×, 14.0 ×"] * 2,
        ["2.0 ×, 7.0 ×"] * 2,
    ]


def test_a_benchmark_writes_its_numbers_with_what_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBERS", str(tmp_path / "new"))
    assert slopes.main(
        [10, 1000],
        lambda images, folder: dict.fromkeys(
            (slopes.PLAIN, "step"), slopes.Cost(0.001234 * images, 100)
        ),
    )
    found = numbers.read(tmp_path / "new" / "slopes.json")
    assert found["rows"][1:] == [["step", *map(pytest.approx, (0.01234, 1.234, 1)), 100]]
    assert found["made_by"].keys() == {"command", "commit", "day", "machine"}
    head, rule, _, row, _, made = numbers.rendered(found).splitlines()
    assert head == "| step | 10 | 1,000 | slope | MB |"
    assert (rule, row) == ("| :-- | --: | --: | --: | --: |", "| step | 0.01 | 1.23 | 1.00 | 100 |")
    assert found["made_by"]["commit"] in made


def test_without_the_variable_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBERS", raising=False)
    monkeypatch.chdir(tmp_path)
    numbers.keep("any", [("", "")], [["a"]])
    assert not list(tmp_path.iterdir())


def test_a_typed_table_is_shown_with_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "FILES", tmp_path)
    (tmp_path / "typed.csv").write_text('# record: in commit 1, 2 cores\n,RSUM\n"R, G",−4.9\n')
    assert docs.rendered(BETWEEN.format(name="typed")) == (
        "<!-- numbers: typed -->\n\n|  | RSUM |\n| :-- | --: |\n| R, G | −4.9 |\n\n"
        "*(record: in commit 1, 2 cores)*\n\n<!-- end -->\n"
    )


def test_an_edited_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    numbers.write(
        path,
        "true",
        [("", ""), ("RSUM", ".1f")],
        [["R", 230.3], ["G", None], ["G less R", (-4.9, 2)]],
    )
    assert [
        line.split("|")[2].strip()
        for line in numbers.rendered(numbers.read(path)).splitlines()[2:5]
    ] == ["230.3", "", "−4.9 (2.0)"]
    path.write_text(path.read_text().replace("230.3", "240.3"))
    with pytest.raises(InputError, match="was edited; write it again by true"):
        numbers.read(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="was edited"):
        numbers.read(path)
    with pytest.raises(ValueError, match="expected 2 values in a row"):
        numbers.write(path, "true", [("", ""), ("RSUM", ".1f")], [["R"]])


def entry(
    name: str,
    features: list[str],
    ensemble: str | None,
    scores: str,
    rsum: float,
    recipe: str = "a",
) -> dict[str, Any]:
    recalls = {f"R@{k}": float(k) for k in (1, 5, 10)}
    untrained = [name for name in features if name == "patch"]
    made_from: Made
    if ensemble is None:
        made_from = invented_facts.of_head(
            recipe=recipe,
            is_untrained=bool(untrained),
            member={"head": name, "feature": features[0]},
        )
    else:
        made_from = invented_facts.ensemble(
            ensemble, recipe=recipe, features=dict.fromkeys(features, ""), untrained=untrained
        )
    numbers = {"i2t": recalls, "t2i": recalls, "RSUM": rsum}
    return invented_results.result(
        name, made_from.recorded(), {"all": numbers}, {"all": scores}
    ).entry


def test_results_of_a_run_make_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "FILES", tmp_path)
    results = {
        "a": entry("a", ["region"], None, "x", 230.25),
        "b": entry("b", ["patch"], None, "y", 40),
        "c": entry("c", ["region"], "R", "x", 230.25),
        "d": entry("d", ["region", "patch"], "RP", "z", 231),
    }
    (tmp_path / "metrics").write_text(json.dumps(results))
    docs.of_results(tmp_path / "metrics", "run")
    found = numbers.read(tmp_path / "run.json")
    assert [(row[0], row[1:4], row[-1]) for row in found["rows"]] == [
        ("region alone = R", [1, 5, 10], 230.25),
        ("patch alone (untrained network)", [1, 5, 10], 40),
        ("RP", [1, 5, 10], 231),
    ]
    assert docs.rendered("a\n<!-- numbers: run -->\nold\n<!-- end -->\nb\n").startswith(
        "a\n<!-- numbers: run -->\n\n| features | i2t R@1 | R@5 |"
    )
    empty = "<!-- numbers: run -->\n<!-- end -->"
    assert docs.rendered(f"{empty}\nkept\n{empty}").count("\nkept\n") == 1
    assert docs.rendered(f"{empty}\nkept\n{empty}").count("| features |") == 2
    results["e"] = entry("e", ["region"], "R", "rescored", 240)
    (tmp_path / "metrics").write_text(json.dumps(results))
    docs.of_results(tmp_path / "metrics", "run")
    assert [row[0] for row in numbers.read(tmp_path / "run.json")["rows"]] == [
        "a = c",
        "b",
        "d",
        "e",
    ]
    results["f"] = entry("f", ["grid"], None, "of another recipe", 250, "b")
    (tmp_path / "metrics").write_text(json.dumps(results))
    docs.of_results(tmp_path / "metrics", "run", "b")
    assert [row[0] for row in numbers.read(tmp_path / "run.json")["rows"]] == ["grid alone"]
    results["b"]["all"]["RSUM"] = 50
    (tmp_path / "metrics").write_text(json.dumps(results))
    with pytest.raises(InputError, match="the entry of b is not as it was measured"):
        docs.of_results(tmp_path / "metrics", "run")
    facts = invented_facts.of_head(recipe="a").recorded()
    of_coco = invented_results.result("a", facts, {})
    (tmp_path / "metrics").write_text(json.dumps({"a": of_coco.entry}))
    with pytest.raises(InputError, match="a was not measured by the protocol `all`"):
        docs.of_results(tmp_path / "metrics", "run")


def test_a_comparison_makes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "FILES", tmp_path)
    rsum = {
        "difference": 18.14,
        "interval": [13.0, 23.2],
        "p": 0.001,
        "resolution": 0.0,
        "adjusted": 0.12,
        "adjusted_by": "Holm",
        "needs": {"images": None, "seeds": 9},
    }
    pair = {"systems": {"a": ["R"], "b": ["RG"]}}
    (tmp_path / "said").write_text(json.dumps([pair | {"protocol": "all", "RSUM": rsum}]))
    docs.of_comparison(tmp_path / "said", "both")
    found = numbers.read(tmp_path / "both.json")
    assert found["made_by"]["command"] == "pipeline compare R RG"
    row = numbers.rendered(found).splitlines()[2]
    assert row == "| RG | R | +18.1 | +13.0 | +23.2 | 0.001 | 0.12 | 9 seeds |"
    both = [
        pair | {"protocol": name, "RSUM": rsum | {"difference": difference}}
        for name, difference in (("coco_1k_5fold", 18.14), ("coco_5k", 9))
    ]
    (tmp_path / "said").write_text(json.dumps(both))
    docs.of_comparison(tmp_path / "said", "both")
    rows = numbers.read(tmp_path / "both.json")["rows"]
    assert [row[2:4] for row in rows] == [["coco_1k_5fold", 18.14], ["coco_5k", 9]]
