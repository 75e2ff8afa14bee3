/// Building blocks for fast custom ops: everything that rill's own layers use.
///
/// An op checks its arguments, allocates its result, runs kernels on the team of threads, and records its
/// gradient:
///
///   checks     `check(condition, "op: fact with {}; remedy", value)` (error.h)
///   gradient   `record(name, result, inputs, backward)`; `Saved` keeps a tensor for it (autograd.h)
/// pointwise `unary` and `binary` turn a formula and its derivative into an op (ops/pointwise.h)
///   products   `matmul_into` of tensors (ops/matmul_into.h), `gemm` of a `MatrixView` (gemm/gemm.h),
///              `packed` for a weight that is used many times (ops/packed_weight.h), `linear` by a weight as
///              it is stored (ops/stored_weight.h)
///   threads    `parallel_for` over chunks, `FlushDenormals` (parallel.h)
///   strides    `for_each_run` over arrays of one shape (strided.h)
///   kernels    RILL_KERNEL compiles a loop for each instruction set, RILL_INLINE what it calls
///              (kernels/simd.h); `exp`, `log`, `tanh` and `sigmoid` that vectorise (kernels/math.h); sums,
///              dot products and softmax of rows (kernels/reduce.h)
///   memory     `memory::Block` is a workspace (memory.h)
///
/// `examples/fast_op.cpp` is a fused op with a kernel, `examples/custom_op.cpp` shows the simple forms.
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
