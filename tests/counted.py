"""Work that is counted in numbers that are read, so that a test tells its growth on any machine."""

from __future__ import annotations

from typing import Any

import numpy as np


class Counted(np.ndarray):
    """An array that counts the numbers that are handed over, taken and computed."""

    numbers = 0

    @classmethod
    def count(cls, *values: Any) -> None:
        cls.numbers += sum(value.size for value in values if isinstance(value, np.ndarray))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.count(found)
        return found

    def __array_ufunc__(self, function: Any, method: str, *values: Any, **options: Any) -> Any:
        self.count(*values)
        plain = [
            value.view(np.ndarray) if isinstance(value, Counted) else value for value in values
        ]
        found = getattr(function, method)(*plain, **options)
        return found.view(Counted) if isinstance(found, np.ndarray) else found

    def __array_function__(self, function: Any, types: Any, values: Any, options: Any) -> Any:
        self.count(*values)
        return super().__array_function__(function, types, values, options)
