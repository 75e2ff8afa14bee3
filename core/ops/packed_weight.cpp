#include <rill/core/ops/packed_weight.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include <rill/core/ops/matmul_into.h>
#include <rill/core/parallel/fork.h>

namespace rill {
namespace {

/// Guards the lists of all storages while one is read or modified, but not while a matrix is packed.
constinit std::mutex cache_mutex;
[[maybe_unused]] const bool fork_handlers_registered = detail::lock_across_forks<cache_mutex>();

/// The packed forms of the views of one storage, for its current contents.
template <class T>
class PackedViews final : public StorageCache {
 public:
  void drop() noexcept override {
    std::vector<View> dropped;  // freed after unlocking
    std::lock_guard lock(cache_mutex);
    dropped.swap(views_);
  }

  std::shared_ptr<const PackedMatrix<T>> get(const Tensor& w, std::int64_t rows) {
    const TensorImpl& impl = w.impl();
    View view{impl.offset, impl.shape, impl.strides, sizeof(T) == 4 ? row_granularity(rows) : 1, nullptr};
    {
      std::lock_guard lock(cache_mutex);
      if (auto packed = find(view)) return packed;
    }
    const std::uint32_t version = impl.storage->version();
    const auto matrix = matrix_view<const T>(w);
    const Tensor copy = matrix ? Tensor() : w.detach().contiguous();
    view.packed =
        std::make_shared<const PackedMatrix<T>>(matrix ? *matrix : *matrix_view<const T>(copy), rows);
    std::lock_guard lock(cache_mutex);
    if (auto packed = find(view)) return packed;  // another thread was faster
    if (impl.storage->version() == version) views_.push_back(view);
    return view.packed;
  }

 private:
  struct View {
    std::int64_t offset;
    Shape shape;
    Strides strides;
    std::int64_t granularity;  ///< of the rows asked for
    std::shared_ptr<const PackedMatrix<T>> packed;
  };

  /// The packed form of the same view for the same granularity, or null.
  std::shared_ptr<const PackedMatrix<T>> find(const View& view) const {
    const auto found = std::find_if(views_.begin(), views_.end(), [&](const View& present) {
      return present.offset == view.offset && present.shape == view.shape &&
             present.strides == view.strides && present.granularity == view.granularity;
    });
    return found != views_.end() ? found->packed : nullptr;
  }

  std::vector<View> views_;
};

/// The cache of w's storage, created on first use. A storage has one dtype, hence one type of cache.
template <class T>
PackedViews<T>& cache_of(const Tensor& w) {
  std::atomic<StorageCache*>& slot = w.impl().storage->cache();
  StorageCache* present = slot.load(std::memory_order_acquire);
  if (!present) {
    auto fresh = std::make_unique<PackedViews<T>>();
    if (slot.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
      return *fresh.release();
  }
  return static_cast<PackedViews<T>&>(*present);
}

}  // namespace

template <class T>
std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w, std::int64_t rows) {
  check(w.dim() == 2, "packed: a tensor of shape {} is not a matrix", w.shape());
  check(w.dtype() == dtype_of<T>, "packed: the matrix is {}, wanted {}", name(w.dtype()), name(dtype_of<T>));
  return cache_of<T>(w).get(w, rows);
}

template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&, std::int64_t);
template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&, std::int64_t);

}  // namespace rill
