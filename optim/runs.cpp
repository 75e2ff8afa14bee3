#include <rill/optim/runs.h>

#include <functional>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <rill/core/strided.h>

namespace rill::optim::detail {
namespace {

/// The dimensions from the farthest apart in memory to the nearest.
std::vector<int> memory_order(const Shape& shape, const Strides& strides) {
  std::vector<int> order(static_cast<std::size_t>(shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  return order;
}

Dims permuted(const Dims& dims, const std::vector<int>& order) {
  Dims out;
  for (int d : order) out.push_back(dims[d]);
  return out;
}

}  // namespace

Strides dense_strides(const Shape& shape, const Strides& strides) {
  const std::vector<int> order = memory_order(shape, strides);
  const Strides dense = contiguous_strides(permuted(shape, order));
  Strides out = strides;
  for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = dense[static_cast<std::int64_t>(i)];
  return out;
}

Runs::Runs(const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const Shape& shape = tensors[i].shape();
    const std::vector<int> order = memory_order(shape, tensors[i].strides());
    for_each_run<1>(permuted(shape, order), {permuted(tensors[i].strides(), order)},
                    [&](const auto& at, std::int64_t n, const auto& step) {
                      const bool dense = step[0] == 1 || n == 1;
                      for (std::int64_t k = 0; k < (dense ? 1 : n); ++k) {
                        runs_.push_back({.tensor = i, .offset = at[0] + k * step[0], .size = dense ? n : 1});
                      }
                    });
  }
  starts_.resize(tensors.size());
  place();
}

void Runs::place() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (i == 0 || runs_[i].tensor != runs_[i - 1].tensor) {
      total_ = (total_ + alignment - 1) / alignment * alignment;
      starts_[runs_[i].tensor] = total_;
    }
    runs_[i].start = total_;
    total_ += runs_[i].size;
  }
}

/// The runs' indices by storage, in the order in which the tensors name them, and by place there: an order
/// that is the same in every process.
std::vector<std::size_t> Runs::by_address(const std::vector<Tensor>& tensors) const {
  std::unordered_map<const Storage*, std::size_t> rank;
  using Key = std::tuple<std::size_t, const std::byte*, std::size_t>;
  std::vector<Key> keys;
  keys.reserve(runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Tensor& t = tensors[runs_[i].tensor];
    const std::size_t storage = rank.try_emplace(t.ref()->storage.get(), rank.size()).first->second;
    keys.emplace_back(storage, address(t, runs_[i].offset), i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::size_t> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(std::get<2>(key));
  return order;
}

std::optional<std::pair<std::size_t, std::size_t>> Runs::overlap(const std::vector<Tensor>& tensors) const {
  const std::vector<std::size_t> order = by_address(tensors);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Run& before = runs_[order[i - 1]];
    const Run& run = runs_[order[i]];
    const Tensor& a = tensors[before.tensor];
    const Tensor& b = tensors[run.tensor];
    if (a.ref()->storage.get() == b.ref()->storage.get() &&
        address(b, run.offset) < address(a, before.offset + before.size)) {
      return std::minmax(before.tensor, run.tensor);
    }
  }
  return std::nullopt;
}

Runs Runs::without_repeats(const std::vector<Tensor>& tensors) {
  const Runs all(tensors);
  Runs out;
  out.starts_.resize(tensors.size());
  const Storage* storage = nullptr;
  const std::byte* covered = nullptr;  // up to here the numbers of `storage` are taken
  for (std::size_t i : all.by_address(tensors)) {
    Run run = all.runs_[i];
    const Tensor& t = tensors[run.tensor];
    const std::byte* end = address(t, run.offset + run.size);
    if (t.ref()->storage.get() == storage && address(t, run.offset) <= covered) {
      // The rest continues the last run: the views of one array become one run again.
      const auto item = static_cast<std::int64_t>(item_size(t.dtype()));
      if (end > covered) out.runs_.back().size += (end - covered) / item;
      covered = std::max(covered, end);
      continue;
    }
    storage = t.ref()->storage.get();
    covered = end;
    out.runs_.push_back(run);
  }
  out.place();
  return out;
}

}  // namespace rill::optim::detail
