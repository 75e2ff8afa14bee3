#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rill {

using detail::DimSet;
using detail::raw;
using detail::Rows;

namespace {

/// Largest first, NaN before all other values.
struct Descending {
  template <class T>
  static bool before(T a, T b) noexcept {
    return a > b || (a != a && b == b);
  }
  /// The element of a block that ranks first; NaN if the block contains one.
  template <class T>
  static T first(const T* x, std::int64_t n) noexcept {
    return kernels::max(x, n);
  }
};

/// Smallest first, NaN after all other values.
struct Ascending {
  template <class T>
  static bool before(T a, T b) noexcept {
    return a < b || (a == a && b != b);
  }
  template <class T>
  static T first(const T* x, std::int64_t n) noexcept {
    return kernels::min(x, n);
  }
};

/// Up to this k, a sorted list is faster than the heap of partial_sort.
constexpr std::int64_t longest_list = 64;

/// The first k > 0 of a row of n >= k elements, by insertion into a sorted list, after equal ones, which have
/// lower indices. Once the list is full, most blocks are skipped as a whole: a long row costs little more
/// than its maximum.
template <class Order, class T>
void insert_first(const T* row, std::int64_t n, std::int64_t k, T* values, std::int64_t* indices) {
  constexpr std::int64_t block = 128;
  std::int64_t held = 0;
  const auto enters = [&](T x) { return held < k || Order::before(x, values[k - 1]); };
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    const T first = Order::first(row + begin, end - begin);
    // NaN says nothing about the other elements of the block.
    if (first == first && !enters(first)) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const T x = row[i];
      if (!enters(x)) continue;
      std::int64_t at = held < k ? held++ : k - 1;
      for (; at > 0 && Order::before(x, values[at - 1]); --at) {
        values[at] = values[at - 1];
        indices[at] = indices[at - 1];
      }
      values[at] = x;
      indices[at] = i;
    }
  }
}

/// The same for larger k.
template <class Order, class T>
void sort_first(const T* row, std::int64_t n, std::int64_t k, T* values, std::int64_t* indices) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [row](std::int64_t a, std::int64_t b) {
    if (Order::before(row[a], row[b])) return true;
    return a < b && !Order::before(row[b], row[a]);
  });
  std::copy_n(order.begin(), k, indices);
  for (std::int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

template <class Order>
ValuesAndIndices first_of(const Tensor& x, std::int64_t k, int dim) {
  return visit_floating("topk", x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set("topk", dim, x.dim());
    const Rows rows(x, set);
    const Tensor values = empty({rows.count(), k}, x.dtype());
    const Tensor indices = empty({rows.count(), k}, int64);
    const auto choose = k > longest_list ? sort_first<Order, T> : insert_first<Order, T>;
    if (k > 0) {
      detail::each_row<T>(rows, [&](std::int64_t i, const T* row) {
        choose(row, rows.size(), k, raw<T>(values) + i * k, raw<std::int64_t>(indices) + i * k);
      });
    }
    Shape shape = x.shape();
    if (!shape.empty()) shape[dim] = k;
    const auto shaped = [&](const Tensor& found) { return detail::unmoved(found, set, shape).contiguous(); };
    Tensor y = record(
        "topk", shaped(values), {x}, [set, k, at = Saved(indices, "topk")](const Tensor& dy, Grads& d) {
          const Tensor gradient = dy.permute(detail::moved_last(set, dy.dim())).contiguous();
          detail::give_chosen(d[0], set, k, at.template data<std::int64_t>(), raw<const T>(gradient));
        });
    return ValuesAndIndices{std::move(y), shaped(indices)};
  });
}

}  // namespace

ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim, bool largest) {
  const int along = wrap_dim("topk", dim, std::max(x.dim(), 1));
  const std::int64_t size = x.dim() == 0 ? 1 : x.size(along);
  const std::int64_t least = x.dim() == 0 ? 1 : 0;
  check(k >= least && k <= size, "topk: {} of the {} elements along dimension {} of {}; k must be in {}..{}",
        k, size, dim, x.shape(), least, size);
  return largest ? first_of<Descending>(x, k, along) : first_of<Ascending>(x, k, along);
}

}  // namespace rill
