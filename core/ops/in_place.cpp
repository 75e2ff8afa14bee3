/// The verbs that change a tensor in place. None is recorded.
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>
#include <rill/core/kernels/simd.h>
#include <rill/core/ops/pointwise.h>
#include <rill/core/strided.h>

namespace rill {
namespace {

/// In-place verbs must not change what a recorded op may rely on.
void check_in_place(const char* verb, const Tensor& t) {
  check(
      t.is_leaf(),
      "{}: the tensor is the result of '{}' and has history; use detach() or the op that makes a new tensor",
      verb, t.op_name());
  check(!(grad_enabled() && t.requires_grad()),
        "{}: a leaf that wants its gradient is changed while recording; use NoGrad", verb);
  check(!detail::repeats(t),
        "{}: several elements of shape {} with strides {} are one place in memory; change a clone()", verb,
        t.shape(), t.strides());
}

/// y[i] = value.
template <class T>
void fill_run(std::int64_t n, T value, T* y, std::int64_t sy) noexcept {
  if (sy == 1 && value == T{} && !std::signbit(static_cast<double>(value))) {
    std::memset(y, 0, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i * sy] = value;
  }
}

/// y[i] = x[i], converted.
template <class T, class U>
void copy_run(std::int64_t n, const U* x, std::int64_t sx, T* y, std::int64_t sy) noexcept {
  if (sx != 1 || sy != 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i * sy] = convert<T>(x[i * sx]);
  } else if constexpr (std::is_same_v<T, U>) {
    std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(x[i]);
  }
}

/// y[i] += factor · x[i].
template <class T>
RILL_KERNEL void add_run(std::int64_t n, T factor, const T* x, std::int64_t sx, T* y,
                         std::int64_t sy) noexcept {
  if (sx == 1 && sy == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i * sy] += factor * x[i * sx];
  }
}

/// y[i] *= factor.
template <class T>
RILL_KERNEL void scale_run(std::int64_t n, T factor, T* y, std::int64_t sy) noexcept {
  if (sy == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i * sy] *= factor;
  }
}

/// f(y, step of y, n) on runs that together are all of `to`.
template <class T, class F>
void for_each_part(Tensor& to, F&& f) {
  T* const y = to.mutable_data<T>();
  const auto part = [&](auto at, std::int64_t n, auto step) { f(y + at[0], step[0], n); };
  if (to.is_contiguous()) {
    detail::each_run<T, 1>(to.shape(), {}, true, to.numel(), part);
  } else {
    for_each_run_in_memory_order<1>(to.shape(), {to.strides()}, part);
  }
}

/// f(y, step of y, x, step of x, n) on runs that together are all of `to` and of `from` broadcast to it.
template <class T, class U, class F>
void for_each_pair(Tensor& to, const Tensor& from, F&& f) {
  T* const y = to.mutable_data<T>();
  const U* const x = from.data<U>();
  const auto pair = [&](auto at, std::int64_t n, auto step) { f(y + at[0], step[0], x + at[1], step[1], n); };
  if (to.is_contiguous() && from.is_contiguous() && to.shape() == from.shape()) {
    detail::each_run<T, 2>(to.shape(), {}, true, to.numel(), pair);
  } else {
    const Strides from_strides = broadcast_strides(from.shape(), from.strides(), to.shape());
    for_each_run_in_memory_order<2>(to.shape(), {to.strides(), from_strides}, pair);
  }
}

/// A verb that is not recorded would cut the gradient of what it reads.
void check_source(const char* verb, const Tensor& from) {
  check(!(grad_enabled() && from.requires_grad()),
        "{}: the source of shape {} wants a gradient, which {} does not record; use cat, where or +, or its "
        "detach()",
        verb, from.shape(), verb);
}

void check_fits(const char* verb, const Tensor& to, const Tensor& from) {
  if (to.shape() == from.shape()) return;
  check(broadcast_shapes(verb, to.shape(), from.shape()) == to.shape(),
        "{}: shape {} does not broadcast to {}", verb, from.shape(), to.shape());
}

/// Whether reading `from` while `to` is written could see new numbers.
bool may_overlap(const Tensor& to, const Tensor& from) noexcept {
  return from.ref()->storage == to.ref()->storage && !(from.ref() == to.ref());
}

}  // namespace

Tensor& Tensor::fill_(double value) {
  check_in_place("fill_", *this);
  check_holds("fill_", value, dtype());
  visit(dtype(), [&]<class T>(Type<T>) {
    for_each_part<T>(
        *this, [&](T* y, std::int64_t sy, std::int64_t n) { fill_run(n, static_cast<T>(value), y, sy); });
  });
  return *this;
}

Tensor& Tensor::zero_() { return fill_(0); }

Tensor& Tensor::copy_(const Tensor& source) {
  check_in_place("copy_", *this);
  check_source("copy_", source);
  check_fits("copy_", *this, source);
  if (may_overlap(*this, source)) return copy_(source.clone());
  visit(dtype(), [&]<class T>(Type<T>) {
    visit(source.dtype(), [&]<class U>(Type<U>) {
      for_each_pair<T, U>(*this, source,
                          [](T* y, std::int64_t sy, const U* x, std::int64_t sx, std::int64_t n) {
                            copy_run(n, x, sx, y, sy);
                          });
    });
  });
  return *this;
}

Tensor& Tensor::add_(const Tensor& other, double alpha) {
  check_in_place("add_", *this);
  check(dtype() == other.dtype(), "add_: dtypes {} and {} differ; use .to({})", name(dtype()),
        name(other.dtype()), name(dtype()));
  check_source("add_", other);
  check_fits("add_", *this, other);
  if (may_overlap(*this, other)) return add_(other.clone(), alpha);
  visit_floating("add_", dtype(), [&]<class T>(Type<T>) {
    for_each_pair<T, T>(*this, other,
                        [&](T* y, std::int64_t sy, const T* x, std::int64_t sx, std::int64_t n) {
                          add_run(n, static_cast<T>(alpha), x, sx, y, sy);
                        });
  });
  return *this;
}

Tensor& Tensor::mul_(double factor) {
  check_in_place("mul_", *this);
  visit_floating("mul_", dtype(), [&]<class T>(Type<T>) {
    for_each_part<T>(
        *this, [&](T* y, std::int64_t sy, std::int64_t n) { scale_run(n, static_cast<T>(factor), y, sy); });
  });
  return *this;
}

}  // namespace rill
