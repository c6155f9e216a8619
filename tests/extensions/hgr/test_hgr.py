"""HGR: the similarity of each pair, written out phrase by phrase in float64; role graphs as
tensors; gradients.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from pipeline.extensions.hgr import reading
from pipeline.extensions.hgr.head import HGR, GraphAttention
from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make import heads
from pipeline.make.heads.base import Backbone
from pipeline.make.heads.sides import Side
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.tokens import encode, pad
from pipeline.make.text.vocabulary import Vocabulary

pytestmark = pytest.mark.slow

CAPTIONS = ["a dog runs, a cat sleeps on the mat", "dog", "the cat runs and the dog sleeps"]
GRAPHS = [
    (
        [["V", [2]], ["ARG0", [0, 1]], ["V", [5]], ["ARG1", [3, 4]], ["ARGM-LOC", [6, 7, 8]]],
        [[0, 1], [2, 3], [2, 4]],
    ),
    ([["NOUN", [0]]], []),
    ([["C-ARG1", [0, 1]], ["V", [2]], ["R-ARG0", [3]], ["ARGM-GOL", [6]]], [[1, 0], [1, 3]]),
]
TEXT = BiGRUText(Vocabulary.of(CAPTIONS))
PLACED = reading.place(TEXT, CAPTIONS, [json.dumps(graph) for graph in GRAPHS])
PARAMS = Path(__file__).parents[3] / "params.yaml"
SETTINGS = settings.load(PARAMS, ("training.sample.dimension=8",))
COUNTS = torch.tensor([5, 1, 3])


def hgr(recipe: str = "hgr", **changes: Any) -> HGR:
    torch.manual_seed(0)
    chosen = SETTINGS.recipe(recipe).model_copy(update=changes)
    built = heads.build(chosen, "frame", 6, TEXT, SETTINGS.training_of("sample"))
    assert isinstance(built, HGR)
    for weight in built.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return built.eval()


def read() -> tuple[torch.Tensor, torch.Tensor, reading.GraphBatch]:
    tokens, lengths = map(torch.from_numpy, pad(encode(TEXT, CAPTIONS)))
    return tokens, lengths, reading.batch(PLACED, tokens.shape[1])


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def softmax(values: np.ndarray) -> np.ndarray:
    return np.exp(values) / np.exp(values).sum()


def linear(layer: Any, values: np.ndarray) -> np.ndarray:
    out = values @ layer.weight.detach().double().numpy().T
    return out if layer.bias is None else out + layer.bias.detach().double().numpy()


def pooled(pooling: Any, values: np.ndarray) -> np.ndarray:
    """Attention over all of a set; GPO has its definition in test_definitions.py."""
    if hasattr(pooling, "score"):
        return softmax(linear(pooling.score, values)[:, 0]) @ values
    found = pooling.double()(torch.from_numpy(values)[None], torch.tensor([len(values)]))
    return found[0].detach().numpy()


def nodes_of(
    model: Any, words: np.ndarray, graph: tuple[Any, Any]
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """A caption's event, verbs and other phrases, from its words with <start> and <end>."""
    phrases, pairs = graph
    places = np.cumsum(
        [1, *(len(TEXT.split([word])[0]) for word in CAPTIONS[GRAPHS.index(graph)].split())]
    )
    vectors = [pooled(model.text_pooling, words)]
    for role, span in phrases:
        own = [words[place] for word in span for place in range(places[word], places[word + 1])]
        plain = role.removeprefix("C-").removeprefix("R-")
        number = reading.ROLES.index(plain if plain in reading.ROLES else "NOUN")
        vectors.append(np.max(own, 0) * model.roles.weight[number].detach().double().numpy())
    neighbours: list[set[int]] = [set() for _ in vectors]
    for number, (role, _) in enumerate(phrases):
        if role == "V":
            neighbours[1 + number].add(0)
    for verb, other in pairs:
        neighbours[1 + verb].add(1 + other)
        neighbours[1 + other].add(1 + verb)
    layer, after = model.graph, []
    for own, near in zip(vectors, neighbours, strict=True):
        taken = np.zeros_like(own)
        if near:
            there = np.stack([vectors[each] for each in near])
            scores = linear(layer.key, there) @ linear(layer.query, own) / np.sqrt(len(own) // 2)
            taken = linear(layer.context, softmax(scores) @ there)
        whole = own + taken
        whole = (whole - whole.mean()) / np.sqrt(whole.var() + 1e-5)
        after.append(
            whole * layer.norm.weight.detach().double().numpy()
            + layer.norm.bias.detach().double().numpy()
        )
    verbs = [vector for vector, (role, _) in zip(after[1:], phrases, strict=True) if role == "V"]
    return (
        after[0],
        verbs,
        [vector for vector, (role, _) in zip(after[1:], phrases, strict=True) if role != "V"],
    )


def with_frames(phrases: list[np.ndarray], frames: np.ndarray) -> float:
    """The mean cosine of phrases with the frames that each attends to; 0 without a phrase."""
    found = []
    for phrase in phrases:
        close = np.array([max(cosine(frame, phrase), 0.0) for frame in frames])
        weights = softmax(4 * close / max(np.linalg.norm(close), 1e-12))
        found.append(cosine(weights @ frames, phrase))
    return float(np.mean(found)) if found else 0.0


@pytest.mark.specification
@pytest.mark.parametrize("recipe", ["hgr", "hgr_infty"])
def test_a_similarity_is_the_mean_of_three_levels(recipe: str) -> None:
    model, items = hgr(recipe), torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(1))
    tokens, lengths, graphs = read()
    with torch.inference_mode():
        images = model.image_parts(Side(items, COUNTS))
        captions = model.caption_parts(Side(tokens, lengths, further=graphs))
        found = model.similarity(images, captions).numpy()
        words = model.text(tokens, lengths).double().numpy()
    for i, count in enumerate(COUNTS.tolist()):
        levels = [linear(level, items[i, :count].double().numpy()) for level in model.levels]
        for c, graph in enumerate(GRAPHS):
            event, verbs, others = nodes_of(model, words[c, : lengths[c]], graph)
            expected = (
                cosine(pooled(model.image_pooling, levels[0]), event)
                + with_frames(verbs, levels[1])
                + with_frames(others, levels[2])
            ) / 3
            assert found[i, c] == pytest.approx(expected, abs=1e-5)


def test_pairs_are_cells_of_the_matrix_and_padding_has_no_effect() -> None:
    model, items = hgr(), torch.randn(3, 5, 6)
    tokens, lengths, graphs = read()
    with torch.inference_mode():
        images = model.image_parts(Side(items, COUNTS))
        captions = model.caption_parts(Side(tokens, lengths, further=graphs))
        found = model.similarity(images, captions)
        image, caption = torch.tensor([0, 2, 1, 1]), torch.tensor([2, 0, 1, 2])
        pairs = model.pairs(
            tuple(part[image] for part in images), tuple(part[caption] for part in captions)
        )
        torch.testing.assert_close(pairs, found[image, caption], atol=1e-6, rtol=0)
        more = torch.cat([tokens, tokens[:, :2]], 1)
        captions = Side(more, lengths, further=reading.batch(PLACED, more.shape[1]))
        again = model.similarity(
            model.image_parts(Side(torch.cat([items, torch.full((3, 2, 6), 7.0)], 1), COUNTS)),
            model.caption_parts(captions),
        )
        torch.testing.assert_close(again, found, atol=1e-6, rtol=0)


def test_gradients_are_finite_for_captions_without_verbs_and_reach_every_weight() -> None:
    model = hgr().train()
    tokens, lengths, graphs = read()
    similarity = model.similarity(
        model.image_parts(Side(torch.randn(3, 5, 6), COUNTS)),
        model.caption_parts(Side(tokens, lengths, further=graphs)),
    )
    similarity.square().sum().backward()
    assert all(
        weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any()
        for name, weight in model.named_parameters()
        if not name.endswith("score.bias")
    )


def test_dropout_is_of_projected_frames_and_of_word_vectors() -> None:
    items, (tokens, lengths, graphs) = torch.randn(3, 5, 6), read()
    captions = Side(tokens, lengths, further=graphs)
    for share in (0.0, 0.5):
        model = hgr(dropout=share)
        model.graph.dropout.p = 0.0
        found = {}
        for training in (False, True):
            model.train(training)
            found[training] = (
                model.image_parts(Side(items, COUNTS))[:3],
                model.caption_parts(captions)[0],
            )
        zeros = [(frames[0] == 0).float().mean() for frames in found[True][0][1:]]
        assert all((0.2 < part < 0.8) == bool(share) for part in zeros)
        for side in (
            [found[training][0][0] for training in (False, True)],
            [found[each][1] for each in (False, True)],
        ):
            assert torch.equal(*side) == (not share)


def test_graph_dropout_is_of_what_nodes_take_over_alone() -> None:
    assert hgr().graph.dropout.p == 0.5
    torch.manual_seed(0)
    layer, nodes, edges = (
        GraphAttention(64, 0.5),
        torch.randn(1, 3, 64),
        torch.zeros(1, 3, 3, dtype=torch.bool),
    )
    edges[0, 1, 0] = True
    trained, plain = layer.train()(nodes, edges), layer.eval()(nodes, edges)
    torch.testing.assert_close(
        trained[:, [0, 2]], plain[:, [0, 2]]
    )  # without neighbours nothing is left out
    assert not torch.allclose(trained[:, 1], plain[:, 1])


def test_graphs_as_tensors() -> None:
    tokens, _, graphs = read()
    assert graphs.spans.shape == (3, 10, tokens.shape[1])
    assert [graphs.spans[0, slot].nonzero()[:, 0].tolist() for slot in (0, 1, 2, 4, 5, 6)] == [
        [3, 4],
        [7],
        [],
        [1, 2],
        [5, 6],
        [8, 9, 10],
    ]  # number 0 is <start>, "runs," is two words
    assert graphs.roles[2, [0, 4, 5, 6]].tolist() == [
        0,
        1,
        2,
        15,
    ]  # V, C-ARG1, R-ARG0, and ARGM-GOL as NOUN
    assert graphs.edges[2].nonzero().tolist() == [[1, 0], [1, 5], [1, 7], [5, 1], [7, 1]]
    assert not graphs.edges[1].any()


def test_phrases_beyond_four_verbs_and_six_others_or_cut_away_are_left_out() -> None:
    many = json.dumps(
        [
            [["V", [n]] for n in range(6)] + [["ARG1", [n]] for n in range(8)],
            [[5, 6], [0, 13], [1, 6]],
        ]
    )
    (graph,) = reading.place(TEXT, ["dog " * 8], [many])
    assert graph.phrases == tuple((1 + n,) for n in [0, 1, 2, 3, 0, 1, 2, 3, 4, 5])
    assert graph.edges == ((1, 4),)
    long = " ".join(["dog"] * 300)
    (graph,) = reading.place(TEXT, [long], [json.dumps([[["V", [299]], ["V", [253, 254]]], []])])
    assert graph.phrases[:2] == ((254,), ())


def test_what_it_cannot_read_is_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"2 of 2 captions have none, such as 'a'; give HGR's sent2rolegraph\.augment",
    ):
        reading.place(TEXT, ["a", "b"], None)
    with pytest.raises(InputError, match="1 of 2 captions have none, such as 'b'"):
        reading.place(TEXT, ["a", "b"], ["[[],[]]", ""])
    with pytest.raises(InputError, match="set drop_tokens to 0"):
        hgr(drop_tokens=0.2)
    network = Backbone("frame", torch.nn.Linear(1, 1), torch.nn.Identity())
    with pytest.raises(InputError, match="hgr reads stored features; leave out finetune"):
        heads.build(
            SETTINGS.recipe("hgr"), "frame", 6, TEXT, SETTINGS.training_of("sample"), network
        )
    with pytest.raises(InputError, match="late interaction has no vector of an image"):
        hgr().embed_images(Side(torch.zeros(1, 1, 6), torch.tensor([1])))


@pytest.mark.parametrize(
    "graph",
    [
        "{",
        "7",
        "[5]",
        "[" * 50_000,
        '[[["V",[99]]],[]]',
        '[[["V",[-1]]],[]]',
        '[[["V",[true]]],[]]',
        "[[[3,[0]]],[]]",
        '[[["V",[0]]],[[0,7]]]',
        '[[["V",[0]]],[[0]]]',
        '[[["V",[0]],["V",[1]]],[[0,1]]]',
        '[[["V",[0]],["ARG1",[1]]],[[1,0]]]',
    ],
)
def test_a_damaged_graph_of_a_manifest_is_refused_in_one_line(graph: str) -> None:
    with pytest.raises(
        InputError, match="graph of 'a dog runs' does not fit its 3 words; make the manifest again"
    ):
        reading.place(TEXT, ["a dog runs"], [graph])


class Spelled(BiGRUText):
    """A text encoder that reads a caption's first letter before its words."""

    def split(self, captions: Any) -> Any:
        return [
            [[len(caption)], *words]
            for caption, words in zip(captions, super().split(captions), strict=True)
        ]


def test_a_text_encoder_that_does_not_read_word_by_word_is_refused() -> None:
    with pytest.raises(InputError, match="is not read word by word"):
        reading.place(Spelled(TEXT.vocabulary), CAPTIONS[:1], [json.dumps(GRAPHS[0])])


def test_its_recipes_are_those_for_clips_with_another_head_and_other_poolings() -> None:
    """Table 4: all were trained by HGR's code, in the same way."""
    for recipe, base, differs in (
        ("hgr", "vse_pp-video", {"architecture", "image_pooling", "text_pooling"}),
        ("hgr_infty", "hgr", {"image_pooling", "text_pooling"}),
    ):
        one, other = (SETTINGS.recipe(name).model_dump() for name in (recipe, base))
        assert {key for key in one if one[key] != other[key]} == differs


def test_recipes_of_an_earlier_settings_file_mean_what_they_meant(tmp_path: Path) -> None:
    given = {
        "hgr": {
            "base": "vse_pp-video",
            "architecture": {"name": "hgr"},
            "pooling": {"name": "attention"},
        },
        "hgr_infty": {"base": "hgr", "pooling": {"name": "gpo"}},
    }
    tree = yaml.safe_load(PARAMS.read_text(encoding="utf-8")) | {"recipes": given}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    earlier = settings.load(tmp_path / "params.yaml")
    for name in given:
        assert earlier.recipe(name) == SETTINGS.recipe(name)
