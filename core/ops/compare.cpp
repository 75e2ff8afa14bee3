#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/ops/pointwise.h>

#include <array>
#include <cmath>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace rill {

using detail::raw;

namespace {

/// y[i] = f(inputs[i]…) over the shape of y, to which the inputs are broadcast. y is contiguous.
template <class Y, class... X, class F>
void fill_from(const Tensor& y, const F& f,
               const std::type_identity_t<std::array<Tensor, sizeof...(X)>>& inputs) {
  constexpr int K = sizeof...(X) + 1;
  std::array<Strides, K> strides{y.strides()};
  bool contiguous = true;
  for (std::size_t k = 1; k < K; ++k) {
    const Tensor& x = inputs[k - 1];
    strides[k] = broadcast_strides(x.shape(), x.strides(), y.shape());
    contiguous = contiguous && x.is_contiguous() && x.shape() == y.shape();
  }
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>) {
    detail::each_run<Y, K>(y.shape(), strides, contiguous, y.numel(),
                           [&](auto at, std::int64_t n, auto step) {
                             Y* const to = raw<Y>(y) + at[0];
                             const std::tuple<const X*...> from{raw<const X>(inputs[I]) + at[I + 1]...};
                             if (((step[I + 1] == 1) && ...)) {
                               for (std::int64_t i = 0; i < n; ++i) to[i] = f(std::get<I>(from)[i]...);
                             } else {
                               for (std::int64_t i = 0; i < n; ++i)
                                 to[i * step[0]] = f(std::get<I>(from)[i * step[I + 1]]...);
                             }
                           });
  };
  run(std::index_sequence_for<X...>{});
}

void check_mask(const char* op, const Tensor& mask) {
  check(mask.dtype() == boolean, "{}: the mask is {}, not boolean; compare first, as in ne(x, 0)", op,
        name(mask.dtype()));
}

/// Gives d the elements of dy where mask == kept, zeros elsewhere, summed back to its shape.
void give_masked(GradRef d, const Tensor& dy, const Tensor& mask, bool kept) {
  visit_floating("where", dy.dtype(), [&]<class T>(Type<T>) {
    const Tensor part = empty(dy.shape(), dy.dtype());
    fill_from<T, bool, T>(part, [kept](bool m, T v) { return m == kept ? v : T(0); }, {mask, dy});
    d.give(sum_to(part, d.shape()));
  });
}

}  // namespace

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  check_mask("where", mask);
  check_same_dtype("where", a.dtype(), b.dtype());
  const Shape shape =
      broadcast_shapes("where", mask.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  const Tensor y = empty(shape, a.dtype());
  visit(a.dtype(), [&]<class T>(Type<T>) {
    fill_from<T, bool, T, T>(y, [](bool m, T u, T v) { return m ? u : v; }, {mask, a, b});
  });
  return record("where", y, {a, b}, [mask = Saved(mask, "where")](const Tensor& dy, Grads& d) {
    if (auto da = d[0]) give_masked(da, dy, mask(), true);
    if (auto db = d[1]) give_masked(db, dy, mask(), false);
  });
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check_mask("masked_fill", mask);
  check(broadcast_shapes("masked_fill", x.shape(), mask.shape()) == x.shape(),
        "masked_fill: the mask {} does not broadcast to {}", mask.shape(), x.shape());
  check_holds("masked_fill", value, x.dtype());
  const Tensor y = empty(x.shape(), x.dtype());
  visit(x.dtype(), [&]<class T>(Type<T>) {
    const T filling = static_cast<T>(value);
    fill_from<T, bool, T>(y, [filling](bool m, T v) { return m ? filling : v; }, {mask, x});
  });
  return record("masked_fill", y, {x}, [mask = Saved(mask, "masked_fill")](const Tensor& dy, Grads& d) {
    give_masked(d[0], dy, mask(), false);
  });
}

namespace {

template <class Compare>
Tensor compared(const char* op, const Tensor& a, const Tensor& b, bool swapped = false) {
  check_same_dtype(op, a.dtype(), b.dtype());
  const Tensor y = empty(broadcast_shapes(op, a.shape(), b.shape()), boolean);
  const Tensor &left = swapped ? b : a, &right = swapped ? a : b;
  visit(a.dtype(), [&]<class T>(Type<T>) { fill_from<bool, T, T>(y, Compare{}, {left, right}); });
  return y;
}

/// With the scalar in the tensor's type where that is exact for integers, in double otherwise.
template <class Compare>
Tensor compared(const Tensor& a, double b) {
  const Tensor y = empty(a.shape(), boolean);
  visit(a.dtype(), [&]<class T>(Type<T>) {
    const auto with = [&](auto scalar) {
      using S = decltype(scalar);
      fill_from<bool, T>(y, [scalar](T v) { return Compare{}(static_cast<S>(v), scalar); }, {a});
    };
    if constexpr (std::is_floating_point_v<T>) {
      with(static_cast<T>(b));
    } else if (std::trunc(b) == b && std::fabs(b) < 0x1p63) {
      with(static_cast<std::int64_t>(b));
    } else {
      with(b);
    }
  });
  return y;
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compared<std::equal_to<>>("eq", a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compared<std::not_equal_to<>>("ne", a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compared<std::less<>>("lt", a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compared<std::less_equal<>>("le", a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compared<std::less<>>("gt", a, b, true); }
Tensor ge(const Tensor& a, const Tensor& b) { return compared<std::less_equal<>>("ge", a, b, true); }
Tensor eq(const Tensor& a, double b) { return compared<std::equal_to<>>(a, b); }
Tensor ne(const Tensor& a, double b) { return compared<std::not_equal_to<>>(a, b); }
Tensor lt(const Tensor& a, double b) { return compared<std::less<>>(a, b); }
Tensor le(const Tensor& a, double b) { return compared<std::less_equal<>>(a, b); }
Tensor gt(const Tensor& a, double b) { return compared<std::greater<>>(a, b); }
Tensor ge(const Tensor& a, double b) { return compared<std::greater_equal<>>(a, b); }

}  // namespace rill
