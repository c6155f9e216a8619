"""What is said about the measured rows of a panel: the notes below it, and what made the numbers."""

from collections.abc import Iterable, Sequence

from pipeline.provenance.head_record import HeadRecord
from pipeline.report import names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.networks import STAND_IN, stand_ins
from pipeline.report.result_rows import TRANSDUCTIVE
from pipeline.report.table import Note
from pipeline.report.table_columns import TableColumns
from pipeline.report.throughput import Timing


def remarks(measured: Sequence[MeasuredSystem], columns: TableColumns, timing: Timing, delta: bool) -> tuple[Note, ...]:
    """Notes on the measured rows of a panel: stand-ins, transductive rows, seeds, differences, a disturbed timing."""
    notes = [*_stand_ins(measured), *_zero_shot(measured), *_transductive(measured), *_seeds(measured)]
    if measured:
        notes += timing.note(columns.ratio)
        if delta:
            what = "RSUM" if columns.rsum else "sum of the recalls shown"
            notes.append(Note(f"Δ: measured minus published {what}, from the numbers as shown."))
    return tuple(notes)


def made_from(measured: Sequence[MeasuredSystem], timing: Timing) -> tuple[str, ...]:
    """What made the measured numbers of a panel, for those who want to check or repeat them."""
    sets = dict.fromkeys(
        f"Test set: {o.dataset}, {o.split} split, {o.images:,} images, {o.captions:,} captions, protocol {o.protocol}, "
        f"manifest {o.manifest[:16]}." for o in (system.origin for system in measured))
    timed = [f"#OIPs: multiples of {timing.base}. {timing.method}"] if measured and timing.ratios() else []
    return (*sets, *_trained(measured), *timed)


def _stand_ins(measured: Iterable[MeasuredSystem]) -> list[Note]:
    named = sorted({stand_in for system in measured for stand_in in stand_ins(system)})
    text = f"Not the papers' networks; stand-ins made these features: {', '.join(named)}."
    return [Note(text, STAND_IN)] if named else []


def _zero_shot(measured: Iterable[MeasuredSystem]) -> list[Note]:
    encoders = {member.head: member.encoder for system in measured for member in system.members if member.encoder}
    said = [f"{encoder.get('title') or name} on {encoder.get('trained_on') or 'data that its files do not name'}"
            for name, encoder in encoders.items()]
    return [Note(f"Zero-shot: models as they come, trained by others: {'; '.join(said)}. Never bold.")] if said else []


def _transductive(measured: Iterable[MeasuredSystem]) -> list[Note]:
    text = "Rescored by the test queries together (transductive): a query's ranks depend on the others. Never bold."
    return [Note(text, TRANSDUCTIVE)] if any(system.origin.transductive for system in measured) else []


def _seeds(measured: Iterable[MeasuredSystem]) -> list[Note]:
    numbers = sorted({len(system.systems) for system in measured} - {1})
    how_many = " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1])))) if numbers else ""
    return [Note(f"±: mean and sample standard deviation over {how_many} seeds.")] if numbers else []


def _trained(measured: Iterable[MeasuredSystem]) -> list[str]:
    """Size and length of training, which may differ from the paper's. All settings are in metrics.json."""
    found: dict[str, dict[str, None]] = {}
    for system in measured:
        for member in system.members:
            if member.encoder:
                continue
            found.setdefault(_size(member), {})[names.method(system.origin.recipe)] = None
    if not found:
        return []
    sizes = found if len(found) == 1 else [f"{', '.join(methods)}: {size}" for size, methods in found.items()]
    return [f"Training: {'; '.join(sizes)}."]


def _size(member: HeadRecord) -> str:
    """E.g. `d = 1024, 25 epochs, batches of 128, learning rate 0.0005`."""
    settings = member.settings
    if member.published:
        return f"d = {settings.get('dimension', '?')}, by its authors (published weights)"
    d, epochs, batch, rate = (settings.get(key, "?") for key in ("dimension", "epochs", "batch_size", "learning_rate"))
    return f"d = {d}, {epochs} epochs, batches of {batch}, learning rate {rate}"
