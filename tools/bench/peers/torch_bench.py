#!/usr/bin/python3
"""PyTorch eager (CPU, float32) reference timings for RNN / attention seq2seq training.

Every result is one JSON object per line on stdout.  A training "step" is
forward + backward + Adam (dense, PyTorch defaults); its three parts are timed
separately.  Data are random and fixed by --seed; only speed is measured.

    torch_bench.py --workload seq2seq-medium --threads 2 --style tutorial
    torch_bench.py --workload decode-medium --batch 32 --threads 1
    torch_bench.py --workload micro --threads 1

Workloads
    seq2seq-small    B 1   H 256 src/tgt 10 V 3000/4500, 1-layer GRU encoder
    seq2seq-medium   B 32  H 256 src/tgt 20 V 5000
    seq2seq-large    B 64  H 512 src/tgt 30 V 10000, 2-layer bidirectional encoder
                     (directions summed, as in the PyTorch chatbot tutorial)
    gru-small        I 30  H 64  2 layers T 50 B 32, Linear on the last step
    gru-large        I 512 H 512 1 layer  T 50 B 64
    lstm-small/large the same sizes with nn.LSTM
    rau-small/large  the same sizes with a RAU cell written in Python
    cell-small/large the cell of rill's examples/custom_cell, H 64/256, T 50 B 32
    decode-small/medium   greedy decoding without gradients, tgt_len tokens each
    micro            per-op overhead, elementwise GB/s, matmul GFLOP/s

Styles
    tutorial   what the tutorials show: nn.GRU called once per target token,
               attention as Linear(2H->H) over cat[hidden, encoder outputs], output
               projection + log_softmax + NLLLoss per token; RAU: 9 matmuls per step
    batched    what an expert would write in eager PyTorch: attention keys projected
               once, GRUCell, output projection and loss once over all time steps;
               RAU: input projections hoisted out of the loop, recurrent ones joined
"""
import argparse
import json
import os
import resource
import statistics
import sys
import time


def parse_args():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--workload", required=True)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--style", choices=("tutorial", "batched"), default="tutorial")
    p.add_argument("--batch", type=int, help="override the batch size")
    p.add_argument("--warmup", type=int, default=5, help="untimed steps")
    p.add_argument("--steps", type=int, default=200, help="most timed steps")
    p.add_argument("--seconds", type=float, default=8.0, help="most timed seconds")
    p.add_argument("--min-steps", type=int, default=5)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


ARGS = parse_args()
# Both OpenMP and OpenBLAS read these once, when torch is loaded.
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)
os.environ["OPENBLAS_NUM_THREADS"] = str(ARGS.threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from torch_models import (  # noqa: E402
    BatchedDecoder, Encoder, RAUClassifier, RecurrentClassifier, TutorialDecoder, UpdateGateAdder)

torch.set_num_threads(ARGS.threads)


def peak_rss_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


RSS_IMPORT = peak_rss_mib()


def emit(**fields):
    record = {"peer": "torch-eager", "torch": torch.__version__, "workload": ARGS.workload,
              "style": ARGS.style, "threads": ARGS.threads}
    record.update(fields)
    record["rss_import_mib"] = round(RSS_IMPORT, 1)
    record["rss_peak_mib"] = round(peak_rss_mib(), 1)
    print(json.dumps(record), flush=True)


# --------------------------------------------------------------- workloads

SEQ2SEQ = {
    "small": dict(batch=1, hidden=256, src_len=10, tgt_len=10, src_vocab=3000, tgt_vocab=4500,
                  layers=1, bidirectional=False),
    "medium": dict(batch=32, hidden=256, src_len=20, tgt_len=20, src_vocab=5000, tgt_vocab=5000,
                   layers=1, bidirectional=False),
    "large": dict(batch=64, hidden=512, src_len=30, tgt_len=30, src_vocab=10000, tgt_vocab=10000,
                  layers=2, bidirectional=True),
}
RNN = {
    "small": dict(batch=32, inputs=30, hidden=64, layers=2, steps=50),
    "large": dict(batch=64, inputs=512, hidden=512, layers=1, steps=50),
}


def build_seq2seq(size):
    c = dict(SEQ2SEQ[size])
    if ARGS.batch:
        c["batch"] = ARGS.batch
    encoder = Encoder(c["src_vocab"], c["hidden"], c["hidden"], c["layers"], c["bidirectional"])
    decoder_type = TutorialDecoder if ARGS.style == "tutorial" else BatchedDecoder
    decoder = decoder_type(c["tgt_vocab"], c["hidden"], c["hidden"])
    src = torch.randint(3, c["src_vocab"], (c["batch"], c["src_len"]))
    tgt = torch.randint(3, c["tgt_vocab"], (c["batch"], c["tgt_len"]))
    sos = torch.zeros(c["batch"], dtype=torch.long)
    return c, nn.ModuleList((encoder, decoder)), src, tgt, sos


def seq2seq_training(size):
    c, model, src, tgt, sos = build_seq2seq(size)

    def loss():
        enc, hidden = model[0](src)
        return model[1].loss(enc, hidden, sos, tgt)

    return model, loss, c["batch"] * c["tgt_len"]


def rnn_training(kind, size):
    c = dict(RNN[size])
    if ARGS.batch:
        c["batch"] = ARGS.batch
    if kind in ("gru", "lstm"):
        layer = nn.GRU if kind == "gru" else nn.LSTM
        model = RecurrentClassifier(layer, c["inputs"], c["hidden"], c["layers"], 10)
    else:
        model = RAUClassifier(c["inputs"], c["hidden"], c["layers"], 10,
                              ARGS.style == "batched")
    x = torch.randn(c["batch"], c["steps"], c["inputs"])
    y = torch.randint(0, 10, (c["batch"],))
    return model, lambda: F.cross_entropy(model(x), y), c["batch"] * c["steps"]


def custom_cell_training(size):
    steps, batch = 50, ARGS.batch or 32
    model = UpdateGateAdder(2, {"small": 64, "large": 256}[size])
    x, y = torch.rand(steps, batch, 2), torch.rand(batch)
    return model, lambda: F.mse_loss(model(x), y), batch * steps


# ------------------------------------------------------------------ timing

def quantile_ms(samples, q):
    s = sorted(samples)
    return round(1e3 * s[min(len(s) - 1, int(q * len(s)))], 4)


def training_bench(model, loss_fn, items):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    parts = {"forward": [], "backward": [], "optimizer": []}
    total, first = [], None

    def step(timed):
        t0 = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn()
        t1 = time.perf_counter()
        loss.backward()
        t2 = time.perf_counter()
        optimizer.step()
        t3 = time.perf_counter()
        if timed:
            parts["forward"].append(t1 - t0)
            parts["backward"].append(t2 - t1)
            parts["optimizer"].append(t3 - t2)
            total.append(t3 - t0)
        return loss.item()

    for _ in range(max(1, ARGS.warmup)):
        value = step(False)
        first = value if first is None else first
    cpu0, wall0 = time.process_time(), time.perf_counter()
    while len(total) < ARGS.steps and (
            len(total) < ARGS.min_steps or time.perf_counter() - wall0 < ARGS.seconds):
        value = step(True)
    wall, cpu = time.perf_counter() - wall0, time.process_time() - cpu0
    ms = 1e3 * statistics.median(total)
    emit(metric="train_step", optimizer="adam", ms_median=round(ms, 4),
         ms_p10=quantile_ms(total, 0.1), ms_p90=quantile_ms(total, 0.9), steps=len(total),
         **{k + "_ms": round(1e3 * statistics.median(v), 4) for k, v in parts.items()},
         items_per_step=items, items_per_s=round(1e3 * items / ms, 1),
         cores_used=round(cpu / wall, 2), params=sum(p.numel() for p in model.parameters()),
         first_loss=round(first, 4), last_loss=round(value, 4))


def decode_bench(size):
    c, model, src, _, sos = build_seq2seq(size)
    model.eval()
    times = []
    with torch.no_grad():
        def decode():
            enc, hidden = model[0](src)
            return model[1].greedy(enc, hidden, sos, c["tgt_len"])

        for _ in range(max(1, ARGS.warmup)):
            decode()
        wall0 = time.perf_counter()
        while len(times) < ARGS.steps and (
                len(times) < ARGS.min_steps or time.perf_counter() - wall0 < ARGS.seconds):
            t0 = time.perf_counter()
            decode()
            times.append(time.perf_counter() - t0)
    ms = 1e3 * statistics.median(times)
    tokens = c["batch"] * c["tgt_len"]
    emit(metric="greedy_decode", batch=c["batch"], ms_median=round(ms, 4),
         ms_p10=quantile_ms(times, 0.1), ms_p90=quantile_ms(times, 0.9), runs=len(times),
         tokens_per_s=round(1e3 * tokens / ms, 1))


def best_of(fn, seconds=0.6, min_runs=5):
    """Median time of fn() in seconds."""
    fn()
    times, start = [], time.perf_counter()
    while len(times) < min_runs or time.perf_counter() - start < seconds:
        t0 = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t0)
    return statistics.median(times)


def micro_bench():
    n = 1000
    a, b = torch.randn(64, requires_grad=True), torch.randn(64, requires_grad=True)

    def chain():
        x = a
        for _ in range(n):
            x = x + b
        return x

    def forward_backward():
        a.grad = b.grad = None
        x = chain().sum()
        t0 = time.perf_counter()
        x.backward()
        return time.perf_counter() - t0

    forward = best_of(chain)
    forward_backward()
    backward = statistics.median(forward_backward() for _ in range(200))
    with torch.no_grad():
        inference = best_of(chain)
    emit(metric="op_overhead", op="add64", forward_ns=round(forward / n * 1e9, 1),
         backward_ns=round(backward / n * 1e9, 1), no_grad_ns=round(inference / n * 1e9, 1))

    with torch.no_grad():
        x, y = torch.randn(1000, 1000), torch.randn(1000, 1000)
        out = torch.empty_like(x)
        nbytes = x.numel() * 4
        for name, fn, passes in (
                ("add_out", lambda: torch.add(x, y, out=out), 3),
                ("mul_alloc", lambda: x * y, 3),
                ("tanh_out", lambda: torch.tanh(x, out=out), 2),
                ("sigmoid_out", lambda: torch.sigmoid(x, out=out), 2),
                ("exp_out", lambda: torch.exp(x, out=out), 2),
                ("softmax", lambda: torch.softmax(x, 1), 2),
                ("log_softmax", lambda: torch.log_softmax(x, 1), 2)):
            s = best_of(fn)
            emit(metric="elementwise_1M", op=name, us=round(s * 1e6, 1),
                 gb_per_s=round(passes * nbytes / s / 1e9, 2),
                 gelem_per_s=round(x.numel() / s / 1e9, 3))
        for m, k, w in ((32, 256, 768), (64, 512, 1536), (1920, 512, 10000), (1024, 1024, 1024)):
            p, q = torch.randn(m, k), torch.randn(k, w)
            qt = torch.randn(w, k)
            for name, fn in (("mm", lambda: torch.mm(p, q)),
                             ("linear", lambda: F.linear(p, qt))):
                s = best_of(fn)
                emit(metric="matmul", op=name, m=m, k=k, n=w, us=round(s * 1e6, 1),
                     gflops=round(2.0 * m * k * w / s / 1e9, 1))


def main():
    torch.manual_seed(ARGS.seed)
    kind, _, size = ARGS.workload.partition("-")
    if kind == "seq2seq" and size in SEQ2SEQ:
        training_bench(*seq2seq_training(size))
    elif kind in ("gru", "lstm", "rau") and size in RNN:
        training_bench(*rnn_training(kind, size))
    elif kind == "cell" and size in ("small", "large"):
        training_bench(*custom_cell_training(size))
    elif kind == "decode" and size in SEQ2SEQ:
        decode_bench(size)
    elif kind == "micro":
        micro_bench()
    else:
        sys.exit("unknown workload: " + ARGS.workload)


if __name__ == "__main__":
    main()
