/// Views: other sizes and strides on the same data. The gradient is the inverse view.
#include <algorithm>
#include <optional>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill {
namespace {

Tensor view_of(const Tensor& x, const Shape& shape, const Strides& strides, std::int64_t offset) {
  return detail::make_view(x.impl().storage, x.dtype(), shape, strides, x.impl().offset + offset);
}

/// The distance in memory from entry 0 to entry i of a dimension; without elements strides are meaningless.
std::int64_t offset_of(const Tensor& x, int dim, std::int64_t i) {
  return x.numel() == 0 ? 0 : i * x.strides()[dim];
}

/// Records a view that takes some of x's elements: their gradient is added to zeros of x's shape at the same
/// positions.
template <class View>
Tensor record_part(const char* name, const Tensor& x, View view) {
  return record(name, view(x), {x}, [view](const Tensor& dy, Grads& d) { view(d[0].zeroed()).add_(dy); });
}

/// The sizes with -1 replaced; throws if the number of elements does not match.
Shape resolve_shape(const Tensor& x, const Shape& wanted) {
  Shape shape = wanted;
  int unknown = -1;
  std::int64_t known = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      check(unknown < 0, "reshape: {} has more than one -1", wanted);
      unknown = i;
      continue;
    }
    check(shape[i] >= 0, "reshape: {} has a negative size", wanted);
    check(!__builtin_mul_overflow(known, shape[i], &known), "reshape: {} has more than 2^63 - 1 elements",
          wanted);
  }
  if (unknown >= 0) {
    check(known > 0, "reshape: -1 in {} is ambiguous with a size of 0; give all sizes", wanted);
    shape[unknown] = x.numel() / known;
    known *= shape[unknown];
  }
  check(known == x.numel(), "reshape: {} elements of shape {} do not fit {}", x.numel(), x.shape(), wanted);
  return shape;
}

/// The strides that give x the new shape without copying, if possible: each run of dimensions that is merged
/// or split must be evenly spaced in memory.
std::optional<Strides> reshape_strides(const Tensor& x, const Shape& shape) {
  if (x.is_contiguous()) return contiguous_strides(shape);
  Strides strides = Strides::filled(shape.size(), 0);
  int to = shape.size() - 1;
  std::int64_t run = 1;                                  // elements of the old run so far
  std::int64_t base = x.dim() ? x.strides().back() : 1;  // stride of its innermost element
  std::int64_t taken = 1;                                // elements of the new dimensions in the run
  for (int from = x.dim() - 1; from >= 0; --from) {
    run *= x.shape()[from];
    const bool ends = from == 0 || (x.shape()[from - 1] != 1 && x.strides()[from - 1] != run * base);
    if (!ends) continue;
    while (to >= 0 && (taken < run || shape[to] == 1)) {
      strides[to] = taken * base;
      taken *= shape[to--];
    }
    if (taken != run) return std::nullopt;
    if (from > 0) {
      base = x.strides()[from - 1];
      run = taken = 1;
    }
  }
  return strides;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& wanted) {
  const Shape shape = resolve_shape(x, wanted);
  const auto strides = reshape_strides(x, shape);
  if (!strides) return reshape(contiguous(x), shape);
  return record("reshape", view_of(x, shape, *strides, 0), {x}, [](const Tensor& dy, Grads& d) {
    auto dx = d[0];
    dx.give(reshape(dy, dx.shape()));
  });
}

Tensor flatten(const Tensor& x, std::int64_t start, std::int64_t end) {
  const int first = wrap_dim("flatten", start, std::max(x.dim(), 1));
  const int last = wrap_dim("flatten", end, std::max(x.dim(), 1));
  check(first <= last, "flatten: start {} lies behind end {}", start, end);
  Shape shape;
  std::int64_t merged = 1;
  for (int i = 0; i < x.dim(); ++i) {
    if (i >= first && i <= last) merged = checked_mul("flatten", merged, x.shape()[i]);
    if (i < first || i > last) shape.push_back(x.shape()[i]);
    if (i == last) shape.push_back(merged);
  }
  return reshape(x, x.dim() == 0 ? Shape{1} : shape);
}

Tensor permute(const Tensor& x, const Dims& dims) {
  check(dims.size() == x.dim(), "permute: {} names {} dimensions, the tensor of shape {} has {}", dims,
        dims.size(), x.shape(), x.dim());
  Shape shape = x.shape();
  Strides strides = x.strides();
  Dims inverse = Dims::filled(x.dim(), -1);
  for (int i = 0; i < x.dim(); ++i) {
    const int from = wrap_dim("permute", dims[i], x.dim());
    check(inverse[from] < 0, "permute: {} names dimension {} twice", dims, from);
    inverse[from] = i;
    shape[i] = x.shape()[from];
    strides[i] = x.strides()[from];
  }
  return record("permute", view_of(x, shape, strides, 0), {x},
                [inverse](const Tensor& dy, Grads& d) { d[0].give(permute(dy, inverse)); });
}

Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1) {
  const int a = wrap_dim("transpose", dim0, std::max(x.dim(), 1));
  const int b = wrap_dim("transpose", dim1, std::max(x.dim(), 1));
  Shape shape = x.shape();
  Strides strides = x.strides();
  if (a != b) {
    std::swap(shape[a], shape[b]);
    std::swap(strides[a], strides[b]);
  }
  return record("transpose", view_of(x, shape, strides, 0), {x},
                [a, b](const Tensor& dy, Grads& d) { d[0].give(transpose(dy, a, b)); });
}

Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  check(x.dim() > 0, "narrow: a tensor without dimensions has nothing to narrow");
  const int at = wrap_dim("narrow", dim, x.dim());
  const std::int64_t size = x.shape()[at];
  const std::int64_t first = start < 0 ? start + size : start;
  check(first >= 0 && length >= 0 && length <= size - first,
        "narrow: start {} and length {} leave 0..{} of dimension {} of {}", start, length, size, dim,
        x.shape());
  return record_part("narrow", x, [at, first, length](const Tensor& t) {
    Shape shape = t.shape();
    shape[at] = length;
    return view_of(t, shape, t.strides(), offset_of(t, at, first));
  });
}

Tensor slice(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  check(x.dim() > 0, "slice: a tensor without dimensions has nothing to slice");
  check(step > 0, "slice: step {} must be positive; use flip to reverse", step);
  const int at = wrap_dim("slice", dim, x.dim());
  const std::int64_t size = x.shape()[at];
  const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
  const std::int64_t last = std::clamp<std::int64_t>(end < 0 ? end + size : end, first, size);
  return record_part("slice", x, [at, first, last, step](const Tensor& t) {
    Shape shape = t.shape();
    Strides strides = t.strides();
    shape[at] = last == first ? 0 : (last - first - 1) / step + 1;
    if (shape[at] > 1 && t.numel() > 0) strides[at] *= step;
    return view_of(t, shape, strides, offset_of(t, at, first));
  });
}

Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index) {
  check(x.dim() > 0, "select: a tensor without dimensions has nothing to select");
  const int at = wrap_dim("select", dim, x.dim());
  const std::int64_t size = x.shape()[at];
  check(index >= -size && index < size, "select: index {} is outside dimension {} of {}", index, dim,
        x.shape());
  const std::int64_t i = index < 0 ? index + size : index;
  return record_part("select", x, [at, i](const Tensor& t) {
    Shape shape = t.shape();
    Strides strides = t.strides();
    shape.erase(at);
    strides.erase(at);
    return view_of(t, shape, strides, offset_of(t, at, i));
  });
}

Tensor expand(const Tensor& x, const Shape& wanted) {
  check(wanted.size() >= x.dim(), "expand: {} has fewer dimensions than the tensor of shape {}", wanted,
        x.shape());
  Shape shape = wanted;
  const int skip = wanted.size() - x.dim();
  for (int i = 0; i < shape.size(); ++i) {
    const std::int64_t have = i < skip ? 1 : x.shape()[i - skip];
    if (shape[i] == -1 && i >= skip) shape[i] = have;
    check(shape[i] >= 0 && (shape[i] == have || have == 1),
          "expand: shape {} does not expand to {} (size {} at dimension {})", x.shape(), wanted, have, i);
  }
  Strides strides = Strides::filled(shape.size(), 0);
  for (int i = skip; i < shape.size(); ++i) strides[i] = x.shape()[i - skip] == 1 ? 0 : x.strides()[i - skip];
  return record("expand", view_of(x, shape, strides, 0), {x}, [](const Tensor& dy, Grads& d) {
    auto dx = d[0];
    dx.give(sum_to(dy, dx.shape()));
  });
}

namespace {
/// A view that only adds or drops dimensions of size 1.
Tensor reshape_ones(const char* name, const Tensor& x, const Shape& shape, const Strides& strides) {
  return record(name, view_of(x, shape, strides, 0), {x}, [](const Tensor& dy, Grads& d) {
    auto dx = d[0];
    dx.give(reshape(dy, dx.shape()));
  });
}
}  // namespace

Tensor squeeze(const Tensor& x, std::int64_t dim) {
  const int at = wrap_dim("squeeze", dim, std::max(x.dim(), 1));
  Shape shape = x.shape();
  Strides strides = x.strides();
  if (x.dim() > 0 && shape[at] == 1) {
    shape.erase(at);
    strides.erase(at);
  }
  return reshape_ones("squeeze", x, shape, strides);
}

Tensor squeeze(const Tensor& x) {
  Shape shape;
  Strides strides;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] == 1) continue;
    shape.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  return reshape_ones("squeeze", x, shape, strides);
}

Tensor unsqueeze(const Tensor& x, std::int64_t dim) {
  const int at = wrap_dim("unsqueeze", dim, x.dim() + 1);
  Shape shape = x.shape();
  Strides strides = x.strides();
  const std::int64_t stride = at < x.dim() && x.numel() > 0 ? shape[at] * strides[at] : 1;
  shape.insert(at, 1);
  strides.insert(at, stride);
  return reshape_ones("unsqueeze", x, shape, strides);
}

namespace {

/// The size of x along dim, for split and chunk.
std::int64_t size_to_split(const char* op, const Tensor& x, std::int64_t dim) {
  check(x.dim() > 0, "{}: a tensor without dimensions has nothing to split", op);
  return x.shape()[wrap_dim(op, dim, x.dim())];
}

/// Chunks of `size` entries of dimension dim, which has `total`; one empty chunk if that is 0.
std::vector<Tensor> equal_chunks(const Tensor& x, std::int64_t size, std::int64_t total, std::int64_t dim) {
  std::vector<Tensor> chunks;
  std::int64_t start = 0;
  do {
    const std::int64_t length = std::min(size, total - start);
    chunks.push_back(narrow(x, dim, start, length));
    start += length;
  } while (start < total);
  return chunks;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim) {
  const std::int64_t along = size_to_split("split", x, dim);
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    check(size >= 0, "split: size {} is negative", size);
    total = checked_add("split", total, size);
  }
  check(total == along, "split: the sizes add up to {}, dimension {} of {} has {}", total, dim, x.shape(),
        along);
  std::vector<Tensor> chunks;
  chunks.reserve(sizes.size());
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    chunks.push_back(narrow(x, dim, start, size));
    start += size;
  }
  return chunks;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim) {
  check(size > 0, "split: size {} must be positive", size);
  return equal_chunks(x, size, size_to_split("split", x, dim), dim);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim) {
  check(chunks > 0, "chunk: {} chunks; at least 1", chunks);
  const std::int64_t total = size_to_split("chunk", x, dim);
  return equal_chunks(x, std::max<std::int64_t>(ceil_div(total, chunks), 1), total, dim);
}

}  // namespace rill
