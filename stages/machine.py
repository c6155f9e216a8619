"""Show how this machine computes, and what was measured of it."""

import click


@click.command
def command() -> None:
    """Show how this machine multiplies float32 matrices, and whether bfloat16 pays. It is measured once.

    All commands go by these measurements, so that each of them computes the same bits.

    Example: pipeline machine
    """
    import torch

    from pipeline.compute import half, machine, measured, products

    found, slower = products.probe(), half.slowdown("bf16")
    chosen = {"onednn": "by oneDNN", "default": "by torch's own choice"}[found.kind]
    said = (f"; oneDNN is {found.faster:.2f} times as fast with a relative error of {found.error:.1e}, and taken from "
            f"{products.FASTER} times as fast and an error below {products.LARGEST_ERROR:.0e}" if found.faster else "")
    click.echo(f"{machine.processor()}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}, "
               f"torch {torch.__version__}")
    click.echo(f"  float32 products: {chosen}{said}")
    click.echo(f"  bfloat16: a product takes {slower:.2g} times as long as in float32"
               + (", so --precision bf16 is refused" if slower > 1 else ""))
    click.echo(f"  kept in {measured.kept_in()}; delete it to have all of it measured again")
