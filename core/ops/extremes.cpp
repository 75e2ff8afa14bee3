#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

namespace rill {

using detail::DimSet;
using detail::each_row;
using detail::raw;
using detail::Rows;

namespace {

struct Largest {
  template <class T>
  static T find(const T* x, std::int64_t n) noexcept {
    return kernels::max(x, n);
  }
};

struct Smallest {
  template <class T>
  static T find(const T* x, std::int64_t n) noexcept {
    return kernels::min(x, n);
  }
};

struct Amax : Largest {
  static constexpr const char* name = "amax";
};
struct Amin : Smallest {
  static constexpr const char* name = "amin";
};
struct Max : Largest {
  static constexpr const char* name = "max";
};
struct Min : Smallest {
  static constexpr const char* name = "min";
};

/// The dims of an extremum, which must not be empty.
DimSet searched(const char* op, const Tensor& x, const Dims& dims) {
  const DimSet set(op, dims, x.dim());
  check(set.count(x.shape()) > 0, "{}: shape {} has no element to choose from", op, x.shape());
  return set;
}

template <class Extreme>
Tensor over_dims(const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating(Extreme::name, x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set = searched(Extreme::name, x, dims);
    const Rows rows(x, set);
    const Tensor y = empty(set.reduced(x.shape(), keepdim), x.dtype());
    each_row<T>(rows, [&](std::int64_t i, const T* row) { raw<T>(y)[i] = Extreme::find(row, rows.size()); });
    return record(
        Extreme::name, y, {x},
        [set, x = Saved(x, Extreme::name), y = Saved(y, Extreme::name)](const Tensor& dy, Grads& d) {
          const Tensor gradient = dy.contiguous();
          const T* const result = y.template data<T>();
          const Rows from(x(), set);
          const std::int64_t n = from.size();
          const Tensor dx = empty({from.count(), n}, dy.dtype());
          each_row<T>(from, [&](std::int64_t i, const T* row) {
            const T share =
                raw<const T>(gradient)[i] / static_cast<T>(kernels::count_equal(row, n, result[i]));
            T* const to = raw<T>(dx) + i * n;
            // A product, so that for NaN, which equals no element and has an infinite weight, the result is
            // NaN.
            for (std::int64_t k = 0; k < n; ++k) to[k] = static_cast<T>(row[k] == result[i]) * share;
          });
          d[0].give(detail::unmoved(dx, set, x.shape()));
        });
  });
}

template <class Extreme>
ValuesAndIndices along(const Tensor& x, std::int64_t dim, bool keepdim) {
  return visit_floating(Extreme::name, x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set = searched(Extreme::name, x, {dim});
    const Rows rows(x, set);
    const Shape shape = set.reduced(x.shape(), keepdim);
    const Tensor values = empty(shape, x.dtype());
    const Tensor indices = empty(shape, int64);
    each_row<T>(rows, [&](std::int64_t i, const T* row) {
      const T found = Extreme::find(row, rows.size());
      raw<T>(values)[i] = found;
      raw<std::int64_t>(indices)[i] = kernels::first_equal(row, rows.size(), found);
    });
    Tensor y = record(
        Extreme::name, values, {x}, [set, at = Saved(indices, Extreme::name)](const Tensor& dy, Grads& d) {
          const Tensor gradient = dy.contiguous();
          detail::give_chosen(d[0], set, 1, at.template data<std::int64_t>(), raw<const T>(gradient));
        });
    return ValuesAndIndices{std::move(y), indices};
  });
}

template <class Extreme>
Tensor index_of(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  return visit_floating(op, x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set = searched(op, x, dims);
    const Rows rows(x, set);
    const Tensor y = empty(set.reduced(x.shape(), keepdim), int64);
    each_row<T>(rows, [&](std::int64_t i, const T* row) {
      raw<std::int64_t>(y)[i] = kernels::first_equal(row, rows.size(), Extreme::find(row, rows.size()));
    });
    return y;
  });
}

}  // namespace

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) { return over_dims<Amax>(x, dims, keepdim); }
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) { return over_dims<Amin>(x, dims, keepdim); }
ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim) { return along<Max>(x, dim, keepdim); }
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim) { return along<Min>(x, dim, keepdim); }

Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) {
  return index_of<Largest>("argmax", x, {dim}, keepdim);
}
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim) {
  return index_of<Smallest>("argmin", x, {dim}, keepdim);
}
Tensor argmax(const Tensor& x) { return index_of<Largest>("argmax", x, {}, false); }
Tensor argmin(const Tensor& x) { return index_of<Smallest>("argmin", x, {}, false); }

}  // namespace rill
