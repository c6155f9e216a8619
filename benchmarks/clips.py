"""What `pipeline extract --feature frame` costs beside a bare PyAV loop and a bare forward loop, in
CPU seconds.

    python -m benchmarks.clips FOLDER [torch|openvino]

FOLDER holds video files that can all be decoded. Both sides are whole processes; each runs three
times, in turn.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS, FRAMES, SIDE = 3, 20, 224
NETWORK = {
    "network": "tf_efficientnet_lite0",
    "weights": "efficientnet-lite0",
    "image_size": SIDE,
    "frames": FRAMES,
}


def main() -> None:
    folder, backend = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "openvino"
    if os.environ.get("BARE"):
        bare(folder, backend)
        return
    spent: dict[str, list[float]] = {"whole command": [], "bare loops": []}
    with tempfile.TemporaryDirectory() as root:
        files = sorted(path.name for path in folder.iterdir())
        captions = Path(root, "captions.csv")
        captions.write_text(
            "video,caption,split\n" + "".join(f"{name},a clip,train\n" for name in files)
        )
        ours = [sys.executable, "-m", "stages.cli"]
        where = ["--root", root]
        made = ["manifest", "clips", "--videos", str(folder), "--annotations", str(captions)]
        subprocess.run([*ours, *made, *where], check=True, capture_output=True)
        whole = [
            "extract",
            "--dataset",
            "clips",
            "--feature",
            "frame",
            "--backend",
            backend,
            "--if-changed",
            "redo",
        ]
        for number in range(ROUNDS):
            out = str(Path(root, f"{number}.zarr"))
            spent["whole command"].append(cpu([*ours, *whole, "--out", out, *where]))
            spent["bare loops"].append(
                cpu([sys.executable, "-m", "benchmarks.clips", str(folder), backend], BARE="1")
            )
    middle = {name: median(each) for name, each in spent.items()}
    for name, seconds in middle.items():
        print(f"{name}: {seconds:.1f} CPU seconds for {len(files)} clips")
    print(f"bare loops / whole command: {middle['bare loops'] / middle['whole command']:.2f}")


def cpu(command: list[str], **environment: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bare(folder: Path, backend: str) -> None:
    """Decode frames by their numbers, resize them, average the network's map: nothing is checked,
    turned or kept.
    """
    import av
    import numpy as np
    import torch
    from PIL import Image

    from pipeline.make.features import extractors
    from pipeline.make.features.extractors import Runtime

    torch.set_num_threads(1)
    engine = extractors.build("frame", NETWORK, Runtime(backend=backend))
    for path in sorted(folder.iterdir()):
        with av.open(str(path)) as film:
            stream = film.streams.best("video")
            count = stream.frames or sum(1 for packet in film.demux(stream) if packet.size)
        wanted = (
            {int((part + 0.5) / FRAMES * count) for part in range(FRAMES)}
            if count > FRAMES
            else set(range(count))
        )
        with av.open(str(path)) as film:
            stream = film.streams.best("video")
            stream.codec_context.thread_count = 1
            frames = []
            for number, frame in enumerate(film.decode(stream)):
                if number in wanted:
                    shown = frame.to_image().resize((SIDE, SIDE), Image.Resampling.BICUBIC)
                    frames.append(torch.from_numpy(np.array(shown)))
                if number >= max(wanted):
                    break
        for start in range(0, len(frames), 8):
            engine.network.features(frames[start : start + 8]).mean((2, 3))  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
