/// In-place operations. None is recorded.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <rill/core/autograd/node_layout.h>
#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

/// In-place operations must not modify what a recorded op may rely on.
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

template <class T>
void fill_loop(const void* value, std::int64_t n, const void* const*, void* to) noexcept {
  const T element = *static_cast<const T*>(value);
  if (element == T{} && !std::signbit(static_cast<double>(element))) {
    std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    std::fill_n(static_cast<T*>(to), n, element);
  }
}

template <class T, class U>
void convert_loop(const void*, std::int64_t n, const void* const* from, void* to) noexcept {
  const U* const x = static_cast<const U*>(from[0]);
  T* const y = static_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(x[i]);
}

struct AddScaled {
  double alpha;
  template <class T>
  RILL_INLINE T operator()(T y, T x) const {
    return y + static_cast<T>(alpha) * x;
  }
};

struct Scale {
  double factor;
  template <class T>
  RILL_INLINE T operator()(T y) const {
    return y * static_cast<T>(factor);
  }
};

/// The destination of an in-place op: bumps the version of t.
const Tensor& changed(const Tensor& t) {
  t.impl().storage->bump_version();
  return t;
}

/// An op that is not recorded would silently drop the gradient of its source.
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

/// Whether reading `from` while `to` is written could return new values.
bool may_overlap(const Tensor& to, const Tensor& from) noexcept {
  return from.ref()->storage == to.ref()->storage && !(from.ref() == to.ref());
}

}  // namespace

Tensor& Tensor::fill_(double value) {
  check_in_place("fill_", *this);
  check_representable("fill_", value, dtype());
  visit(dtype(), [&]<class T>(Type<T>) {
    const T element = static_cast<T>(value);
    detail::pointwise(fill_loop<T>, &element, {}, changed(*this));
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
      const kernels::DenseLoop loop = std::is_same_v<T, U> ? nullptr : convert_loop<T, U>;
      detail::pointwise(loop, nullptr, {&source}, changed(*this));
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
  const AddScaled f{alpha};
  const auto loop = detail::floating_loop<AddScaled, 2>("add_", dtype());
  detail::pointwise(loop, &f, {this, &other}, changed(*this));
  return *this;
}

Tensor& Tensor::mul_(double factor) {
  check_in_place("mul_", *this);
  const Scale f{factor};
  const auto loop = detail::floating_loop<Scale, 1>("mul_", dtype());
  detail::pointwise(loop, &f, {this}, changed(*this));
  return *this;
}

}  // namespace rill
