// The methods of Tensor that are ops: declared with Tensor, defined here, above it.
#include <rill/core/error.h>
#include <rill/core/ops.h>
#include <rill/core/tensor.h>

namespace rill {

Tensor Tensor::clone() const { return rill::clone(*this); }
Tensor Tensor::contiguous() const { return rill::contiguous(*this); }
Tensor Tensor::to(DType dtype) const { return rill::to(*this, dtype); }
Tensor Tensor::reshape(const Shape& shape) const { return rill::reshape(*this, shape); }
Tensor Tensor::flatten(std::int64_t start, std::int64_t end) const {
  return rill::flatten(*this, start, end);
}
Tensor Tensor::permute(const Dims& dims) const { return rill::permute(*this, dims); }
Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  return rill::transpose(*this, dim0, dim1);
}
Tensor Tensor::t() const {
  check(dim() == 2, "t: a tensor of shape {} is not a matrix; use transpose(dim0, dim1)", shape());
  return rill::transpose(*this, 0, 1);
}
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  return rill::narrow(*this, dim, start, length);
}
Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) const {
  return rill::slice(*this, dim, start, end, step);
}
Tensor Tensor::select(std::int64_t dim, std::int64_t index) const { return rill::select(*this, dim, index); }
Tensor Tensor::expand(const Shape& shape) const { return rill::expand(*this, shape); }
Tensor Tensor::squeeze(std::int64_t dim) const { return rill::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(std::int64_t dim) const { return rill::unsqueeze(*this, dim); }

}  // namespace rill
