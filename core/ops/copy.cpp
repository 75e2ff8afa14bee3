/// Ops that copy elements to another order, tensor or dtype.
#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill {

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty_like(x);
  y.copy_(x.detach());
  return record("contiguous", std::move(y), {x}, [](const Tensor& dy, Grads& d) { d[0].give(dy); });
}

Tensor clone(const Tensor& x) {
  Tensor y = empty_like(x);
  y.copy_(x.detach());
  return record("clone", std::move(y), {x}, [](const Tensor& dy, Grads& d) { d[0].give(dy); });
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty(x.shape(), dtype);
  y.copy_(x.detach());
  if (!is_floating(dtype)) return y;
  return record("to", std::move(y), {x}, [](const Tensor& dy, Grads& d) {
    auto dx = d[0];
    dx.give(to(dy, dx.dtype()));
  });
}

namespace {

/// The shape of `tensors` concatenated along dimension `at`; throws if they do not match.
Shape concat_shape(const std::vector<Tensor>& tensors, int at) {
  const Tensor& first = tensors.front();
  Shape shape = first.shape();
  shape[at] = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check(t.dtype() == first.dtype(), "cat: dtypes {} and {} differ (tensors 0 and {}); use .to",
          name(first.dtype()), name(t.dtype()), i);
    bool fits = t.dim() == first.dim();
    for (int d = 0; fits && d < t.dim(); ++d) fits = d == at || t.shape()[d] == first.shape()[d];
    check(fits, "cat: shapes {} and {} (tensor {}) differ outside dimension {}", first.shape(), t.shape(), i,
          at);
    shape[at] = checked_add("cat", shape[at], t.shape()[at]);
  }
  return shape;
}

std::vector<TensorRef> references(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, std::int64_t dim) {
  check(!tensors.empty(), "cat: no tensors");
  check(tensors.front().dim() > 0, "cat: a tensor without dimensions cannot be concatenated; use stack");
  const int at = wrap_dim("cat", dim, tensors.front().dim());
  Tensor y = empty(concat_shape(tensors, at), tensors.front().dtype());
  std::int64_t start = 0;
  {
    const NoGrad no_grad;
    for (const Tensor& t : tensors) {
      narrow(y, at, start, t.shape()[at]).copy_(t.detach());
      start += t.shape()[at];
    }
  }
  return record("cat", std::move(y), references(tensors),
                [at, n = static_cast<int>(tensors.size()), sizes = [&] {
                  std::vector<std::int64_t> list;
                  for (const Tensor& t : tensors) list.push_back(t.shape()[at]);
                  return list;
                }()](const Tensor& dy, Grads& d) {
                  std::int64_t from = 0;
                  for (int i = 0; i < n; ++i) {
                    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
                    if (auto dx = d[i]) dx.give(narrow(dy, at, from, size));
                    from += size;
                  }
                });
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dim) {
  check(!tensors.empty(), "stack: no tensors");
  const int at = wrap_dim("stack", dim, tensors.front().dim() + 1);
  std::vector<Tensor> wide;
  wide.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    check(t.shape() == tensors.front().shape(), "stack: shapes {} and {} differ", tensors.front().shape(),
          t.shape());
    check_same_dtype("stack", tensors.front().dtype(), t.dtype());
    wide.push_back(unsqueeze(t, at));
  }
  return cat(wide, at);
}

Tensor flip(const Tensor& x, const Dims& dims) {
  Strides strides = x.strides();
  std::int64_t last = 0;  // the offset of the element that becomes the first
  std::uint32_t flipped = 0;
  for (std::int64_t d : dims) {
    const int at = wrap_dim("flip", d, x.dim());
    check(x.dim() > 0 && !(flipped >> at & 1), "flip: {} names dimension {} twice", dims, at);
    flipped |= 1u << at;
    if (x.numel() > 0) last += (x.shape()[at] - 1) * strides[at];
    strides[at] = -strides[at];
  }
  Tensor y = empty_like(x);
  y.copy_(detail::make_view(x.impl().storage, x.dtype(), x.shape(), strides, x.impl().offset + last));
  return record("flip", std::move(y), {x}, [dims](const Tensor& dy, Grads& d) { d[0].give(flip(dy, dims)); });
}

Tensor repeat(const Tensor& x, const Dims& repeats) {
  check(repeats.size() >= x.dim(), "repeat: {} names fewer dimensions than the tensor of shape {} has",
        repeats, x.shape());
  Shape shape = Shape::filled(repeats.size() - x.dim(), 1);
  for (const std::int64_t size : x.shape()) shape.push_back(size);
  for (const std::int64_t count : repeats) check(count >= 0, "repeat: {} has a negative count", repeats);
  Tensor y = reshape(x, shape);
  // From the last dimension on, [..., s, ...] is [outer, 1, inner], expanded to [outer, count, inner].
  std::int64_t inner = 1;
  for (int d = repeats.size() - 1; d >= 0; --d) {
    const std::int64_t count = repeats[d];
    std::int64_t outer = 1;
    for (int i = 0; i < d; ++i) outer = checked_mul("repeat", outer, shape[i]);
    const std::int64_t tile = checked_mul("repeat", inner, shape[d]);
    inner = checked_mul("repeat", tile, count);
    shape[d] = checked_mul("repeat", shape[d], count);
    if (count != 1) y = reshape(expand(reshape(y, {outer, 1, tile}), {outer, count, tile}), shape);
  }
  return y;
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  check(x.dim() >= 2, "tril: a tensor of shape {} has no matrices", x.shape());
  Tensor above = zeros({x.size(-2), x.size(-1)}, boolean);
  bool* mask = above.mutable_data<bool>();
  for (std::int64_t i = 0; i < x.size(-2); ++i) {
    for (std::int64_t j = 0; j < x.size(-1); ++j) mask[i * x.size(-1) + j] = j - i > diagonal;
  }
  return masked_fill(x, above, 0);
}

}  // namespace rill
