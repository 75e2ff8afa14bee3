/// Pointwise ops are declared, not coded: a struct says its name, what its gradient needs, and both formulas.
///
///   struct Tanh {
///     static constexpr const char* name = "tanh";
///     static constexpr Keeps keeps = Keeps::output;
///     template <class T> RILL_INLINE T forward(T x) const { return kernels::math::tanh(x); }
///     template <class T> RILL_INLINE T backward(T dy, T y) const { return dy * (1 - y * y); }
///   };
///   Tensor tanh(const Tensor& x) { return unary(Tanh{}, x); }
///
/// `unary` and `binary` make the loops (vectorised, threaded when large), the broadcasting and the sum back
/// to shape.
#pragma once

#include <array>
#include <cstdint>

#include <rill/core/autograd.h>
#include <rill/core/kernels/map.h>
#include <rill/core/ops.h>
#include <rill/core/parallel.h>
#include <rill/core/strided.h>

#pragma GCC visibility push(default)

namespace rill {

/// What a pointwise op's backward reads besides dy.
enum class Keeps : std::uint8_t { nothing, input, output };

namespace detail {

constexpr std::int64_t pointwise_grain = 32768;

/// y = f(x) elementwise for y of any layout: runs of contiguous tensors are split over the threads.
template <class T, int K, class F>
void each_run(const Shape& shape, const std::array<Strides, K>& strides, bool all_contiguous, std::int64_t n,
              F&& f) {
  if (all_contiguous) {
    std::array<std::int64_t, K> unit;
    unit.fill(1);
    if (n <= pointwise_grain) {
      f(std::array<std::int64_t, K>{}, n, unit);
      return;
    }
    parallel_for(n, pointwise_grain, [&](std::int64_t begin, std::int64_t end) {
      std::array<std::int64_t, K> at;
      at.fill(begin);
      f(at, end - begin, unit);
    });
    return;
  }
  for_each_run<K>(shape, strides, f);
}

template <class Op, class T>
Tensor unary_forward(const Op& op, const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  const T* from = raw<const T>(x);
  T* to = raw<T>(y);
  each_run<T, 2>(x.shape(), {x.strides(), y.strides()}, x.is_contiguous(), x.numel(),
                 [&](auto at, std::int64_t n, auto step) {
                   kernels::map(op, n, from + at[0], step[0], to + at[1], step[1]);
                 });
  return y;
}

/// to = beta · to + op.backward(dy, kept).
template <class Op, class T>
void unary_backward(const Op& op, const Tensor& dy, const Saved* kept, const Slot& slot) {
  const Tensor k = kept ? (*kept)() : dy;  // an op that keeps nothing is handed dy and ignores it
  const T* gradient = raw<const T>(dy);
  const T* other = raw<const T>(k);
  T* to = raw<T>(slot.to);
  const T beta = static_cast<T>(slot.beta);
  const bool contiguous = dy.is_contiguous() && k.is_contiguous() && slot.to.is_contiguous();
  each_run<T, 3>(dy.shape(), {dy.strides(), k.strides(), slot.to.strides()}, contiguous, dy.numel(),
                 [&](auto at, std::int64_t n, auto step) {
                   kernels::map_backward(op, n, gradient + at[0], step[0], other + at[1], step[1], beta,
                                         to + at[2], step[2]);
                 });
}

/// One side of a binary op's gradient, as its own loop body: forward(dy, a, b) of `map3`.
template <class Op>
struct BackwardA {
  Op op;
  template <class T>
  RILL_INLINE T forward(T dy, T a, T b) const {
    return op.backward_a(dy, a, b);
  }
};
template <class Op>
struct BackwardB {
  Op op;
  template <class T>
  RILL_INLINE T forward(T dy, T a, T b) const {
    return op.backward_b(dy, a, b);
  }
};

template <class Side, class T>
void binary_backward_loop(const Side& side, const Tensor& dy, const Tensor& a, const Tensor& b,
                          const Slot& slot) {
  const T* gradient = raw<const T>(dy);
  const T* left = raw<const T>(a);
  const T* right = raw<const T>(b);
  T* to = raw<T>(slot.to);
  const T beta = static_cast<T>(slot.beta);
  const Strides a_strides = broadcast_strides(a.shape(), a.strides(), dy.shape());
  const Strides b_strides = broadcast_strides(b.shape(), b.strides(), dy.shape());
  const bool contiguous = dy.is_contiguous() && a.is_contiguous() && b.is_contiguous() &&
                          slot.to.is_contiguous() && a.shape() == dy.shape() && b.shape() == dy.shape();
  each_run<T, 4>(dy.shape(), {dy.strides(), a_strides, b_strides, slot.to.strides()}, contiguous, dy.numel(),
                 [&](auto at, std::int64_t n, auto step) {
                   kernels::map3(side, n, gradient + at[0], step[0], left + at[1], step[1], right + at[2],
                                 step[2], beta, to + at[3], step[3]);
                 });
}

/// Gives d the gradient of one operand, summed over what was broadcast.
template <class Side, class T>
void binary_backward(const Side& side, const Tensor& dy, const Tensor& a, const Tensor& b, GradRef d) {
  if (d.shape() == dy.shape()) {
    binary_backward_loop<Side, T>(side, dy, a, b, d.slot());
    return;
  }
  const Tensor full = empty(dy.shape(), dy.dtype());
  binary_backward_loop<Side, T>(side, dy, a, b, {full, 0});
  d.give(sum_to(full, d.shape()));
}

template <class Op, class T>
Tensor binary_forward(const Op& op, const Tensor& a, const Tensor& b) {
  const bool same = a.shape() == b.shape();
  Tensor y = empty(same ? a.shape() : broadcast_shapes(Op::name, a.shape(), b.shape()), a.dtype());
  const T* left = raw<const T>(a);
  const T* right = raw<const T>(b);
  T* to = raw<T>(y);
  const auto run = [&](auto at, std::int64_t n, auto step) {
    kernels::map2(op, n, left + at[0], step[0], right + at[1], step[1], to + at[2]);
  };
  if (same && a.is_contiguous() && b.is_contiguous()) {
    each_run<T, 3>(y.shape(), {}, true, y.numel(), run);
  } else {
    const Strides a_strides = broadcast_strides(a.shape(), a.strides(), y.shape());
    const Strides b_strides = broadcast_strides(b.shape(), b.strides(), y.shape());
    for_each_run<3>(y.shape(), {a_strides, b_strides, y.strides()}, run);
  }
  return y;
}

}  // namespace detail

/// Applies a pointwise op of one operand (see the head of this file).
template <class Op>
Tensor unary(const Op& op, const Tensor& x) {
  return visit_floating(op.name, x.dtype(), [&]<class T>(Type<T>) {
    Tensor y = detail::unary_forward<Op, T>(op, x);
    if (!is_recording({x})) return unrecorded(op.name, std::move(y));
    if constexpr (Op::keeps == Keeps::nothing) {
      return record(op.name, std::move(y), {x}, [op](const Tensor& dy, Grads& d) {
        detail::unary_backward<Op, T>(op, dy, nullptr, d[0].in_place_slot(dy));
      });
    } else {
      const Tensor& kept = Op::keeps == Keeps::input ? x : y;
      return record(op.name, std::move(y), {x},
                    [op, kept = Saved(kept, op.name)](const Tensor& dy, Grads& d) {
                      detail::unary_backward<Op, T>(op, dy, &kept, d[0].in_place_slot(dy));
                    });
    }
  });
}

/// Applies a pointwise op of two operands: a struct with `name`, `keeps` (nothing or input), `forward(a, b)`,
/// `backward_a(dy, a, b)` and `backward_b(dy, a, b)`. `passes_a` / `passes_b` say that a gradient is dy
/// itself.
template <class Op>
Tensor binary(const Op& op, const Tensor& a, const Tensor& b) {
  check_same_dtype(Op::name, a.dtype(), b.dtype());
  return visit_floating(Op::name, a.dtype(), [&]<class T>(Type<T>) {
    Tensor y = detail::binary_forward<Op, T>(op, a, b);
    if (!is_recording({a, b})) return unrecorded(Op::name, std::move(y));
    if constexpr (Op::keeps == Keeps::nothing) {
      return record(Op::name, std::move(y), {a, b}, [op](const Tensor& dy, Grads& d) {
        const auto side = [&](GradRef g, auto passes, const auto& backward) {
          if (!g) return;
          if constexpr (passes) {
            g.give(g.shape() == dy.shape() ? dy : sum_to(dy, g.shape()));
          } else {
            detail::binary_backward<std::decay_t<decltype(backward)>, T>(backward, dy, dy, dy, g);
          }
        };
        side(d[0], std::bool_constant<Op::passes_a>{}, detail::BackwardA<Op>{op});
        side(d[1], std::bool_constant<Op::passes_b>{}, detail::BackwardB<Op>{op});
      });
    } else {
      return record(Op::name, std::move(y), {a, b},
                    [op, a = Saved(a, Op::name), b = Saved(b, Op::name)](const Tensor& dy, Grads& d) {
                      if (auto g = d[0])
                        detail::binary_backward<detail::BackwardA<Op>, T>({op}, dy, a(), b(), g);
                      if (auto g = d[1])
                        detail::binary_backward<detail::BackwardB<Op>, T>({op}, dy, a(), b(), g);
                    });
    }
  });
}

}  // namespace rill

#pragma GCC visibility pop
