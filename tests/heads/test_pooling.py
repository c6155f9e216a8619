"""What every pooling promises, tested on every pooling and variant."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.pooling import POOLINGS, Pooling, build
from pipeline.make.heads.pooling.gpo import GPO
from pipeline.make.heads.pooling.mean import normalise_over_items

DIM = 8

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in POOLINGS},
    "kmax-1": ("kmax", {"k": 1}),
    "gcn-seq2seq": ("gcn", {"layers": 4, "readout": "seq2seq"}),
    "gpo-transformer": ("gpo", {"generator": "transformer"}),
    "gpo-mlp": ("gpo", {"generator": "mlp"}),
    "gpo-interpolated": ("gpo", {"generator": "interpolated"}),
    "gpo-index": ("gpo", {"positions": "index"}),
    "gpo-per-dimension": ("gpo", {"per_dimension": True}),
    "gpo-data-dependent": ("gpo", {"data_dependent": True}),
    "gpo-transformer-of-data": ("gpo", {"generator": "transformer", "data_dependent": True}),
    "adpool-no-token": ("adpool", {"token": False}),
    "adpool-no-embedding": ("adpool", {"embedding": False}),
    "adpool-0.25": ("adpool", {"balance": 0.25}),
    "adpool-random": ("adpool", {"balance": "random"}),
}
ORDERED = {"cls", "seq2seq", "gcn-seq2seq"}
LEAKY = {"adpool_released"}
# Those whose result is a weighted mean of each dimension's values.
AVERAGING = {
    variant
    for variant, (name, _) in VARIANTS.items()
    if name
    in {"adapool", "adpool", "attention", "cls", "gpo", "kmax", "lip", "max", "mean", "softpool"}
}

# Those that multiply items by items.
QUADRATIC = {"gcn", "gcn-seq2seq", "selfattn", "gpo-transformer-of-data"}

every_variant = pytest.mark.parametrize("variant", VARIANTS)


def make(variant: str, dtype: torch.dtype = torch.float32) -> Pooling:
    """A variant with random parameters, so that none hides behind a neutral start."""
    torch.manual_seed(0)
    name, options = VARIANTS[variant]
    pooling = build(name, DIM, **options)
    for parameter in pooling.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return pooling.to(dtype)


def random_items(batch: int, slots: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(batch, slots, DIM, generator=torch.Generator().manual_seed(1)).to(dtype)


def run(pooling: Pooling, items: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The result, and the gradients of a fixed function of it: of the items and of the
    parameters.
    """
    items = items.clone().requires_grad_()
    pooling.zero_grad()
    result = pooling(items, counts)
    weights = torch.linspace(-1, 1, result.numel(), dtype=result.dtype).view_as(result)
    (result * weights).sum().backward()
    assert items.grad is not None
    return (
        result.detach(),
        items.grad,
        [p.grad.clone() for p in pooling.parameters() if p.grad is not None],
    )


@pytest.mark.specification
@every_variant
@pytest.mark.parametrize(
    "values", [[torch.nan, torch.inf, -torch.inf, 1e38], [1e37, -1e37, 7.0, 0.0]]
)
def test_padding_changes_nothing(variant: str, values: list[float]) -> None:
    counts = torch.tensor([3, 5, 1, 5])
    items = random_items(4, 5)
    extra = 0 if variant in LEAKY else 4
    padded = torch.cat([items, torch.full((4, extra, DIM), torch.inf)], dim=1)
    padding = torch.arange(5 + extra) >= counts.unsqueeze(1)
    padded[padding] = torch.tensor(values * 2)
    pooling = make(variant)
    result, gradient, of_parameters = run(pooling, items, counts)
    again, gradient_again, of_parameters_again = run(pooling, padded, counts)
    torch.testing.assert_close(again, result, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradient_again[:, :5], gradient, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(of_parameters_again, of_parameters, rtol=1e-5, atol=1e-5)
    assert not gradient_again[padding].any()


@every_variant
def test_order_matters_only_to_sequence_poolings(variant: str) -> None:
    counts = torch.tensor([6, 6])
    items = random_items(2, 6)
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    pooling = make(variant)
    result, gradient, _ = run(pooling, items, counts)
    permuted, gradient_permuted, _ = run(pooling, items[:, order], counts)
    if variant in ORDERED:
        assert not torch.allclose(permuted, result)
    else:
        torch.testing.assert_close(permuted, result, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(gradient_permuted, gradient[:, order], rtol=1e-5, atol=1e-6)


@every_variant
def test_a_batch_is_its_samples(variant: str) -> None:
    counts = torch.tensor([1, 4, 2])
    items = random_items(3, 4)
    pooling = make(variant)
    together = pooling(items, counts)
    for row, count in enumerate(counts):
        slots = 4 if variant in LEAKY else int(count)
        alone = pooling(items[row : row + 1, :slots], count.unsqueeze(0))
        torch.testing.assert_close(alone[0], together[row], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", sorted(AVERAGING))
def test_one_item_is_its_own_mean(variant: str) -> None:
    items = random_items(2, 1)
    torch.testing.assert_close(make(variant)(items, torch.tensor([1, 1])), items[:, 0])


@every_variant
@pytest.mark.parametrize("parameters", [torch.float32, torch.bfloat16])
def test_bfloat16(variant: str, parameters: torch.dtype) -> None:
    items = random_items(3, 36, torch.bfloat16)
    counts = torch.tensor([36, 17, 1])
    pooling = make(variant, parameters)
    result, _, gradients = run(pooling, items, counts)
    assert result.dtype == torch.bfloat16
    assert {gradient.dtype for gradient in gradients} <= {parameters}
    # The same values in double precision: all that rounds is the arithmetic, and the result.
    exact = pooling.double()(items.double(), counts)
    torch.testing.assert_close(result.double(), exact, rtol=0.01, atol=0.01)


@every_variant
def test_autocast_leaves_the_precision_alone(variant: str) -> None:
    items, counts, pooling = random_items(2, 5), torch.tensor([5, 3]), make(variant)
    with torch.autocast("cpu", torch.bfloat16):
        result = pooling(items, counts)
    torch.testing.assert_close(result, pooling(items, counts))


@every_variant
def test_extreme_values_give_finite_results(variant: str) -> None:
    extreme = {
        "large": random_items(3, 6).abs() + 1e4,
        "mixed": random_items(3, 6).sign() * 1e4,
        "equal": torch.full((3, 6, DIM), 0.5),
        "zero": torch.zeros(3, 6, DIM),
    }
    pooling = make(variant)
    for (name, items), dtype in product(extreme.items(), (torch.float32, torch.bfloat16)):
        case = f"{name}, {dtype}"
        result, gradient, of_parameters = run(pooling, items.to(dtype), torch.tensor([6, 1, 3]))
        assert result.isfinite().all(), case
        assert gradient.isfinite().all(), case
        assert all(gradient.isfinite().all() for gradient in of_parameters), case


@pytest.mark.parametrize("variant", sorted(VARIANTS.keys() - QUADRATIC))
def test_values_whose_squares_overflow_give_finite_results(variant: str) -> None:
    result, gradient, of_parameters = run(
        make(variant), 1e30 * random_items(3, 36), torch.tensor([36, 1, 17])
    )
    assert result.isfinite().all()
    assert gradient.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in of_parameters)


@pytest.mark.parametrize("variant", sorted(AVERAGING - QUADRATIC - {"attention", "lip"}))
def test_an_average_is_finite_where_a_sum_is_not(variant: str) -> None:
    # Attention and LIP sum over dimensions first: whether that overflows depends on the order in
    # which a CPU adds.
    items = torch.full((2, 36, DIM), 3e38)
    torch.testing.assert_close(
        make(variant)(items, torch.tensor([36, 17])), items[:, 0], rtol=1e-5, atol=0
    )


def test_fspool_does_not_overflow_on_the_way() -> None:
    pooling = build("fspool", DIM, pieces=1)
    pooling.load_state_dict({"knots": torch.tensor([[1.0] * DIM, [-1.0] * DIM])})
    assert pooling(torch.full((1, 36, DIM), 3e38), torch.tensor([36])).isfinite().all()


@every_variant
def test_gradients_are_those_of_the_function(variant: str) -> None:
    # float64 goes through torch's own sort; tests/heads/test_sorted.py covers the fast one.
    pooling = make(variant, torch.float64)
    items = random_items(2, 4, torch.float64)
    # Away from the kinks: values a finite difference apart from zero and from each other.
    items = items + 0.1 * items.sign()
    items.requires_grad_()
    parameters = list(pooling.parameters())
    counts = torch.tensor([4, 2])

    def function(items: Tensor, *_: Tensor) -> Tensor:
        return pooling(items, counts)

    assert torch.autograd.gradcheck(function, (items, *parameters), fast_mode=True)


BAD_INPUT = {
    "zero": (torch.zeros(2, 3, DIM), torch.tensor([3, 0])),
    "too many": (torch.zeros(2, 3, DIM), torch.tensor([3, 4])),
    "negative": (torch.zeros(2, 3, DIM), torch.tensor([3, -1])),
    "batch": (torch.zeros(2, 3, DIM), torch.tensor([3, 3, 3])),
    "float counts": (torch.zeros(2, 3, DIM), torch.tensor([3.0, 3.0])),
    "dimension": (torch.zeros(2, 3, DIM + 1), torch.tensor([3, 3])),
    "rank": (torch.zeros(3, DIM), torch.tensor([3, 3])),
    "integer items": (torch.zeros(2, 3, DIM, dtype=torch.int64), torch.tensor([3, 3])),
}


def refusal(pooling: Pooling, items: Tensor, counts: Tensor) -> str:
    try:
        pooling(items, counts)
    except InputError as refused:
        return str(refused)
    return ""


@every_variant
def test_bad_input_is_refused(variant: str) -> None:
    pooling = make(variant)
    for case, (items, counts) in BAD_INPUT.items():
        assert re.search("counts|items", refusal(pooling, items, counts)), case


@pytest.mark.parametrize("name", POOLINGS)
def test_a_pooling_has_a_title_and_a_source(name: str) -> None:
    assert POOLINGS.declared(name).TITLE, "give its options a TITLE"
    assert "Source: " in (POOLINGS[name].__doc__ or ""), "end its docstring in `Source: …`"
    assert [POOLINGS.title(other) for other in POOLINGS].count(POOLINGS.title(name)) == 1


def test_adpool_starts_between_mean_and_softpool_and_can_learn() -> None:
    items, counts = random_items(2, 5), torch.tensor([5, 3])
    pooling = build("adpool", DIM)
    _, _, of_parameters = run(pooling, items, counts)
    expected = (build("mean", DIM)(items, counts) + build("softpool", DIM)(items, counts)) / 2
    torch.testing.assert_close(pooling(items, counts), expected)
    assert all(gradient.abs().max() > 1e-4 for gradient in of_parameters)
    assert [list(p.shape) for p in (pooling.W_tok, pooling.W_bal)] == [[DIM, 1], [DIM, 1]]


def test_a_random_balance_is_kept_by_the_state_dict() -> None:
    first, second = make("adpool-random"), build("adpool", DIM, balance="random")
    assert first.token_weight != second.token_weight
    second.load_state_dict(first.state_dict())
    items, counts = random_items(2, 5), torch.tensor([5, 3])
    torch.testing.assert_close(second(items, counts), first(items, counts), rtol=0, atol=0)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "options", "millions"),
    [
        ("seq2seq", {}, 6.3),
        ("gcn", {}, 4.2),
        ("gcn", {"layers": 4, "readout": "seq2seq"}, 23.1),
        ("selfattn", {}, 3.1),
    ],
)
def test_sizes_are_those_of_the_paper(name: str, options: dict[str, Any], millions: float) -> None:
    """VSE∞ Table 1; its SelfAttn has 3.2 million, from a layer that is not printed."""
    with torch.device("meta"):
        parameters = sum(p.numel() for p in build(name, 1024, **options).parameters())
    assert round(parameters / 1e6, 1) == millions


def test_the_mlp_and_the_bigru_differ_in_knowing_the_size() -> None:
    sizes = torch.tensor([4, 9])
    for generator, knows in (("mlp", False), ("bigru", True)):
        theta = make(f"gpo-{generator}" if generator == "mlp" else "gpo").coefficients(sizes)[
            ..., 0
        ]
        torch.testing.assert_close(theta.sum(1), torch.ones(2))
        assert not theta[0, 4:].any()
        ratio = theta[0, :4] / theta[1, :4]
        assert torch.allclose(ratio, ratio[0].expand(4), rtol=1e-4) != knows


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("no_such_pooling", {}, "there are: adapool, adpool"),
        ("mean", {"k": 3}, "'k'; its options: none"),
        ("kmax", {"K": 3}, "'K'; its options: k"),
        ("kmax", {"k": 0}, "k: .*greater"),
        ("gem", {"p": 0.0}, "p: .*greater than 0"),
        ("adpool", {"token": False, "embedding": False}, "token level or its embedding level"),
        ("adpool", {"balance": "fixed"}, "balance"),
        ("adpool", {"balance": 1.5}, "balance"),
        ("gcn", {"readout": "max"}, "readout"),
        ("gcn", {"layers": 0}, "layer"),
        ("fspool", {"pieces": 0}, "piece"),
        ("gpo", {"generator": "lstm"}, "'mlp' or 'interpolated'"),
        ("gpo", {"positions": "none"}, "'cos_sin' or 'index'"),
        ("gpo", {"width": 31}, "even"),
        ("gpo", {"generator": "transformer", "width": 30}, "4 heads"),
        ("gpo", {"temperature": 0.0}, "temperature"),
        (
            "gpo",
            {"generator": "interpolated", "data_dependent": True},
            "reads no positions and no items",
        ),
        (
            "gpo",
            {"generator": "interpolated", "positions": "index"},
            "reads no positions and no items",
        ),
        ("adpool", {"token": False, "balance": 0.25}, "balances nothing"),
        ("adpool", {"embedding": False, "balance": "random"}, "balances nothing"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, DIM, **options)


def test_index_positions_have_an_end() -> None:
    pooling = build("gpo", DIM, positions="index")
    with pytest.raises(InputError, match="512 positions"):
        pooling(torch.zeros(1, 513, DIM), torch.tensor([513]))


@pytest.mark.parametrize("name", ["adpool", "gpo"])
def test_inference_mode_reaches_every_thread(name: str) -> None:
    """The sort works in threads of its own, and torch's modes belong to a thread."""
    items, counts = torch.randn(64, 36, 256), torch.full((64,), 36)
    pool = build(name, 256)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.inference_mode():
            inside = pool(items, counts)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(inside, pool(items, counts).detach())


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name.startswith("gpo")])
def test_coefficients_that_are_fixed_are_those_of_each_size(variant: str) -> None:
    pooling = make(variant).eval()
    items, counts = random_items(5, 6), torch.tensor([6, 1, 2, 5, 3])
    expected = pooling(items, counts)
    assert isinstance(pooling, GPO)
    pooling.fix(9)
    torch.testing.assert_close(pooling(items, counts), expected, atol=1e-5, rtol=0)


def test_lip_normalises_a_sets_items_as_torch_does_instances() -> None:
    """Also large values that are close together, and any number of them."""
    items = 1000 + 0.1 * random_items(3, 5, torch.float64)
    counts = [5, 2, 3]
    valid = torch.arange(5) < torch.tensor(counts)[:, None]
    found = normalise_over_items(items, valid)
    for row, count in enumerate(counts):
        expected = torch.nn.functional.instance_norm(items[row, :count].T[None])[0].T
        torch.testing.assert_close(found[row, :count], expected, atol=1e-6, rtol=0)
        assert not found[row, count:].any()
