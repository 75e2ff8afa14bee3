#include <rill/core/packed_matrix.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace rill {
namespace {

/// The packed forms of the views of one storage, all of one version.
template <class T>
class PackedForms final : public StorageCache {
 public:
  std::shared_ptr<const PackedMatrix<T>> get(const Tensor& w) {
    const TensorImpl& impl = w.impl();
    std::lock_guard lock(mutex_);
    if (version_ != impl.storage->version()) {
      forms_.clear();
      version_ = impl.storage->version();
    }
    const auto found = std::find_if(forms_.begin(), forms_.end(), [&](const Form& form) {
      return form.offset == impl.offset && form.shape == impl.shape && form.strides == impl.strides;
    });
    if (found != forms_.end()) return found->packed;
    const bool transposed = impl.strides[1] != 1 && impl.shape[1] != 1;
    const std::int64_t ld = std::max<std::int64_t>(transposed ? impl.strides[1] : impl.strides[0], 1);
    auto packed = std::make_shared<const PackedMatrix<T>>(impl.shape[0], impl.shape[1], transposed,
                                                          detail::raw<const T>(w), ld);
    forms_.push_back({impl.offset, impl.shape, impl.strides, packed});
    return packed;
  }

 private:
  struct Form {
    std::int64_t offset;
    Shape shape;
    Strides strides;
    std::shared_ptr<const PackedMatrix<T>> packed;
  };

  std::mutex mutex_;
  std::uint32_t version_ = 0;
  std::vector<Form> forms_;
};

/// The cache of w's storage, made on first use. A storage holds one dtype, so one cache type.
template <class T>
PackedForms<T>& forms_of(const Tensor& w) {
  std::atomic<StorageCache*>& slot = w.impl().storage->cache();
  StorageCache* present = slot.load(std::memory_order_acquire);
  if (!present) {
    auto fresh = std::make_unique<PackedForms<T>>();
    if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
  }
  return static_cast<PackedForms<T>&>(*present);
}

}  // namespace

template <class T>
std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w) {
  check(w.dim() == 2, "packed: a tensor of shape {} is not a matrix", w.shape());
  check(w.dtype() == dtype_of<T>, "packed: the matrix is {}, wanted {}", name(w.dtype()), name(dtype_of<T>));
  check(w.stride(0) == 1 || w.stride(1) == 1 || w.size(0) <= 1 || w.size(1) <= 1,
        "packed: a view with strides {} has no unit stride; use .contiguous()", w.strides());
  return forms_of<T>(w).get(w);
}

template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&);
template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&);

}  // namespace rill
