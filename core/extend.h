/// Building blocks for custom fast ops: everything that rill's own layers use.
///
/// An op checks its arguments, allocates its result, runs kernels on the thread team, and records its
/// gradient:
///
///   checks     `check(condition, "op: fact with {}; remedy", value)` (error.h)
///   gradient   `record(name, result, inputs, backward)`; `Saved` keeps a tensor for backward (autograd.h)
///   pointwise  `unary` and `binary` build an op from its forward and backward formulas (ops/pointwise.h)
///   products   `matmul_into` on tensors (ops/matmul_into.h), `gemm` on `MatrixView`s (gemm/gemm.h),
///              `packed` for a weight that is used repeatedly (ops/packed_weight.h), `linear` with a weight
///              in its stored layout (ops/stored_weight.h)
///   threads    `parallel_for` over chunks, `FlushDenormals` (parallel.h)
///   strides    `for_each_run` over arrays of the same shape (strided.h)
///   kernels    RILL_KERNEL compiles a loop for each instruction set, RILL_INLINE marks the functions it
///              calls (kernels/simd.h); vectorisable `exp`, `log`, `tanh` and `sigmoid` (kernels/math.h); row
///              sums, dot products and softmax (kernels/reduce.h)
///   memory     `memory::Block` for workspaces (memory.h)
///
/// See `examples/custom_op.cpp` for simple ops and `examples/fast_op.cpp` for a fused op with its own kernel.
/// core.h does not include this header.
#pragma once

#include <rill/core/autograd.h>
#include <rill/core/error.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/kernels/math.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>
#include <rill/core/memory.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/core/ops/pointwise.h>
#include <rill/core/ops/stored_weight.h>
#include <rill/core/parallel.h>
#include <rill/core/strided.h>
