"""Where weights begin in memory. Some CPUs sum the products of weights in another order where these
do not begin at a multiple of 16 bytes, as in a file that is mapped into memory: vectors then differ
in their last bits from one process to the next.
"""

import torch

BOUNDARY = 64  # bytes, as torch begins what it takes itself


def align(network: torch.nn.Module) -> None:
    """Copy the weights of a network that begin elsewhere to where torch begins its own."""
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.device.type == "cpu" and tensor.data_ptr() % BOUNDARY:
            tensor.data = tensor.data.clone()
