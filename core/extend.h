/// The extension API: building blocks for custom ops, the same ones that rill's layers use.
///
/// An op checks its arguments, allocates its result, runs kernels on the thread team and records its gradient:
///
///   checks     `check(condition, "op: fact with {}; remedy", value)` (error.h)
///   gradient   `record(name, result, inputs, backward)`; `Saved` saves a tensor for backward (autograd.h)
///   pointwise  `unary` and `binary` build an op from its forward and backward formulas (ops/pointwise.h)
///   products   `matmul_into` for tensors (ops/matmul_into.h), `gemm` for a `MatrixView` (gemm/gemm.h),
///              `packed` for a weight that is used many times (ops/packed_weight.h), `linear` for a weight in
///              its stored layout (ops/stored_weight.h)
///   threads    `parallel_for` over chunks, `FlushDenormals` (parallel.h)
///   strides    `for_each_run` over strided arrays of one shape (strided.h)
///   kernels    RILL_KERNEL compiles a loop for each instruction set, RILL_INLINE the functions it calls
///              (kernels/simd.h); vectorisable `exp`, `log`, `tanh` and `sigmoid` (kernels/math.h); sums,
///              dot products and softmax of rows (kernels/reduce.h)
///   memory     `memory::Block` allocates a workspace (memory.h)
///
/// `examples/fast_op.cpp` is a fused op with a kernel; `examples/custom_op.cpp` shows the simpler forms. This
/// header is not part of core.h.
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
