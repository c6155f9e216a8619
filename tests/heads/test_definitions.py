"""Every pooling is what its definition says, written out for one set of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from heads.test_pooling import DIM, LEAKY, VARIANTS, make, random_items
from torch import Tensor

from pipeline.make.heads.pooling import POOLINGS


def power_mean(x: Tensor, pooling: Any) -> Tensor:
    p = pooling.log_p.exp()
    return (x.clamp(min=1e-6) ** p).mean(0) ** (1 / p)


def adpool(x: Tensor, pooling: Any) -> Tensor:
    """Equations 3 to 5, literally."""
    u = x.sort(0, descending=True).values
    theta = (u @ pooling.W_tok).softmax(0)
    token = (theta * u).sum(0)
    embedding = (x.softmax(0) * x).sum(0)
    omega = torch.stack([token @ pooling.W_bal, embedding @ pooling.W_bal]).softmax(0)
    return omega[0] * token + omega[1] * embedding


def gpo(x: Tensor, pooling: Any) -> Tensor:
    """Equations 2 to 5 of VSE∞ with the released code's temperature."""
    n, width = len(x), 32
    k = torch.arange(n, dtype=torch.float64).unsqueeze(1)
    angle = k / 10000 ** (torch.arange(0, width, 2) / width)
    encoding = torch.zeros(n, width, dtype=torch.float64)
    encoding[:, 0::2], encoding[:, 1::2] = angle.sin(), angle.cos()
    states = pooling.generator.gru(encoding)[0]
    scores = pooling.generator.linear((states[:, :width] + states[:, width:]) / 2)
    return ((scores / 0.1).softmax(0) * x.sort(0, descending=True).values).sum(0)


def fspool(x: Tensor, pooling: Any) -> Tensor:
    n, pieces = len(x), len(pooling.knots) - 1
    result = torch.zeros(DIM, dtype=torch.float64)
    for k, row in enumerate(x.sort(0, descending=True).values):
        place = k / max(n - 1, 1) * pieces
        left = min(int(place), pieces - 1)
        weight = pooling.knots[left] * (1 - place + left) + pooling.knots[left + 1] * (place - left)
        result = result + weight * row
    return result


def adapool(x: Tensor, pooling: Any) -> Tensor:
    mean = x.mean(0)
    closeness = 2 * x * mean / (x**2 + mean**2 + 1e-6)
    beta = pooling.beta_logit.sigmoid()
    return ((beta * closeness.softmax(0) + (1 - beta) * x.softmax(0)) * x).sum(0)


def lip(x: Tensor, pooling: Any) -> Tensor:
    """Gao et al. 2019, the simplified variant: a 1 x 1 projection, instance normalisation, 12
    sigmoid.
    """
    projected = x @ pooling.project.weight.T
    normal = (projected - projected.mean(0)) / (projected.var(0, unbiased=False) + 1e-5).sqrt()
    importance = 12 * (normal * pooling.scale + pooling.shift).sigmoid()
    return (importance.softmax(0) * x).sum(0)


def relations(x: Tensor, pooling: Any) -> Tensor:
    """V + (R V W_g) W_r, layer by layer (Li et al. 2019)."""
    for layer in pooling.layers:
        affinity = ((layer.theta(x) @ layer.phi(x).T) / DIM**0.5).softmax(1)
        x = x + layer.W_r(affinity @ layer.W_g(x))
    return x


def selfattn(x: Tensor, pooling: Any) -> Tensor:
    weights = (pooling.query(x) @ pooling.key(x).T / DIM**0.5).softmax(1)
    return (x + weights @ pooling.value(x)).mean(0)


def adpool_released(x: Tensor, pooling: Any) -> Tensor:
    """The released code, without padding."""
    u = x.sort(0, descending=True).values
    token = (pooling.linear(u).relu().softmax(0) * u).sum(0)
    embedding = (u.softmax(0) * u).sum(0)
    omega = torch.stack([pooling.balance(token), pooling.balance(embedding)]).softmax(0)
    return omega[0] * token + omega[1] * embedding


def of_coefficients(x: Tensor, pooling: Any) -> Tensor:
    """Sorted values, weighted by the pooling's own coefficients, whose sum is 1."""
    theta = pooling.coefficients(torch.tensor([len(x)]))[0]
    torch.testing.assert_close(theta.sum(0), torch.ones_like(theta.sum(0)))
    return (x.sort(0, descending=True).values * theta).sum(0)


def weighted(token_weight: Callable[[Any], float]) -> Callable[[Tensor, Any], Tensor]:
    """AdPool with a fixed balance of its two levels."""

    def pool(x: Tensor, pooling: Any) -> Tensor:
        share, embedding = token_weight(pooling), (x.softmax(0) * x).sum(0)
        if share == 0:
            return embedding
        u = x.sort(0, descending=True).values
        return share * ((u @ pooling.W_tok).softmax(0) * u).sum(0) + (1 - share) * embedding

    return pool


DEFINITIONS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "attention": lambda x, p: (x @ p.score.weight[0] + p.score.bias).softmax(0) @ x,
    "mean": lambda x, _: x.mean(0),
    "max": lambda x, _: x.max(0).values,
    "kmax": lambda x, _: x.sort(0, descending=True).values[:5].mean(0),
    "cls": lambda x, _: x[0],
    "gem": power_mean,
    "softpool": lambda x, _: (x.softmax(0) * x).sum(0),
    "adapool": adapool,
    "fspool": fspool,
    "gpo": gpo,
    "adpool": adpool,
    "seq2seq": lambda x, pooling: pooling.gru(x)[0][-1],
    "gcn": lambda x, pooling: relations(x, pooling).mean(0),
    "gcn-seq2seq": lambda x, pooling: pooling.gru(relations(x, pooling))[0][-1],
    "lip": lip,
    "selfattn": selfattn,
    "adpool_released": adpool_released,
    "kmax-1": lambda x, _: x.max(0).values,
    **{
        f"gpo-{kind}": of_coefficients
        for kind in ("transformer", "mlp", "interpolated", "index", "per-dimension")
    },
    "adpool-no-token": weighted(lambda _: 0.0),
    "adpool-no-embedding": weighted(lambda _: 1.0),
    "adpool-0.25": weighted(lambda _: 0.25),
    "adpool-random": weighted(lambda pooling: float(pooling.token_weight)),
}


def test_every_pooling_has_a_definition() -> None:
    defined = {VARIANTS[variant][0] for variant in DEFINITIONS}
    assert set(POOLINGS) - defined == set(), "write its definition into DEFINITIONS"
    # What is left generates coefficients from the items; its laws are those of every variant.
    assert set(VARIANTS) - set(DEFINITIONS) == {"gpo-data-dependent", "gpo-transformer-of-data"}


@pytest.mark.specification
@pytest.mark.parametrize("variant", DEFINITIONS)
@pytest.mark.parametrize("count", [1, 3, 9])
def test_it_is_what_its_definition_says(variant: str, count: int) -> None:
    pooling = make(variant, torch.float64)
    items = random_items(1, count if variant in LEAKY else 9, torch.float64)
    result = pooling(items, torch.tensor([count]))
    torch.testing.assert_close(
        result[0], DEFINITIONS[variant](items[0, :count], pooling), rtol=1e-6, atol=1e-6
    )
