#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>
#include <rill/core/strided.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace rill {

using detail::Blocks;
using detail::raw;

namespace {

constexpr std::int64_t no_skip = -1;

/// The position of element i of a tensor, for messages: "row 2" of one dimension, "position [0, 2]" of more.
std::string place(std::int64_t i, const Shape& shape) {
  if (shape.size() < 2) return fmt::format("row {}", i);
  Dims position = shape;
  for (int d = shape.size() - 1; d >= 0; --d) {
    position[d] = i % shape[d];
    i /= shape[d];
  }
  return fmt::format("position {}", position);
}

/// The indices, contiguous and detached; throws for another dtype or an index outside 0 … size - 1.
Tensor checked(const char* op, const Tensor& index, std::int64_t size) {
  check(index.dtype() == int64, "{}: indices are {}, not int64; use .to(int64)", op, name(index.dtype()));
  Tensor out = index.contiguous();
  const std::int64_t* const at = raw<const std::int64_t>(out);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    if (at[i] >= 0 && at[i] < size) continue;
    check(size > 0, "{}: index {}, but there is nothing to choose from ({})", op, at[i],
          place(i, index.shape()));
    fail("{}: index {} is outside 0..{} ({})", op, at[i], size - 1, place(i, index.shape()));
  }
  return out;
}

/// to [outer, n, inner] = the blocks at index [n] of from.
template <class T>
void gather_blocks(const T* from, const Blocks& b, const std::int64_t* index, std::int64_t n, T* to) {
  detail::parallel_rows(b.outer * n, b.inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T* const row = from + k / n * b.outer_stride + index[k % n] * b.stride;
      if (b.inner_stride == 1) {
        std::copy_n(row, b.inner, to + k * b.inner);
      } else {
        for (std::int64_t j = 0; j < b.inner; ++j) to[k * b.inner + j] = row[j * b.inner_stride];
      }
    }
  });
}

/// Up to this many float32 additions to one element are accurate enough.
constexpr std::int64_t few = 128;

/// The positions 0 … n - 1 stably sorted by index[position]; all indices are below size.
std::vector<std::int64_t> positions_by_index(const std::int64_t* index, std::int64_t n, std::int64_t size) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  if (size / 8 > n) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [index](std::int64_t a, std::int64_t b) { return index[a] < index[b]; });
    return order;
  }
  std::vector<std::int64_t> next(static_cast<std::size_t>(size) + 1);
  for (std::int64_t k = 0; k < n; ++k) ++next[static_cast<std::size_t>(index[k]) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::int64_t k = 0; k < n; ++k)
    order[static_cast<std::size_t>(next[static_cast<std::size_t>(index[k])]++)] = k;
  return order;
}

/// The positions of one index.
struct Group {
  std::int64_t entry;
  std::span<const std::int64_t> positions;
};

std::vector<Group> groups_of(std::span<const std::int64_t> order, const std::int64_t* index) {
  std::vector<Group> groups;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const std::int64_t entry = index[order[begin]];
    while (end < order.size() && index[order[end]] == entry) ++end;
    groups.push_back({entry, order.subspan(begin, end - begin)});
  }
  return groups;
}

/// to[j · stride] += the sum over the rows `at` of x [.., ld], for n columns j.
template <class T>
void add_gathered_rows(std::span<const std::int64_t> at, std::int64_t n, const T* x, std::int64_t ld, T* to,
                       std::int64_t stride) {
  const auto m = static_cast<std::int64_t>(at.size());
  if (stride == 1) return kernels::sum_gathered_rows(m, n, x, ld, at.data(), T(1), to);
  constexpr std::int64_t width = 256;
  std::array<T, width> sums;
  for (std::int64_t begin = 0; begin < n; begin += width) {
    const std::int64_t columns = std::min(width, n - begin);
    kernels::sum_gathered_rows(m, columns, x + begin, ld, at.data(), T(0), sums.data());
    for (std::int64_t j = 0; j < columns; ++j) to[(begin + j) * stride] += sums[static_cast<std::size_t>(j)];
  }
}

/// Adds from [outer, n, inner] to the blocks at index [n] of `to`, except at `skip`. The entries of one block
/// are summed before they are added, in the order of the index for any number of threads: threads partition
/// the outer blocks or the columns.
template <class T>
void scatter_blocks(const T* from, const std::int64_t* index, std::int64_t n, std::int64_t skip, T* to,
                    const Blocks& b) {
  const std::vector<std::int64_t> order = positions_by_index(index, n, b.size);
  const std::vector<Group> groups = groups_of(order, index);
  const auto add = [&](std::int64_t o, std::int64_t column, std::int64_t columns) {
    const T* const x = from + o * n * b.inner + column;
    T* const y = to + o * b.outer_stride + column * b.inner_stride;
    for (const auto& [entry, positions] : groups) {
      if (entry != skip)
        add_gathered_rows(positions, columns, x, b.inner, y + entry * b.stride, b.inner_stride);
    }
  };
  if (b.outer == 1) {
    const std::int64_t grain =
        std::max<std::int64_t>(32, detail::grain_elements / std::max<std::int64_t>(n, 1));
    parallel_for(b.inner, grain, [&](std::int64_t begin, std::int64_t end) { add(0, begin, end - begin); });
  } else {
    detail::parallel_rows(b.outer, n * b.inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) add(o, 0, b.inner);
    });
  }
}

/// Adds dy, blocks at `index` along dim, to the gradient d.
void scatter_gradient(GradRef d, int dim, const Tensor& index, const Tensor& dy, std::int64_t skip) {
  Tensor to = d.zeroed();
  const Tensor from = dy.contiguous();
  const auto add_to = [&](const Tensor& target, const Blocks& b) {
    visit_floating("scatter", dy.dtype(), [&]<class T>(Type<T>) {
      scatter_blocks(raw<const T>(from), raw<const std::int64_t>(index), index.numel(), skip, raw<T>(target),
                     b);
    });
  };
  if (const auto blocks = detail::blocks_of(to.shape(), to.strides(), dim, dim + 1))
    return add_to(to, *blocks);
  const Tensor fresh = zeros(to.shape(), to.dtype());
  add_to(fresh, detail::blocked(fresh, dim, dim + 1).blocks);
  to.add_(fresh);
}

/// The entries at the checked indices of dimension dim, in the given shape.
Tensor selected(const char* op, const Tensor& x, int dim, const Tensor& index, const Shape& shape) {
  const Tensor y = empty(shape, x.dtype());
  if (y.numel() == 0) return y;
  auto blocks = detail::blocks_of(x.shape(), x.strides(), dim, dim + 1);
  const Tensor from = blocks ? x : x.detach().contiguous();
  if (!blocks) blocks = detail::blocks_of(from.shape(), from.strides(), dim, dim + 1);
  visit_floating(op, x.dtype(), [&]<class T>(Type<T>) {
    gather_blocks(raw<const T>(from), *blocks, raw<const std::int64_t>(index), index.numel(), raw<T>(y));
  });
  return y;
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& ids, std::optional<std::int64_t> padding_idx) {
  check(weight.dim() == 2, "embedding: the weight must be [V, E], not {}", weight.shape());
  const std::int64_t rows = weight.size(0);
  std::int64_t padding = no_skip;
  if (padding_idx) {
    check(*padding_idx >= -rows && *padding_idx < rows, "embedding: padding_idx {} is outside {}..{}",
          *padding_idx, -rows, rows - 1);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  const Tensor at = checked("embedding", ids, rows);
  return record("embedding", selected("embedding", weight, 0, at, shape), {weight},
                [padding, at = Saved(at, "embedding")](const Tensor& dy, Grads& d) {
                  scatter_gradient(d[0], 0, at(), dy, padding);
                });
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  check(x.dim() > 0, "index_select: x has no dimension; unsqueeze(0) gives it one");
  check(index.dim() == 1, "index_select: the index must be [N], not {}; use gather or flatten it",
        index.shape());
  const int along = wrap_dim("index_select", dim, x.dim());
  Shape shape = x.shape();
  shape[along] = index.numel();
  const Tensor at = checked("index_select", index, x.size(along));
  return record("index_select", selected("index_select", x, along, at, shape), {x},
                [along, at = Saved(at, "index_select")](const Tensor& dy, Grads& d) {
                  scatter_gradient(d[0], along, at(), dy, no_skip);
                });
}

Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
  check(x.dim() > 0, "index_add: x has no dimension; unsqueeze(0) gives it one");
  check(index.dim() == 1, "index_add: the index must be [N], not {}", index.shape());
  check_same_dtype("index_add", x.dtype(), source.dtype());
  const int along = wrap_dim("index_add", dim, x.dim());
  Shape shape = x.shape();
  shape[along] = index.numel();
  check(source.shape() == shape, "index_add: the source is {}; {} entries along dimension {} of {} are {}",
        source.shape(), index.numel(), along, x.shape(), shape);
  const Tensor at = checked("index_add", index, x.size(along));
  return visit_floating("index_add", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor y = x.detach().clone();
    const Tensor from = source.detach().contiguous();
    scatter_blocks(raw<const T>(from), raw<const std::int64_t>(at), at.numel(), no_skip, raw<T>(y),
                   detail::blocked(y, along, along + 1).blocks);
    return record("index_add", y, {x, source},
                  [along, at = Saved(at, "index_add")](const Tensor& dy, Grads& d) {
                    if (auto dx = d[0]) dx.give(dy);
                    if (auto ds = d[1]) ds.give(index_select(dy, along, at()));
                  });
  });
}

namespace {

/// Calls f(i, j) for each element of a gather: its offset in x and its position in the contiguous `index`.
template <class F>
void each_gathered(const Shape& x_shape, const Strides& x_strides, int dim, const Tensor& index, const F& f) {
  const std::int64_t* const at = raw<const std::int64_t>(index);
  Strides steps = x_strides;
  const std::int64_t along = x_shape.empty() ? 0 : x_strides[dim];
  if (!x_shape.empty()) steps[dim] = 0;
  for_each_run<2>(index.shape(), {steps, index.strides()}, [&](auto offset, std::int64_t n, auto step) {
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t j = offset[1] + k * step[1];
      f(offset[0] + k * step[0] + at[j] * along, j);
    }
  });
}

}  // namespace

Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index) {
  const int along = wrap_dim("gather", dim, std::max(x.dim(), 1));
  check(index.dim() == x.dim(), "gather: the index {} must have the rank of {}", index.shape(), x.shape());
  for (int d = 0; d < x.dim(); ++d) {
    check(d == along || index.shape()[d] <= x.shape()[d], "gather: the index {} exceeds {} in dimension {}",
          index.shape(), x.shape(), d);
  }
  const Tensor at = checked("gather", index, x.dim() == 0 ? 1 : x.size(along));
  return visit_floating("gather", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor y = empty(index.shape(), x.dtype());
    each_gathered(
        x.shape(), x.strides(), along, at,
        [from = raw<const T>(x), to = raw<T>(y)](std::int64_t i, std::int64_t j) { to[j] = from[i]; });
    return record("gather", y, {x}, [along, at = Saved(at, "gather")](const Tensor& dy, Grads& d) {
      const Tensor from = dy.contiguous(), taken = at();
      const auto scatter = [&]<class Sum>(const Tensor& to, Type<Sum>) {
        each_gathered(to.shape(), to.strides(), along, taken,
                      [f = raw<const T>(from), t = raw<Sum>(to)](std::int64_t i, std::int64_t j) {
                        t[i] += static_cast<Sum>(f[j]);
                      });
      };
      Tensor to = d[0].zeroed();
      if (taken.dim() == 0 || taken.size(along) <= few) return scatter(to, Type<T>{});
      const Tensor sums = zeros(to.shape(), float64);
      scatter(sums, Type<double>{});
      to.add_(sums.to(to.dtype()));
    });
  });
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check(mask.dtype() == boolean, "masked_select: the mask is {}, not boolean; compare first",
        name(mask.dtype()));
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  const Tensor chosen = mask.expand(shape).contiguous();
  const bool* const keep = raw<const bool>(chosen);
  return visit_floating("masked_select", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor from = x.detach().expand(shape).contiguous();
    const Tensor y = empty({std::count(keep, keep + chosen.numel(), true)}, x.dtype());
    T* to = raw<T>(y);
    for (std::int64_t i = 0; i < chosen.numel(); ++i) {
      if (keep[i]) *to++ = raw<const T>(from)[i];
    }
    return record("masked_select", y, {x},
                  [chosen = Saved(chosen, "masked_select")](const Tensor& dy, Grads& d) {
                    const Tensor source = dy.contiguous();
                    const Tensor wide = zeros(chosen.shape(), dy.dtype());
                    const T* next = raw<const T>(source);
                    const bool* const kept = chosen.template data<bool>();
                    for (std::int64_t i = 0; i < wide.numel(); ++i) {
                      if (kept[i]) raw<T>(wide)[i] = *next++;
                    }
                    d[0].give(sum_to(wide, d[0].shape()));
                  });
  });
}

}  // namespace rill
