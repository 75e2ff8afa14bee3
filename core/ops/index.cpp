#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>
#include <rill/core/strided.h>

#include <algorithm>
#include <string>

namespace rill {

using detail::Blocks;
using detail::raw;

namespace {

constexpr std::int64_t no_skip = -1;

/// Where element i of a tensor stands, for messages: "row 2" of one dimension, "position [0, 2]" of more.
std::string place(std::int64_t i, const Shape& shape) {
  if (shape.size() < 2) return fmt::format("row {}", i);
  Dims position = shape;
  for (int d = shape.size() - 1; d >= 0; --d) {
    position[d] = i % shape[d];
    i /= shape[d];
  }
  return fmt::format("position {}", position);
}

/// The indices, contiguous and outside the graph; throws for another dtype and for one outside 0 … size - 1.
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

/// Adds from [outer, n, inner] to the blocks at index [n] of `to`, except at `skip`. The order of the sums is
/// that of the index for any number of threads: they share out the outer blocks or the columns.
template <class T>
void scatter_blocks(const T* from, const std::int64_t* index, std::int64_t n, std::int64_t skip, T* to,
                    const Blocks& b) {
  const auto add = [&](std::int64_t o, std::int64_t column, std::int64_t columns) {
    for (std::int64_t k = 0; k < n; ++k) {
      if (index[k] == skip) continue;
      const T* const row = from + (o * n + k) * b.inner + column;
      T* const target = to + o * b.outer_stride + index[k] * b.stride + column * b.inner_stride;
      if (b.inner_stride == 1) {
        kernels::sum_rows(1, columns, row, columns, T(1), target);
      } else {
        for (std::int64_t j = 0; j < columns; ++j) target[j * b.inner_stride] += row[j];
      }
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

/// Calls f(i, j) for each element that gather takes: its offset in x and its position in the contiguous
/// `index`.
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
      const Tensor from = dy.contiguous();
      const Tensor to = d[0].zeroed();
      each_gathered(
          to.shape(), to.strides(), along, at(),
          [f = raw<const T>(from), t = raw<T>(to)](std::int64_t i, std::int64_t j) { t[i] += f[j]; });
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
