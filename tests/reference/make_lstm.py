#!/usr/bin/python3
"""Generates the reference values of LSTM with PyTorch 1.13 (Debian: python3-torch, python3-numpy): lstm_*.safetensors
and train_lstm.safetensors next to this file, and their cases at the end of index.json.

    tests/reference/make_lstm.py
"""

import copy
import json
import pathlib
import struct

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
INPUT, HIDDEN, STEPS, LENGTHS = 5, 6, 7, (4, 7, 2)
TOLERANCE = {"rtol": 1e-09, "atol": 1e-11}
PACKED_NOTE = ("input is padded with junk: output is 0 and the input gradient is 0 past each length; h_n and c_n hold each "
               "row's last valid step (backward: step 0), in the given order")


def uniform(*shape):
    """Values of three decimals."""
    return torch.round(torch.empty(*shape, dtype=torch.float64).uniform_(-1, 1) * 1000) / 1000


def write(name, tensors):
    header, data = {"__metadata__": {"set": "public", "file": name}}, b""
    for key, tensor in tensors.items():
        values = numpy.ascontiguousarray(tensor.detach().numpy())
        kind = {"float64": "F64", "int64": "I64"}[values.dtype.name]
        header[key] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def results(module, inputs, gout, call):
    """Outputs, and the gradients of sum(out * gout), by their names in the file."""
    for p in module.parameters():
        p.grad = None
    leaves = {k: v.clone().requires_grad_(v.is_floating_point()) for k, v in inputs.items()}
    out = call(module, leaves)
    sum((out[k] * gout[k].to(out[k].dtype)).sum() for k in gout).backward()
    found = {f"out.{k}": v.detach() for k, v in out.items()}
    found |= {f"grad.in.{k}": v.grad for k, v in leaves.items() if v.grad is not None}
    return found | {f"grad.param.{k}": p.grad for k, p in module.named_parameters()}


def in_float32(tensors):
    return {k: v.float() if v.is_floating_point() else v for k, v in tensors.items()}


def case(tensors, prefix, file, op, args, module, inputs, shapes, call, note=None):
    """Adds the tensors of a case and returns its index entry."""
    for p in module.parameters():
        p.data = uniform(*p.shape)
    gout = {k: uniform(*shape) for k, shape in shapes.items()}
    params = {k: p.detach().clone() for k, p in module.named_parameters()}
    found = results(module, inputs, gout, call)
    roles = {"in": inputs, "param": params, "out": {k: found[f"out.{k}"] for k in shapes}, "gout": gout,
             "grad": {k.removeprefix("grad."): v for k, v in found.items() if k.startswith("grad.")}}
    for role, named in roles.items():
        tensors.update({f"{prefix}/{role}.{k}": v for k, v in named.items()})
    rough = results(copy.deepcopy(module).float(), in_float32(inputs), gout, call)
    error = max((rough[k].double() - v).abs().max().item() for k, v in found.items())
    entry = {"id": f"{file}/{prefix}", "file": f"{file}.safetensors", "prefix": f"{prefix}/", "kind": "module", "op": op,
             "args": args, "tensors": {role: list(named) for role, named in roles.items()}, "tol": TOLERANCE,
             "f32_max_abs_err": float(f"{error:.1e}")}
    return entry | ({"note": note} if note else {})


def cell_cases(tensors):
    def call(cell, given):
        h, c = cell(given["x"], (given["h_prev"], given["c_prev"]))
        return {"h": h, "c": c}

    for prefix, bias, batch in (("bias", True, 3), ("no_bias", False, 3), ("batch_1", True, 1)):
        inputs = {"x": uniform(batch, INPUT), "h_prev": uniform(batch, HIDDEN), "c_prev": uniform(batch, HIDDEN)}
        state = (batch, HIDDEN)
        yield case(tensors, prefix, "lstm_cell", "LSTMCell", {"input_size": INPUT, "hidden_size": HIDDEN, "bias": bias},
                   torch.nn.LSTMCell(INPUT, HIDDEN, bias=bias, dtype=torch.float64), inputs, {"h": state, "c": state},
                   call, "gates stacked i, f, g, o; c = f * c_prev + i * g; h = o * tanh(c)")


def layer_case(tensors, file, prefix, layers=1, bias=True, batch_first=False, bidirectional=False, state=False, packed=False):
    batch = len(LENGTHS)

    def call(lstm, given):
        x = given["input"]
        if packed:
            x = torch.nn.utils.rnn.pack_padded_sequence(x, given["lengths"], batch_first, enforce_sorted=False)
        output, (h, c) = lstm(x, (given["h_0"], given["c_0"]) if state else None)
        if packed:
            output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first, total_length=STEPS)
        return {"output": output, "h_n": h, "c_n": c}

    directions = 2 if bidirectional else 1
    steps = (batch, STEPS) if batch_first else (STEPS, batch)
    states = (layers * directions, batch, HIDDEN)
    inputs = {"input": uniform(*steps, INPUT)}
    if state:
        inputs |= {"h_0": uniform(*states), "c_0": uniform(*states)}
    if packed:
        inputs["lengths"] = torch.tensor(LENGTHS)
    args = {"input_size": INPUT, "hidden_size": HIDDEN, "num_layers": layers, "bias": bias, "batch_first": batch_first,
            "bidirectional": bidirectional} | ({"packed": True} if packed else {})
    lstm = torch.nn.LSTM(INPUT, HIDDEN, layers, bias, batch_first, 0.0, bidirectional, dtype=torch.float64)
    shapes = {"output": (*steps, directions * HIDDEN), "h_n": states, "c_n": states}
    return case(tensors, prefix, file, "LSTM", args, lstm, inputs, shapes, call, PACKED_NOTE if packed else None)


class LastStep(torch.nn.Module):
    def __init__(self, inputs, hidden, layers, classes):
        super().__init__()
        self.rnn = torch.nn.LSTM(inputs, hidden, layers)
        self.fc = torch.nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][-1])


def train(model, x, y, steps, lr):
    """Losses, gradient norms, and the gradients of the first step."""
    adam, losses, norms, first = torch.optim.Adam(model.parameters(), lr=lr), [], [], {}
    for k in range(steps):
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[k % len(x)]), y[k % len(x)])
        loss.backward()
        first = first or {n: p.grad.clone() for n, p in model.named_parameters()}
        norms.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm())
        adam.step()
        losses.append(loss.detach())
    return torch.stack(losses), torch.stack(norms), first


def train_case(tensors):
    inputs, hidden, layers, classes, batches, steps, lr = 3, 6, 2, 2, 5, 20, 0.03
    model = LastStep(inputs, hidden, layers, classes).double()
    for p in model.parameters():
        p.data = uniform(*p.shape) / 2
    x, y = uniform(batches, 5, 4, inputs), torch.randint(classes, (batches, 4))
    params = {k: p.detach().clone() for k, p in model.named_parameters()}
    rough = LastStep(inputs, hidden, layers, classes)
    rough.load_state_dict(params)
    loss, norm, first = train(model, x, y, steps, lr)
    error = (train(rough, x.float(), y, steps, lr)[0].double() - loss).abs().max().item()
    roles = {"in": {"x": x, "y": y}, "param": params, "out": {"loss": loss, "grad_norm": norm},
             "grad": {f"param.{k}": v for k, v in first.items()},
             "final": {f"param.{k}": p for k, p in model.named_parameters()}}
    for role, named in roles.items():
        tensors.update({f"run/{role}.{k}": v for k, v in named.items()})
    return {"id": "train_lstm/run", "file": "train_lstm.safetensors", "prefix": "run/", "kind": "train", "op": "LastStep",
            "args": {"input": inputs, "hidden": hidden, "num_layers": layers, "classes": classes, "rnn": "LSTM",
                     "optimizer": {"Adam": {"lr": lr}}, "clip_grad_norm": None, "steps": steps, "batches": batches},
            "tensors": {role: list(named) for role, named in roles.items()}, "tol": {"rtol": 1e-09, "atol": 1e-10},
            "f32_loss_max_abs_err": float(f"{error:.1e}"),
            "note": "step k uses batch k % 5; x (T,B,I); rnn.* then fc.* on the last step; mean cross entropy"}


def make():
    """Writes the files and yields the index entries."""
    torch.manual_seed(20240612)
    files = {
        "lstm_cell": cell_cases,
        "lstm_layer": lambda t: [layer_case(t, "lstm_layer", "l1"), layer_case(t, "lstm_layer", "l1_h0", state=True),
                                 layer_case(t, "lstm_layer", "l1_no_bias_h0", bias=False, state=True),
                                 layer_case(t, "lstm_layer", "l2_batch_first_h0", 2, batch_first=True, state=True)],
        "lstm_bidirectional": lambda t: [layer_case(t, "lstm_bidirectional", "bi_l1", bidirectional=True),
                                         layer_case(t, "lstm_bidirectional", "bi_l2_h0", 2, bidirectional=True, state=True)],
        "lstm_packed": lambda t: [
            layer_case(t, "lstm_packed", "l1_unsorted", packed=True),
            layer_case(t, "lstm_packed", "l2_batch_first_h0", 2, batch_first=True, state=True, packed=True),
            layer_case(t, "lstm_packed", "bi_l1_unsorted_h0", bidirectional=True, state=True, packed=True)],
        "train_lstm": lambda t: [train_case(t)],
    }
    for name, cases in files.items():
        tensors = {}
        yield from cases(tensors)
        write(name, tensors)


def main():
    path = HERE / "index.json"
    lines = path.read_text().splitlines()
    kept = [line.rstrip(",") for line in lines[1 + lines.index('"cases": ['):-1] if '"id":"lstm_' not in line]
    kept = [line for line in kept if '"id":"train_lstm' not in line]
    kept += [json.dumps(entry, separators=(",", ":")) for entry in make()]
    path.write_text("\n".join(lines[:1 + lines.index('"cases": [')]) + "\n" + ",\n".join(kept) + "\n]}\n")


if __name__ == "__main__":
    main()
