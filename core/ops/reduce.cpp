#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/softmax.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

#include <cmath>
#include <limits>

namespace rill {

using detail::Blocks;
using detail::DimSet;
using detail::raw;
using detail::Rows;

namespace {

/// out[i] = the sum over row i, where part(i, x, n) sums n of its elements. Rows are split at fixed
/// positions, so the result is bitwise the same for any number of threads.
template <class T, class Part>
void sum_each_row(std::int64_t rows, std::int64_t size, const T* x, std::int64_t stride, T* out,
                  const Part& part) {
  constexpr std::int64_t chunk = 32768;
  const std::int64_t chunks = ceil_div(size, chunk);
  if (chunks <= 1) {
    detail::parallel_rows(rows, size, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = part(i, x + i * stride, size);
    });
    return;
  }
  const Tensor parts = empty({rows * chunks}, dtype_of<T>);
  T* const sums = raw<T>(parts);
  parallel_for(rows * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = k % chunks * chunk;
      sums[k] = part(k / chunks, x + k / chunks * stride + at, std::min(chunk, size - at));
    }
  });
  for (std::int64_t i = 0; i < rows; ++i) out[i] = kernels::sum(sums + i * chunks, chunks);
}

template <class T, class Part>
void sum_each_row(const Rows& rows, T* out, const Part& part) {
  sum_each_row(rows.count(), rows.size(), rows.row<T>(0), rows.stride(), out, part);
}

/// y [outer, inner] = Σ over the middle of x, likewise in chunks of fixed size.
template <class T>
void sum_middle(const T* x, const Blocks& b, T* y) {
  const std::int64_t chunk = std::max<std::int64_t>(256, 65536 / b.inner);
  const std::int64_t chunks = ceil_div(b.size, chunk);
  if (chunks <= 1 && b.outer == 1) {
    const std::int64_t columns =
        std::max<std::int64_t>(64, 2 * detail::grain_elements / std::max<std::int64_t>(b.size, 1));
    parallel_for(b.inner, columns, [&](std::int64_t begin, std::int64_t end) {
      kernels::sum_rows(b.size, end - begin, x + begin, b.stride, T(0), y + begin);
    });
    return;
  }
  if (chunks <= 1) {
    detail::parallel_rows(b.outer, b.size * b.inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        kernels::sum_rows(b.size, b.inner, x + i * b.outer_stride, b.stride, T(0), y + i * b.inner);
      }
    });
    return;
  }
  const Tensor parts = empty({b.outer * chunks, b.inner}, dtype_of<T>);
  T* const sums = raw<T>(parts);
  parallel_for(b.outer * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t at = k % chunks * chunk;
      kernels::sum_rows(std::min(chunk, b.size - at), b.inner,
                        x + k / chunks * b.outer_stride + at * b.stride, b.stride, T(0), sums + k * b.inner);
    }
  });
  for (std::int64_t i = 0; i < b.outer; ++i) {
    kernels::sum_rows(chunks, b.inner, sums + i * chunks * b.inner, b.inner, T(0), y + i * b.inner);
  }
}

/// Σ over the dimensions first … last - 1 of x, in a shape with the remaining number of elements.
template <class T>
Tensor sum_group(const Tensor& x, int first, int last, const Shape& shape) {
  const Tensor y = empty(shape, x.dtype());
  if (y.numel() == 0) return y;
  const auto [data, b] = detail::blocked(x, first, last);
  if (b.inner == 1) {
    sum_each_row(b.outer, b.size, raw<const T>(data), b.outer_stride, raw<T>(y),
                 [](std::int64_t, const T* row, std::int64_t n) { return kernels::sum(row, n); });
  } else {
    sum_middle(raw<const T>(data), b, raw<T>(y));
  }
  return y;
}

/// Σ over a set of dimensions of a contiguous x, as a new, unrecorded tensor. One pass per group of adjacent
/// dimensions, innermost first.
template <class T>
Tensor sum_contiguous(const Tensor& x, DimSet dims, const Shape& shape) {
  Tensor y = x;
  int last = x.dim();
  while (last > 0 && !dims.has(last - 1)) --last;
  if (last == 0) return x.detach().clone();
  while (last > 0) {
    Shape left = y.shape();
    int first = last;
    while (first > 0 && (dims.has(first - 1) || left[first - 1] == 1)) left[--first] = 1;
    int next = first;
    while (next > 0 && !dims.has(next - 1)) --next;
    y = sum_group<T>(y, first, last, next == 0 ? shape : left);
    last = next;
  }
  return y;
}

/// The dimensions by decreasing stride.
Dims memory_order(const Tensor& x) {
  Dims order;
  for (int d = 0; d < x.dim(); ++d) {
    int at = order.size();
    while (at > 0 && x.strides()[order[at - 1]] < x.strides()[d]) --at;
    order.insert(at, d);
  }
  return order;
}

/// The same for any x, in memory order, so that a transposed tensor is read sequentially.
template <class T>
Tensor sum_over(const Tensor& x, DimSet dims, bool keepdim) {
  const Shape shape = dims.reduced(x.shape(), keepdim);
  if (x.is_contiguous()) return sum_contiguous<T>(x, dims, shape);
  const Dims order = memory_order(x);
  Dims back = order;
  Dims moved_dims;
  for (int d = 0; d < x.dim(); ++d) {
    back[order[d]] = d;
    if (dims.has(static_cast<int>(order[d]))) moved_dims.push_back(d);
  }
  const Tensor moved = x.detach().permute(order);
  const DimSet moved_set("sum", moved_dims, x.dim());
  const Tensor y = sum_contiguous<T>(moved, moved_set, moved_set.reduced(moved.shape(), true));
  return y.permute(back).contiguous().reshape(shape);
}

/// dy with the reduced dimensions reinserted, expanded to the shape of x without copying.
Tensor spread(const Tensor& dy, DimSet dims, const Shape& x) {
  return dy.reshape(dims.reduced(x, true)).expand(x);
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating("sum", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("sum", dims, x.dim());
    return record("sum", sum_over<T>(x, set, keepdim), {x}, [set](const Tensor& dy, Grads& d) {
      if (auto dx = d[0]) dx.give(spread(dy, set, dx.shape()));
    });
  });
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating("mean", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("mean", dims, x.dim());
    const auto n = static_cast<T>(set.count(x.shape()));
    Tensor y = sum_over<T>(x, set, keepdim);
    for (std::int64_t i = 0; i < y.numel(); ++i) raw<T>(y)[i] /= n;
    return record("mean", std::move(y), {x}, [set, n](const Tensor& dy, Grads& d) {
      if (auto dx = d[0]) dx.give(spread(div(dy, static_cast<double>(n)), set, dx.shape()));
    });
  });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int extra = x.dim() - shape.size();
  check(extra >= 0, "sum_to: shape {} has fewer dimensions than {}", x.shape(), shape);
  Dims dims;
  for (int d = 0; d < x.dim(); ++d) {
    const std::int64_t to = d < extra ? 1 : shape[d - extra];
    check(to == x.shape()[d] || to == 1,
          "sum_to: {} was not broadcast from {} (sizes {} and {} at dimension {})", x.shape(), shape,
          x.shape()[d], to, d);
    if (to != x.shape()[d]) dims.push_back(d);
  }
  if (dims.empty()) return x.reshape(shape);
  return visit_floating("sum_to", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor y = sum_over<T>(x, DimSet("sum_to", dims, x.dim()), true);
    return record("sum_to", y.reshape(shape), {x}, [](const Tensor& dy, Grads& d) {
      if (auto dx = d[0]) dx.give(dy.expand(dx.shape()));
    });
  });
}

// --- along rows

namespace {

/// Adds to d what fill(i, x, dx, n) computes for each row i of x.
template <class T, class Fill>
void give_each_row(GradRef d, const Tensor& x, DimSet dims, const Fill& fill) {
  const Rows rows(x, dims);
  const Tensor dx = empty({rows.count(), rows.size()}, x.dtype());
  T* const to = raw<T>(dx);
  detail::parallel_rows(rows.count(), rows.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) fill(i, rows.row<T>(i), to + i * rows.size(), rows.size());
  });
  d.give(detail::unmoved(dx, dims, x.shape()));
}

/// A new tensor of out(i, x, n) for each row i of x.
template <class T, class Out>
Tensor reduce_each_row(const Tensor& x, DimSet dims, bool keepdim, const Out& out) {
  const Tensor y = empty(dims.reduced(x.shape(), keepdim), x.dtype());
  const Rows rows(x, dims);
  detail::parallel_rows(rows.count(), rows.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) raw<T>(y)[i] = out(rows.row<T>(i), rows.size());
  });
  return y;
}

}  // namespace

Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating("prod", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("prod", dims, x.dim());
    Tensor y = reduce_each_row<T>(x, set, keepdim,
                                  [](const T* row, std::int64_t n) { return kernels::product(row, n); });
    return record("prod", std::move(y), {x}, [set, x = Saved(x, "prod")](const Tensor& dy, Grads& d) {
      const Tensor gradient = dy.contiguous();
      give_each_row<T>(d[0], x(), set, [&](std::int64_t i, const T* row, T* dx, std::int64_t n) {
        kernels::product_backward(row, raw<const T>(gradient)[i], dx, n);
      });
    });
  });
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating("logsumexp", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("logsumexp", dims, x.dim());
    Tensor y = reduce_each_row<T>(x, set, keepdim, [](const T* row, std::int64_t n) {
      const auto z = kernels::log_sum_exp(row, n);
      return z.greatest + z.log_sum;
    });
    return record("logsumexp", y, {x},
                  [set, x = Saved(x, "logsumexp"), y = Saved(y, "logsumexp")](const Tensor& dy, Grads& d) {
                    const Tensor gradient = dy.contiguous();
                    const T* const result = y.template data<T>();
                    give_each_row<T>(
                        d[0], x(), set, [&](std::int64_t i, const T* row, T* dx, std::int64_t n) {
                          if (result[i] == -std::numeric_limits<T>::infinity()) {
                            std::fill_n(dx, n, T(0));  // e^x is 0 everywhere, and so is its gradient
                          } else {
                            kernels::scaled_exp(row, result[i], raw<const T>(gradient)[i], dx, n);
                          }
                        });
                  });
  });
}

// --- variance and standard deviation

namespace {

struct Variance {
  static constexpr const char* name = "var";
  static constexpr bool root = false;
};

struct Deviation {
  static constexpr const char* name = "stddev";
  static constexpr bool root = true;
};

template <class Op>
Tensor spread_of(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  return visit_floating(Op::name, x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set(Op::name, dims, x.dim());
    const auto n = static_cast<T>(set.count(x.shape()));
    const T divisor = std::max(n - static_cast<T>(correction), T(0));
    const Rows rows(x, set);
    const Tensor means = empty({rows.count()}, x.dtype());
    const Tensor y = empty(set.reduced(x.shape(), keepdim), x.dtype());
    T* const mean = raw<T>(means);
    T* const out = raw<T>(y);
    sum_each_row(rows, mean,
                 [](std::int64_t, const T* row, std::int64_t size) { return kernels::sum(row, size); });
    for (std::int64_t i = 0; i < rows.count(); ++i) mean[i] /= n;
    sum_each_row(rows, out, [&](std::int64_t i, const T* row, std::int64_t size) {
      return kernels::sum_squared_deviations(row, mean[i], size);
    });
    for (std::int64_t i = 0; i < rows.count(); ++i)
      out[i] = Op::root ? std::sqrt(out[i] / divisor) : out[i] / divisor;
    return record(
        Op::name, y, {x}, [=, x = Saved(x, Op::name), y = Saved(y, Op::name)](const Tensor& dy, Grads& d) {
          const Tensor gradient = dy.contiguous();
          const T* const result = y.template data<T>();
          give_each_row<T>(d[0], x(), set, [&](std::int64_t i, const T* row, T* dx, std::int64_t size) {
            T scale = raw<const T>(gradient)[i] * 2 / divisor;
            if (Op::root) scale = result[i] == 0 ? T(0) : scale / (2 * result[i]);
            const T center = raw<const T>(means)[i];
            for (std::int64_t k = 0; k < size; ++k) dx[k] = scale * (row[k] - center);
          });
        });
  });
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  return spread_of<Variance>(x, dims, correction, keepdim);
}

Tensor stddev(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  return spread_of<Deviation>(x, dims, correction, keepdim);
}

// --- norm

namespace {

template <class T>
void norm_forward(const Rows& rows, double p, T* y) {
  const auto each = [&](const auto& of_row) {
    detail::parallel_rows(rows.count(), rows.size(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = of_row(rows.row<T>(i), rows.size());
    });
  };
  const auto root = [&](T exponent) {
    for (std::int64_t i = 0; i < rows.count(); ++i)
      y[i] = exponent == T(0.5) ? std::sqrt(y[i]) : std::pow(y[i], exponent);
  };
  if (p == 0) {
    each([](const T* x, std::int64_t n) { return static_cast<T>(n - kernels::count_equal(x, n, T(0))); });
  } else if (std::isinf(p)) {
    each([p](const T* x, std::int64_t n) { return p > 0 ? kernels::max_abs(x, n) : kernels::min_abs(x, n); });
  } else if (p == 1) {
    sum_each_row(rows, y, [](std::int64_t, const T* x, std::int64_t n) { return kernels::sum_abs(x, n); });
  } else if (p == 2) {
    sum_each_row(rows, y, [](std::int64_t, const T* x, std::int64_t n) { return kernels::dot(x, x, n); });
    root(T(0.5));
  } else {
    const T exponent = static_cast<T>(p);
    sum_each_row(rows, y, [exponent](std::int64_t, const T* x, std::int64_t n) {
      return kernels::sum_abs_pow(x, exponent, n);
    });
    root(T(1) / exponent);
  }
}

/// d|x|_p / dx · dy for one row with norm y.
template <class T>
void norm_backward(const T* x, double p, T y, T dy, T* dx, std::int64_t n) {
  if (p == 0 || (y == 0 && !std::isinf(p))) {
    std::fill_n(dx, n, T(0));
    return;
  }
  if (p == 2) {
    const T scale = dy / y;
    for (std::int64_t k = 0; k < n; ++k) dx[k] = x[k] * scale;
    return;
  }
  std::int64_t ties = 0;
  if (std::isinf(p)) ties = kernels::count_equal(x, n, y) + (y == 0 ? 0 : kernels::count_equal(x, n, -y));
  for (std::int64_t k = 0; k < n; ++k) {
    const T signed_dy = x[k] == 0 ? T(0) : std::copysign(dy, dy * x[k]);
    if (ties > 0) {
      dx[k] = std::fabs(x[k]) == y ? signed_dy / static_cast<T>(ties) : T(0);
    } else if (p == 1 || x[k] == 0) {
      dx[k] = signed_dy;
    } else {
      dx[k] = signed_dy * std::pow(std::fabs(x[k]) / y, static_cast<T>(p - 1));
    }
  }
}

}  // namespace

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  check(!std::isnan(p), "norm: p is NaN");
  return visit_floating("norm", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("norm", dims, x.dim());
    check(set.count(x.shape()) > 0 || (p >= 0 && !std::isinf(p)),
          "norm: p = {} over no element of shape {} has no value", p, x.shape());
    const Tensor y = empty(set.reduced(x.shape(), keepdim), x.dtype());
    norm_forward(Rows(x, set), p, raw<T>(y));
    return record(
        "norm", y, {x}, [=, x = Saved(x, "norm"), y = Saved(y, "norm")](const Tensor& dy, Grads& d) {
          const Tensor gradient = dy.contiguous();
          const T* const result = y.template data<T>();
          give_each_row<T>(d[0], x(), set, [&](std::int64_t i, const T* row, T* dx, std::int64_t n) {
            norm_backward(row, p, result[i], raw<const T>(gradient)[i], dx, n);
          });
        });
  });
}

}  // namespace rill
