"""Reading `metrics.json`: what belongs together, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import invented_facts
import pytest
from invented import BERT, built, headlines, read_metrics, system

from pipeline.foundation.evaluation.metrics import RSUM, Statistic
from pipeline.foundation.files.weights import RELEASED, checkpoints
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables.table import TableRequest
from pipeline.make.features.extractors import ENGINES
from pipeline.run.report import result_rows
from pipeline.run.report.measured import (
    SEPARATE,
    MeasuredSystem,
    _section,
    _tested,
    outside_benchmarks,
    tasks,
)
from pipeline.run.report.names import PAPERS, backbone, image_stand_in, network, stand_ins


def only(measured: dict[str, Any]) -> dict[str, Any]:
    (entry,) = measured.values()
    return entry


@pytest.mark.specification
def test_seeds_of_one_system_are_one_measurement() -> None:
    (found,) = read_metrics(
        system("sample", "all", r1=10.0, seed=1) | system("sample", "all", r1=13.0, seed=0)
    )
    assert found.systems == ("vse2ad-R-bigru-s0 sample", "vse2ad-R-bigru-s1 sample")
    assert found.values["i2t", "R@1"] == (13.0, 10.0)
    assert found.mean(RSUM) == pytest.approx(6 * 11.5 + 30)
    assert found.spread(Statistic("i2t", "R@5")) == pytest.approx(4.5**0.5)


def test_a_metric_that_one_seed_lacks_is_no_metric_of_the_system() -> None:
    first, second = system("sample", "all"), system("sample", "all", seed=1)
    for lacking, having in ((first, second), (second, first)):
        more = only(having)["all"] | {"i2t": only(having)["all"]["i2t"] | {"mAP@R": 40.0}}
        ((name, entry),) = having.items()
        (found,) = read_metrics(lacking | {name: entry | {"all": more}})
        assert ("i2t", "mAP@R") not in found.values
        assert len(found.values[RSUM]) == 2


def test_what_was_left_out_stands_below_a_table() -> None:
    plain, lacking = system("sample", "all"), system("sample", "all")
    only(lacking)["all"]["left_out"] = {"no caption": 2}
    notes = [
        [note.text for note in result_rows.remarks(read_metrics(each))] for each in (plain, lacking)
    ]
    said = "Left out of the sample of rendered scenes (test split): no caption: 2."
    assert (said in notes[1], notes[0]) == (True, [note for note in notes[1] if note != said])


def test_one_seed_has_no_spread() -> None:
    assert read_metrics(system("sample", "all"))[0].spread(RSUM) is None


@pytest.mark.parametrize(
    "change", [{"manifest": "other"}, {"split": "val"}, {"text": "bert"}, {"images": 9}]
)
def test_seeds_of_different_origin_stay_apart(change: dict[str, Any]) -> None:
    assert (
        len(read_metrics(system("sample", "all") | system("sample", "all", seed=1, **change))) == 2
    )


@pytest.mark.parametrize(
    ("change", "description"),
    [
        ({"settings": {"learning_rate": 1e-3}}, "learning_rate 0.0005 and 0.001"),
        ({"settings": {"dimension": 256, "epochs": 3}}, "dimension 1024 and 256, epochs 25 and 3"),
        ({"settings": {"noise": 0.1}}, "noise None and 0.1"),
        ({"store": "made again"}, "other features"),
        ({"weights": "others"}, "another network behind them"),
        ({"vocabulary": "others"}, "other words"),
    ],
)
def test_what_was_trained_otherwise_is_no_seed_of_the_same_system(
    change: dict[str, Any], description: str
) -> None:
    other = system("sample", "all", seed=1, settings=change.get("settings"))
    only(other)["record"]["facts"]["members"][0] |= {
        key: value for key, value in change.items() if key != "settings"
    }
    with pytest.raises(
        InputError,
        match=f"-s0 sample' and .*-s1 sample' are no seeds of one system: {description}; train",
    ):
        read_metrics(system("sample", "all") | other)


def reranked(k: int, **options: Any) -> dict[str, Any]:
    """An ensemble on COCO 5K, its first `k` candidates reranked."""
    entry = system("coco", "coco_5k", **options)
    record = only(entry)["record"]
    record["facts"] = invented_facts.reranked(record["facts"], "oscar", k).recorded()
    return {f"reranked {k} {name}": value for name, value in entry.items()}


def test_a_step_after_the_ensemble_makes_another_system() -> None:
    plain, first, second = read_metrics(system("coco", "coco_5k") | reranked(20) | reranked(50))
    assert plain.origin.steps == ()
    assert first.origin.steps == ("rerank (with oscar, k 20)",)
    assert second.origin.steps == ("rerank (with oscar, k 50)",)
    (seeds,) = read_metrics(reranked(20) | {"other seed": only(reranked(20, seed=1))})
    assert len(seeds.systems) == 2


def test_a_reranked_row_says_so_and_is_not_compared_with_the_published_one() -> None:
    measured = system("coco", "coco_5k") | reranked(20)
    (panel,) = built("vse2ad_table3", measured, TableRequest(delta=True)).panels
    rows = [
        [cell.text for cell in row.cells]
        for group in panel.groups
        for row in group.rows
        if row.sources
    ]
    labels = ["VSE+2AD", "VSE+2AD, rerank (with oscar, k 20)"]
    assert [row[0] for row in rows] == labels
    assert [bool(row[-1]) for row in rows] == [True, False]
    (headline,) = headlines(measured)
    assert [row.name for row in headline.rows] == [
        "VSE+2AD, R, BiGRU",
        "VSE+2AD, R, BiGRU, rerank (with oscar, k 20)",
    ]


def test_a_system_that_has_seen_all_queries_is_marked_and_does_not_compete() -> None:
    best = system("coco", "coco_5k", r1=80.0)
    record = only(best)["record"]
    record["facts"] = invented_facts.rescored(record["facts"], "csls", "test").recorded()
    measured = system("coco", "coco_5k", r1=60.0) | {"rescored": only(best)}
    systems = read_metrics(measured)
    headers = [
        row.header
        for row in result_rows.measured_rows(
            systems, lambda one: result_rows.RowHeader((one.origin.recipe,)), {}
        )
    ]
    marked = [result_rows.TRANSDUCTIVE in header.marks for header in headers]
    assert (marked, [header.competes for header in headers]) == ([False, True], [True, False])


@pytest.mark.parametrize("steps", [3, "rerank", ["rerank"], [{"k": 20}], None])
def test_facts_that_cannot_be_read_are_refused(steps: Any) -> None:
    named = {"kind": "system", "name": "n", "place": "n", "made_from": "d"}
    broken_scorer = reranked(20)
    only(broken_scorer)["record"]["facts"]["scorer"] = {**named, "steps": steps}
    broken_source = reranked(20)
    only(broken_source)["record"]["facts"]["source"] = {"kind": "head", "steps": steps}
    for measured in (broken(steps=steps), broken(kind=steps), broken_source, broken_scorer):
        if measured is broken_scorer and steps == [{"k": 20}]:  # steps that print nothing
            continue
        with pytest.raises(InputError, match="run `pipeline evaluate` again"):
            read_metrics(measured)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("dataset", "protocol", "split", "benchmark"),
    [
        ("coco", "coco_1k_5fold", "test", "coco_1k_5fold"),
        ("coco", "coco_5k", "test", "coco_5k"),
        ("flickr30k", "flickr30k_1k", "test", "f30k_1k"),
        ("coco", "coco_5k", "val", None),
        ("coco", "all", "test", None),
        ("sample", "flickr30k_1k", "test", None),
    ],
)
def test_only_the_benchmarks_own_test_sets_repeat_it(
    dataset: str, protocol: str, split: str, benchmark: str | None
) -> None:
    (found,) = read_metrics(system(dataset, protocol, split=split))
    assert found.origin.benchmark == benchmark
    assert bool(outside_benchmarks([found])) == (benchmark is None)


def test_plain_protocol_is_preferred() -> None:
    measured = system("sample", "all")
    only(measured)["first_half"] = only(system("sample", "first_half", images=500))["first_half"]
    only(measured)["all"] = only(measured).pop("all")  # not the first
    ((chosen,),) = outside_benchmarks(read_metrics(dict(measured)))
    assert chosen.origin.protocol == "all"


WSL = {
    "engine": "grid",
    "network": "resnext101_32x8d.fb_wsl_ig1b_ft_in1k",
    "weights": "resnext101-wsl",
}
VIT = {
    "engine": "patch",
    "network": "vit_base_patch16_224.orig_in21k_ft_in1k",
    "weights": "vit-base-patch16-224",
}
BUTD = {"engine": "butd-36", "weights": "butd-36"}


def test_networks_go_by_the_papers_names() -> None:
    names = {"region": "butd-10-100", "grid": "grid16-resnext101_32x8d.fb_wsl_ig1b_ft_in1k"}
    (found,) = read_metrics(
        system("coco", "coco_5k", ensemble="RG", features=names, networks={"grid": WSL})
    )
    assert backbone(found.members) == "BUTD+WSL"
    assert stand_ins(found.members) == []
    (found,) = read_metrics(
        system("coco", "coco_5k", ensemble="RG", features=names, untrained=["grid"])
    )
    assert backbone(found.members) == "other"
    assert stand_ins(found.members) == [f"grid ({names['grid']}, untrained)"]


@pytest.mark.parametrize(
    ("feature", "image", "name"),
    [
        ("region", BUTD, "BUTD"),
        ("region", {"engine": "butd-given", "weights": "butd-10-100-milvlg"}, "BUTD"),
        (
            "grid",
            {"engine": "grid", "network": "butd_resnet101", "weights": "butd-resnet101"},
            "BUTD",
        ),
        (
            "grid",
            {"engine": "grid", "network": "resnet152.tv_in1k", "weights": "resnet152-in1k"},
            "IN-R152",
        ),
        ("grid", {"engine": "grid", "network": "butd_resnet101", "weights": RELEASED}, "BUTD"),
        ("patch", VIT, "ViT-B/16"),
        # The same words in the name, another network.
        ("patch", VIT | {"network": "vit_base_patch16_224.dino", "weights": "dino"}, "other"),
        ("patch", VIT | {"network": "vit_base_patch16_224_miil.in21k_ft_in1k"}, "other"),
        ("grid", WSL | {"network": "resnet152.a1h_in1k"}, "other"),
        ("grid", WSL | {"engine": "pyramid"}, "other"),
        # Another ResNeXt-101, which learned to detect: no table of the papers has it.
        (
            "grid",
            {
                "engine": "grid-feats-x101",
                "network": "resnext101_32x8d",
                "weights": "grid-feats-x101",
            },
            "other",
        ),
        (
            "region",
            {"engine": "pyramid", "network": "resnet152.tv_in1k", "weights": "resnet152-in1k"},
            "other",
        ),
        # The same network, the user's own weights, whatever their file is called; or none.
        (
            "patch",
            {"engine": "patch", "network": VIT["network"], "file": "vit-base-patch16-224"},
            "other",
        ),
        ("region", {"engine": "butd-36", "file": "butd-36"}, "other"),
        ("region", BUTD | {"weights": "untrained"}, "other"),
        ("region", {}, "other"),
    ],
)
def test_a_network_is_known_by_all_its_names(
    feature: str, image: dict[str, Any], name: str
) -> None:
    usual = {
        "region": "butd-36-proposals",
        "grid": f"grid16-{image.get('network')}",
        "patch": f"patch-{VIT['network']}",
    }
    assert network(feature, usual[feature], image) == name
    assert network(feature, "vit_base_patch16_224, butd, wsl, resnet152", image) == "other"


@pytest.mark.parametrize(
    ("feature", "image", "names"),
    [
        (
            "region",
            BUTD,
            [
                "butd-36-proposals-200px-333px",
                "butd-36-proposals-rpn45",
                "butd-5-proposals",
                "butd-36-proposals-bf16",
            ],
        ),
        (
            "grid",
            {"engine": "grid", "network": "resnet152.tv_in1k", "weights": "resnet152-in1k"},
            ["grid2-resnet152.tv_in1k", "grid16-resnet152.tv_in1k-256px"],
        ),
        ("patch", VIT, [f"patch-{VIT['network']}-384px", f"patch-{VIT['network']}-nocls"]),
    ],
)
def test_a_feature_of_other_settings_is_a_stand_in_by_its_name(
    feature: str, image: dict[str, Any], names: list[str]
) -> None:
    for name in names:
        assert network(feature, name, image) == "other"
        assert name.rpartition("-")[2] in image_stand_in(feature, name, image)


@pytest.mark.parametrize(
    ("feature", "recipe", "name"),
    [
        ("region", "butd-36-scan", "BUTD"),
        ("region", "butd-36-lxmert", "BUTD"),
        ("region", "butd-10-100", "BUTD"),
        ("grid", "grid16-resnet152.tv_in1k", "IN-R152"),
        ("patch", "patch-vit_base_patch16_224.orig_in21k_ft_in1k", "ViT-B/16"),
        ("grid", "butd-36-scan", "other"),
        ("region", "my-butd", "other"),
        ("region", "butd-tsv-36x2048", "other"),
    ],
)
def test_imported_features_are_known_by_their_whole_name(
    feature: str, recipe: str, name: str
) -> None:
    image = {"format": "scan"}
    assert network(feature, recipe, image) == name
    assert image_stand_in(feature, recipe, image) == (
        "" if name != "other" else f"{feature} ({recipe}, imported)"
    )


def test_every_known_network_has_weights_that_a_user_can_name() -> None:
    known = checkpoints()
    for _, engine, architecture, weights in PAPERS:
        assert weights == RELEASED or known[weights].timm in (None, architecture)
        assert engine in ENGINES
    others = {"efficientnet-lite0", "efficientnet-lite2", "bert-base-uncased"} | {
        name
        for name in known
        if name.startswith(("clip-", "dinov2-", "dinov3-", "grid-feats-", "siglip"))
    }
    assert {weights for *_, weights in PAPERS} == {*known, RELEASED} - others


def test_windows_over_a_papers_grid_network_are_no_papers_regions() -> None:
    image = {"engine": "pyramid", "network": "resnet152.tv_in1k", "weights": "resnet152-in1k"}
    windows = {"region": "pyramid36-resnet152"}
    (found,) = read_metrics(system("coco", "coco_5k", features=windows, networks={"region": image}))
    assert stand_ins(found.members) == ["region (pyramid36-resnet152)"]
    image = {"engine": "butd-36", "weights": "f" * 64, "place": "/models/mine.pth"}
    (found,) = read_metrics(system("coco", "coco_5k", networks={"region": image}))
    assert stand_ins(found.members) == ["region (butd-36, weights of mine.pth)"]


KNOWN_FILE = "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3"


@pytest.mark.parametrize(
    ("bert", "description"),
    [
        (BERT, ""),
        (BERT | {"hub": "google-bert/bert-base-uncased"}, ""),
        ({**BERT, "hub": None, "folder": "copied", "sha256": KNOWN_FILE}, ""),
        (
            {**BERT, "hub": None, "folder": "bert-base-uncased", "sha256": "0" * 64},
            "text (bert of 12 layers, 768 wide, from bert-base-uncased)",
        ),
        (
            BERT | {"hub": "BAAI/bge-base-en"},
            "text (bert of 12 layers, 768 wide, from BAAI/bge-base-en)",
        ),
        (
            BERT | {"hub": "me/bert-base-uncased"},
            "text (bert of 12 layers, 768 wide, from me/bert-base-uncased)",
        ),
        (
            BERT | {"layers": 2, "width": 128},
            "text (bert of 2 layers, 128 wide, from bert-base-uncased)",
        ),
        (
            {"kind": "bert", "layers": 12, "width": 768, "pieces": 30522},
            "text (bert of 12 layers, 768 wide, checkpoint not recorded)",
        ),
        ({"kind": "bert"}, "text (bert, checkpoint not recorded)"),
        (
            {"engine": "text-tower", "weights": "0" * 64, "place": "minilm"},
            "text (text-tower, from minilm)",
        ),
    ],
)
def test_any_bert_but_the_papers_is_a_stand_in(bert: dict[str, Any], description: str) -> None:
    (found,) = read_metrics(system("coco", "coco_5k", text="bert", bert=bert))
    assert stand_ins(found.members) == [description] * bool(description)


def broken(**changes: Any) -> dict[str, Any]:
    measured = system("sample", "all")
    only(measured)["record"]["facts"].update(changes)
    return measured


def without(*path: str) -> dict[str, Any]:
    measured = system("sample", "all")
    entry = only(measured)
    for key in path[:-1]:
        entry = entry[key]
    del entry[path[-1]]
    return measured


def with_value(value: Any) -> dict[str, Any]:
    measured = system("sample", "all")
    only(measured)["all"] = only(measured)["all"] | {"RSUM": value}
    return measured


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([], "no mapping"),
        ({"x": 3}, "does not say what made it"),
        (without("record"), "does not say what made it"),
        (without("all", "images"), "'images'"),
        (without("all", "i2t"), "'i2t'"),
        (without("record", "facts", "members"), "does not say what made it"),
        (without("record", "facts", "kind"), "does not say what made it"),
        (broken(members=[]), "do not say which networks and settings made them"),
        (
            broken(members=[{"head": "h", "checkpoint": "c", "store": "s", "weights": "w"}]),
            "which networks",
        ),
        (broken(members=[3]), "does not say what made it"),
        (broken(seed="first"), "does not say what made it"),
        (broken(unheard="of"), "does not say what made it"),
        (broken(features={}), "features"),
        (with_value(float("nan")), "RSUM is not a finite number"),
        (with_value("high"), "high"),
    ],
)
def test_bad_metrics_are_refused_in_one_line(measured: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read_metrics(measured)
    assert "\n" not in str(refusal.value)


def test_a_second_head_of_a_recipe_and_seed_goes_by_its_own_name() -> None:
    first, second = read_metrics(system("sample", "all") | {"with-d-128": only(with_value(1.0))})
    assert (second.origin.recipe, second.systems) == ("with-d-128", ("with-d-128",))
    assert second.label() != first.label()
    assert "with-d-128" in second.label()


def test_nothing_is_read_out_of_the_names_of_features() -> None:
    """A name is the user's, whatever it ends with; how the features were made is in fields."""
    own = WSL | {"name": "grid16-resnext101_32x8d.fb_wsl_ig1b_ft_in1k"}
    assert network("grid", "import-mine-finetuned-untrained", own) == "WSL"
    assert network("grid", own["name"], own | {"name": "mine-finetuned"}) == "other"
    assert network("grid", own["name"], own | {"precision": "bf16"}) == "other"
    assert network("grid", own["name"] + "-finetuned", WSL) == "other"
    assert image_stand_in(
        "grid", "x-untrained", {"engine": "import-scan", "weights": "untrained"}
    ) == ("grid (x-untrained, untrained)")
    other = own | {"name": "grid2", "weights": "untrained", "precision": "bf16"}
    assert image_stand_in("grid", "grid2-untrained-bf16", other) == "grid (grid2, untrained, bf16)"


def test_todays_patch_networks_go_by_their_cards() -> None:
    tag = "vit_base_patch14_reg4_dinov2.lvd142m"
    made = {"engine": "patch", "network": tag, "weights": "dinov2-vit-base-patch14-reg4"}
    assert (
        image_stand_in("patch", f"patch-{tag}", made) == "patch (DINOv2 ViT-B/14 with 4 registers)"
    )
    assert (
        image_stand_in("patch", f"patch-{tag}", made | {"weights": "untrained"})
        == f"patch (patch-{tag}, untrained)"
    )


def cross(*of_tasks: str) -> Any:
    return SimpleNamespace(settings={"architecture": {"name": "cross"}, "tasks": [*of_tasks]})


def test_the_tasks_of_a_cross_encoder_are_what_it_was_trained_for() -> None:
    for of_tasks, known in (
        (("emb", "ce"), {"emb", "ce"}),
        (("emb", "ance"), {"emb"}),
        (("ce",), {"ce"}),
        ((), {"emb"}),
    ):
        assert tasks(cross(*of_tasks).settings) == known
    assert tasks({"architecture": {"name": "dual"}, "tasks": ["ce"]}) == frozenset()
    assert tasks({}) == frozenset()


@pytest.mark.parametrize(
    ("members", "rerank", "part"),
    [
        ([cross("emb")], {}, "EMB"),
        ([cross("emb", "ance")], {}, "EMB"),
        ([cross("ce")], {}, "CE"),
        ([cross("emb", "ce")], {}, "JOIN+EMB"),
        ([cross("emb", "ce")], {"k": 20}, "JOIN+CO"),
        ([cross("emb", "ce")], {"k": "all"}, "JOIN+CE"),
        ([cross("emb"), cross("ce")], {"k": 20}, "SEP+CO"),
        ([cross("emb")], {"k": 20, SEPARATE: True}, "SEP+CO"),
        ([cross("emb"), SimpleNamespace(settings={})], {"k": 20}, ""),
        ([], {}, ""),
    ],
)
def test_the_parts_of_cooperative_retrieval_have_their_papers_names(
    members: list[Any], rerank: dict[str, Any], part: str
) -> None:
    origin: Any = SimpleNamespace(rerank=tuple(rerank.items()))
    assert MeasuredSystem(origin, (), {}, tuple(members)).part == part


def test_of_a_lone_head_and_its_ensemble_the_ensemble_is_kept() -> None:
    """Whichever was measured first."""
    lone, ensemble = system("sample", "all", ensemble=None), system("sample", "all")
    for first, second in ((lone, ensemble), (ensemble, lone)):
        (found,) = read_metrics(first | second)
        assert found.systems == tuple(ensemble)


def test_a_system_with_a_benchmark_s_protocol_is_shown_there_alone() -> None:
    ((name, entry),) = system("coco", "coco_5k", images=5000, captions=25_000).items()
    both = {name: entry | {"all": entry["coco_5k"]}}
    assert len(read_metrics(both)) == 2
    assert outside_benchmarks(read_metrics(both)) == []
    other = system("sample", "coco_5k")
    ((name, entry),) = other.items()
    ((found,),) = outside_benchmarks(read_metrics({name: entry | {"all": entry["coco_5k"]}}))
    assert found.origin.protocol == "all"


def test_systems_that_no_head_made_have_the_section_of_their_making() -> None:
    def made(**facts: Any) -> Any:
        known = {"is_head": False, "given": None, "encoder": None} | facts
        return SimpleNamespace(letters="", members=[SimpleNamespace(**known)])

    assert _section(SimpleNamespace(letters="R")) == ""  # type: ignore[arg-type]
    assert _section(made(encoder={"trained_on": "pairs of the web"})) == "zero-shot"
    assert _section(made(encoder={"tuned_on": "coco", "trained_on": "pairs"})) == "fine-tuned"
    assert _section(made(given="files")) == "given"


def test_a_language_is_tested_by_its_own_hits() -> None:
    kept = {"queries": "whole", "languages": {"de": {"queries": "de"}, "en": {"queries": "en"}}}
    found = _tested(kept)
    assert found[RSUM].runs[0].queries == "whole"
    for language in ("de", "en"):
        column = found[Statistic(language, "mR")]
        assert (column.runs[0].queries, column.statistic) == (language, RSUM)
    assert _tested({}) == {}


def test_rows_of_one_label_name_what_differs_between_them() -> None:
    """Their recipe, or what made their features; what is the same is not named."""
    known = ["vse2ad", "vse_pp"]
    for systems, labels in (
        ([system("sample", "all")], ["net"]),
        (
            [system("sample", "all", recipe=recipe) for recipe in known],
            [f"net ({each})" for each in known],
        ),
        (
            [system("sample", "all"), system("sample", "all", seed=1, untrained=["region"])],
            ["net (region: butd-36)", "net (region: butd-36 untrained)"],
        ),
    ):
        read = [found for each in systems for found in read_metrics(each)]
        rows = result_rows.measured_rows(read, lambda _: result_rows.RowHeader(("net",)), {})
        assert [row.header.labels[0] for row in rows] == labels


def test_the_numbers_of_seeds_are_said_from_the_fewest_to_the_most() -> None:
    def seeds(recipe: str, count: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for seed in range(count):
            entries |= system("sample", "all", recipe=recipe, seed=seed, r1=50.0 + seed)
        return entries

    for counts, said in (
        ((1,), None),
        ((3,), "3 seeds"),
        ((1, 2), "2 seeds"),
        ((2, 5), "2 to 5 seeds"),
    ):
        entries: dict[str, Any] = {}
        for recipe, count in zip(("vse2ad", "vse_pp"), counts, strict=False):
            entries |= seeds(recipe, count)
        texts = [
            note.text for note in result_rows.remarks(read_metrics(entries)) if "±" in note.text
        ]
        expected = []
        if said:
            expected = [f"±: mean and sample standard deviation over {said}."]
        assert texts == expected
