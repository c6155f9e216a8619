"""Elementary functions whose results are the same to the last bit on every CPU.

IEEE 754 fixes the results of +, -, *, / and the square root, but not those of sin or exp: NumPy's
differ with the vector instructions of the CPU. The functions here use only the former, one array
operation after another. For angles of up to 100 turns the error in float32 is at most 5e-5, which
is invisible in a picture.
"""

import numpy as np

Array = np.ndarray
Number = Array | float

HALVINGS = 5
LEAST = -16.0  # e to this power is less than any pixel shows


def sin(x: Number) -> Array:
    """Compute the sine: Taylor's series after a reduction to −π/2..π/2."""
    half_turns = np.rint(np.asarray(x) / np.pi)
    rest = x - half_turns * np.pi
    square = rest * rest
    series = 1 - square / 110
    for product in (72, 42, 20, 6):
        series = 1 - square / product * series
    sign = 1 - 2 * (half_turns % 2)
    return rest * series * sign


def cos(x: Number) -> Array:
    """Compute the cosine."""
    return sin(x + np.pi / 2)


def decay(x: Number) -> Array:
    """Compute e to the power of x: a power series for x / 32, squared five times."""
    small = np.maximum(x, LEAST) / 2**HALVINGS
    power = 1 + small / 4
    for divisor in (3, 2, 1):
        power = 1 + small * power / divisor
    for _ in range(HALVINGS):
        power = power * power
    return power


def arcsin(x: Array) -> Array:
    """Compute the arc sine."""
    cosine = np.sqrt(1 - x * x)
    return 2 * _arctan(x / (1 + cosine))


def arctan2(y: Array, x: Array) -> Array:
    """Compute the angles of points."""
    wide = np.abs(x)
    high = np.abs(y)
    shorter = np.minimum(wide, high)
    longer = np.maximum(np.maximum(wide, high), 1e-30)
    angle = _arctan(shorter / longer)
    angle = np.where(high > wide, np.pi / 2 - angle, angle)
    angle = np.where(x < 0, np.pi - angle, angle)
    return np.copysign(angle, y)


def _arctan(x: Array) -> Array:
    """The arc tangent of values from -1 to 1: the angle is halved twice, then Taylor's series."""
    for _ in range(2):
        x = x / (1 + np.sqrt(1 + x * x))
    square = x * x
    series = 1 / 7 - square / 9
    for share in (1 / 5, 1 / 3, 1):
        series = share - square * series
    return 4 * x * series


def hypot(x: Number, y: Number) -> Array:
    """Compute the lengths of vectors."""
    return np.sqrt(x * x + y * y)


def cbrt(x: Array) -> Array:
    """Compute the cube root: a third of the exponent, then Newton's steps."""
    size = np.abs(x).astype(np.float32)
    # Within 4 %: a third of the exponent, and one third of the exponent's bias.
    bits = size.view(np.int32) // 3 + 0x2A51_2CE3
    root = bits.view(np.float32)
    for _ in range(3):
        root = (root + root + size / (root * root)) / 3
    return np.copysign(root, x)
