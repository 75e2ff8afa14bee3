#include <rill/core/tensor.h>

#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>
#include <rill/core/random.h>
#include <rill/core/strided.h>

namespace rill {

void TensorImpl::destroy(TensorImpl* impl) noexcept {
  delete impl->hooks;
  impl->~TensorImpl();
  memory::deallocate(impl, sizeof(TensorImpl));
}

namespace {

Ref<TensorImpl> new_impl() {
  return Ref<TensorImpl>::adopt(new (memory::allocate(sizeof(TensorImpl))) TensorImpl);
}

bool is_row_major(const Shape& shape, const Strides& strides) noexcept {
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

}  // namespace

namespace detail {

Tensor make_view(Ref<Storage> storage, DType dtype, const Shape& shape, const Strides& strides,
                 std::int64_t offset) {
  Ref<TensorImpl> impl = new_impl();
  impl->dtype = dtype;
  impl->numel = numel(shape);
  impl->offset = offset;
  impl->shape = shape;
  // Empty tensors get canonical strides so that ops need not handle arbitrary ones.
  impl->strides = impl->numel == 0 ? contiguous_strides(shape) : strides;
  impl->contiguous = impl->numel == 0 || is_row_major(shape, strides);
  impl->storage = std::move(storage);
  return Tensor(std::move(impl));
}

}  // namespace detail

void Tensor::undefined() { fail("tensor: the tensor is undefined; assign one first"); }

// --- factories

Tensor empty(const Shape& shape, DType dtype) {
  Ref<TensorImpl> impl = new_impl();
  impl->dtype = dtype;
  impl->numel = numel(shape);
  std::int64_t bytes = 0;
  check(!__builtin_mul_overflow(impl->numel, static_cast<std::int64_t>(item_size(dtype)), &bytes),
        "empty: shape {} of {} exceeds 2^63 - 1 bytes", shape, name(dtype));
  impl->shape = shape;
  impl->strides = contiguous_strides(shape);
  impl->storage = Storage::create(static_cast<std::size_t>(bytes));
  return Tensor(std::move(impl));
}

Tensor full(const Shape& shape, double value, DType dtype) {
  check_representable("full", value, dtype);
  Tensor t = empty(shape, dtype);
  visit(dtype, [&]<class T>(Type<T>) { std::fill_n(detail::raw<T>(t), t.numel(), static_cast<T>(value)); });
  return t;
}

Tensor zeros(const Shape& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  std::fill_n(t.impl().storage->data(), t.impl().storage->bytes(), std::byte{0});
  return t;
}

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor scalar(double value, DType dtype) { return full({}, value, dtype); }
Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype()); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), x.dtype()); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), x.dtype()); }

Tensor arange(std::int64_t n, DType dtype) {
  check(n >= 0, "arange: n is {}; it must not be negative", n);
  check(dtype != boolean, "arange: dtype boolean is not supported; use int64");
  Tensor t = empty({n}, dtype);
  visit(dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < n; ++i) detail::raw<T>(t)[i] = static_cast<T>(i);
  });
  return t;
}

Tensor rand(const Shape& shape, Rng& rng, DType dtype) {
  Tensor t = empty(shape, dtype);
  visit_floating("rand", dtype,
                 [&]<class T>(Type<T>) { rng.fill_uniform(detail::raw<T>(t), t.numel(), T{0}, T{1}); });
  return t;
}

Tensor randn(const Shape& shape, Rng& rng, DType dtype) {
  Tensor t = empty(shape, dtype);
  visit_floating("randn", dtype,
                 [&]<class T>(Type<T>) { rng.fill_normal(detail::raw<T>(t), t.numel(), T{0}, T{1}); });
  return t;
}

namespace {
void check_count(std::size_t elements, const Shape& shape) {
  check(static_cast<std::int64_t>(elements) == numel(shape),
        "tensor: {} elements do not match shape {} of {} elements", elements, shape, numel(shape));
}
}  // namespace

namespace detail {

template <class T>
Tensor tensor_of(std::span<const T> elements, const Shape& shape) {
  check_count(elements.size(), shape);
  Tensor t = empty(shape, dtype_of<T>);
  std::copy(elements.begin(), elements.end(), raw<T>(t));
  return t;
}
template Tensor tensor_of(std::span<const float>, const Shape&);
template Tensor tensor_of(std::span<const double>, const Shape&);
template Tensor tensor_of(std::span<const std::int64_t>, const Shape&);
template Tensor tensor_of(std::span<const bool>, const Shape&);

Tensor tensor_of(const std::vector<bool>& elements, const Shape& shape) {
  check_count(elements.size(), shape);
  Tensor t = empty(shape, boolean);
  std::copy(elements.begin(), elements.end(), raw<bool>(t));
  return t;
}

}  // namespace detail

Tensor tensor(std::initializer_list<detail::Literal> elements, const Shape& shape) {
  check_count(elements.size(), shape);
  const auto has = [&](DType dtype) {
    return std::any_of(elements.begin(), elements.end(), [&](const auto& e) { return e.dtype() == dtype; });
  };
  const DType dtype = has(float64)                       ? float64
                      : has(float32) || !elements.size() ? float32
                      : has(int64)                       ? int64
                                                         : boolean;
  Tensor t = empty(shape, dtype);
  visit(dtype, [&]<class T>(Type<T>) {
    std::transform(elements.begin(), elements.end(), detail::raw<T>(t),
                   [](const detail::Literal& e) { return e.as<T>(); });
  });
  return t;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(numel()));
  visit(dtype(), [&]<class U>(Type<U>) {
    const U* from = data<U>();
    for_each_run<1>(shape(), {strides()}, [&](auto at, std::int64_t n, auto step) {
      for (std::int64_t i = 0; i < n; ++i) out.push_back(convert<T>(from[at[0] + i * step[0]]));
    });
  });
  return out;
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

// --- autograd state

Tensor& Tensor::set_requires_grad(bool requires_grad) {
  check(is_leaf(), "set_requires_grad: the tensor is a result of '{}', not a leaf; use .detach()", op_name());
  check(!requires_grad || is_floating(dtype()),
        "set_requires_grad: dtype {} has no gradients; use .to(float32)", name(dtype()));
  check(
      !requires_grad || is_contiguous(),
      "set_requires_grad: a view of shape {} with strides {} is not contiguous; use .clone(), or call it on "
      "the base tensor",
      shape(), strides());
  impl().requires_grad = requires_grad;
  return *this;
}

Tensor Tensor::grad() const { return impl().grad ? Tensor(impl().grad) : Tensor(); }

void Tensor::set_grad(const Tensor& grad) {
  check(grad.shape() == shape() && grad.dtype() == dtype(),
        "set_grad: the gradient is {} {}, but the tensor is {} {}", name(grad.dtype()), grad.shape(),
        name(dtype()), shape());
  impl().grad = grad.detach().contiguous().clone().ref();
}

void Tensor::zero_grad() { impl().grad = nullptr; }

Tensor Tensor::detach() const {
  return detail::make_view(impl().storage, dtype(), shape(), strides(), impl().offset);
}

}  // namespace rill
