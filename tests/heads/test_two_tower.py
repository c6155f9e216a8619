"""The head as a whole: unit vectors, padding without influence, projections by feature."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads import projection
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary

TEXT = BiGRUText(Vocabulary.of("abcdefghijklmno"))
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml", ("training.sample.dimension=8",)
)


@pytest.mark.specification
@pytest.mark.parametrize("feature", ["region", "grid", "patch"])
def test_unit_vectors_that_padding_does_not_change(feature: str) -> None:
    torch.manual_seed(0)
    model = TwoTower(feature, 6, TEXT, SETTINGS.recipe("vse2ad"), SETTINGS.training_of("sample"))
    items, counts = torch.randn(5, 4, 6), torch.tensor([4, 1, 2, 3, 4])
    tokens, lengths = torch.randint(1, 20, (5, 7)), torch.tensor([7, 2, 3, 1, 5])
    images, captions = (
        model.embed_images(Side(items, counts)),
        model.embed_captions(Side(tokens, lengths)),
    )
    assert images.shape == captions.shape == (5, 8)
    torch.testing.assert_close(images.norm(dim=1), torch.ones(5))
    torch.testing.assert_close(captions.norm(dim=1), torch.ones(5))
    more = torch.cat([items, torch.full((5, 3, 6), 9.0)], dim=1)
    more[1, 1:], more[2, 2:], more[3, 3:] = 7.0, -7.0, 5.0
    torch.testing.assert_close(model.embed_images(Side(more, counts)), images, atol=1e-5, rtol=0)
    longer = torch.cat([tokens, torch.randint(1, 20, (5, 2))], dim=1)
    torch.testing.assert_close(
        model.embed_captions(Side(longer, lengths)), captions, atol=1e-5, rtol=0
    )


@pytest.mark.specification
def test_region_projection_is_a_line_plus_an_mlp_of_half_the_width() -> None:
    built = projection.build("region", 6, 8)
    assert {name: tuple(value.shape) for name, value in built.named_parameters()} == {
        "linear.linear.weight": (8, 6),
        "linear.linear.bias": (8,),
        "mlp.0.weight": (4, 6),
        "mlp.0.bias": (4,),
        "mlp.1.weight": (4,),
        "mlp.1.bias": (4,),
        "mlp.3.weight": (8, 4),
        "mlp.3.bias": (8,),
    }
    with pytest.raises(InputError, match="no projection for the feature 'sound'"):
        projection.build("sound", 6, 8)


def test_half_precision_features_are_taken() -> None:
    model = TwoTower("grid", 6, TEXT, SETTINGS.recipe("vse2ad"), SETTINGS.training_of("sample"))
    assert (
        model.embed_images(Side(torch.randn(2, 3, 6).half(), torch.tensor([3, 2]))).dtype
        == torch.float32
    )


@pytest.mark.slow
def test_a_long_caption_does_not_lengthen_the_padding_of_others() -> None:
    torch.manual_seed(0)
    model = TwoTower(
        "grid", 6, TEXT, SETTINGS.recipe("vse2ad"), SETTINGS.training_of("sample")
    ).eval()
    tokens, lengths = torch.randint(1, 20, (5, 500)), torch.tensor([7, 500, 3, 400, 128])
    alone = [
        model.embed_captions(Side(tokens[[row], :length], lengths[[row]]))
        for row, length in enumerate(lengths)
    ]
    seen: list[tuple[int, ...]] = []
    model.text.register_forward_pre_hook(
        lambda _, arguments: seen.append(tuple(arguments[0].shape))
    )
    torch.testing.assert_close(
        model.embed_captions(Side(tokens, lengths)), torch.cat(alone), atol=1e-5, rtol=0
    )
    assert seen == [(3, 128), (2, 500)]
    seen.clear()
    model.embed_captions(Side(tokens[[1, 3]], lengths[[1, 3]]))
    model.embed_captions(Side(tokens[[0, 2], :7], lengths[[0, 2]]))
    assert seen == [(2, 500), (2, 7)]


def test_pieces_of_a_side_have_their_rows_of_all_that_it_holds() -> None:
    values, counts = torch.randn(5, 4, 6), torch.tensor([4, 1, 2, 3, 4])
    ids, kept = torch.tensor([9, 7, 5, 3, 1]), torch.randint(0, 4, (5, 2))
    further = (torch.randn(5, 3), torch.arange(5))
    side = Side(values, counts, ids, kept, further)
    for pieces, sizes in ((1, [5]), (2, [3, 2]), (5, [1] * 5)):
        parts = list(side.split(pieces))
        assert [len(part) for part in parts] == sizes
        rows = torch.arange(5).split(sizes)
        for part, of_part in zip(parts, rows, strict=True):
            for taken in (part, side.take(of_part)):
                assert torch.equal(taken.values, values[of_part])
                assert torch.equal(taken.counts, counts[of_part])
                assert taken.ids is not None
                assert torch.equal(taken.ids, ids[of_part])
                assert taken.kept is not None
                assert torch.equal(taken.kept, kept[of_part])
                for found, expected in zip(taken.further, further, strict=True):
                    assert torch.equal(found, expected[of_part])
