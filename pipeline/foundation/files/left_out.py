"""What a reader leaves out: counted by reason, listed in a file, and refused where it is too
much.
"""

import csv
import shutil
import weakref
from collections.abc import Mapping
from pathlib import Path
from tempfile import SpooledTemporaryFile

from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.parts.wrapping import cell, printable

SHARE = 0.01  # of what is read, unless the settings say otherwise
ALWAYS = (
    3  # so many may be left out whatever the share: a small data set may have a damaged row too
)
IN_MEMORY = 1 << 22  # bytes of the list before it becomes a file


class LeftOut:
    """Collects what a reader cannot use. Memory does not grow with it."""

    # noun: what is counted, in the singular. share: the largest share that may be left out. fail:
    # refuse anything left out.

    def __init__(self, noun: str = "caption", share: float = SHARE, fail: bool = False) -> None:
        self.noun = noun
        self.share = share
        self.fail = fail
        self.counts: dict[str, int] = {}
        self._by_origin = 0
        self._apart: dict[str, int] = {}
        self._first = ""
        self._total = 0
        self._list = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="")  # noqa: SIM115
        self._rows = csv.writer(self._list, lineterminator="\n")
        weakref.finalize(self, self._list.close)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def add(
        self,
        reason: str,
        where: str,
        *,
        by_origin: bool = False,
        apart: bool = False,
        count: int = 1,
    ) -> None:
        """Leave something out, for one of a few fixed reasons: "no caption", "not decodable",
        "image missing".
        """
        # where: file, row or name by which a user finds it. count: how many are left out with it.
        # Neither what the tool of origin marked as failed (`by_origin`) nor what is no part of the
        # annotations (`apart`) counts towards the share. The latter is counted in its own unit, the
        # first word of its reason: "image without a caption".
        self.counts[reason] = self.counts.get(reason, 0) + count
        if by_origin:
            self._by_origin += count
        if apart:
            self._apart[reason] = self._apart.get(reason, 0) + count
        elif not by_origin and not self._first:
            self._first = f"{where} ({reason})"
        self._rows.writerow([cell(printable(reason)), cell(printable(where))])

    def check(self, total: int) -> None:
        """Refuse more left out than the share of `total`, or with `fail` anything."""
        self._total = total - sum(self._apart.values())
        unusable = sum(self._own().values()) - self._by_origin
        if self.fail and self.counts:
            raise InputError(
                f"{self._summary()}; repair them, or leave them out with --on-error skip"
                + self._starting()
            )
        if unusable > max(ALWAYS, self.share * (self._total - self._by_origin)):
            raise InputError(
                f"{self._summary_of_own(self._own())}, more than {100 * self.share:g} % of all; repair "
                f"them, or allow more with -S manifest.left_out=SHARE" + self._starting()
            )

    def lines(self, path: Path | None = None) -> list[str]:
        """Say in one line what is left out, and the file that lists it (None: name the first); []
        for nothing.
        """
        if not self.counts:
            return []
        listed = self._starting()
        if path:
            listed = f"; listed in {path}"
        return [f"left out {self._summary()}{listed}"]

    def save(self, path: Path) -> None:
        """Write the list as CSV (reason, where); an earlier list is removed if nothing is left
        out.
        """
        if not self.counts:
            path.unlink(missing_ok=True)
            return
        self._list.seek(0)
        with (
            atomic.replacing(path, durable=False) as partial,
            partial.open("w", encoding="utf-8", newline="") as file,
        ):
            file.write("reason,where\n")
            shutil.copyfileobj(self._list, file)

    def _own(self) -> dict[str, int]:
        """The counts by reason without what is apart."""
        own = self.counts.items()
        return {reason: number for reason, number in own if reason not in self._apart}

    def _summary(self) -> str:
        """Such as "3 of 40,000 captions (no caption: 2, damaged row: 1)", and what is apart, such
        as "5 images without a caption".
        """
        parts = []
        own = self._own()
        if own:
            parts.append(self._summary_of_own(own))
        for reason, number in self._apart.items():
            noun, _, rest = reason.partition(" ")
            parts.append(f"{counted(number, noun)} {rest}")
        return " and ".join(parts)

    def _summary_of_own(self, own: Mapping[str, int]) -> str:
        number = sum(own.values())
        of = ""
        if self._total:
            of = f" of {self._total:,}"
        marked = ""
        if self._by_origin:
            marked = f"; failed at the source: {self._by_origin:,}"
        noun = counted(self._total or number, self.noun).partition(" ")[2]
        return f"{number:,}{of} {noun} ({by_reason(own)}{marked})"

    def _starting(self) -> str:
        if not self._first:
            return ""
        return f"; the first: {self._first[:200]}"


def by_reason(counts: Mapping[str, int]) -> str:
    """Word counts by reason, such as "no caption: 2, damaged row: 1"."""
    return ", ".join(f"{reason}: {number:,}" for reason, number in counts.items())
