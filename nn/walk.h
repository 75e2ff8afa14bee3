/// The members of a module, for everything that iterates over them. Internal.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rill/nn/module.h>

namespace rill::nn::detail {

/// A named tensor of a module: the leaf that stores it and the named view of the leaf.
struct Entry {
  std::string name;
  Tensor* handle;  ///< the module's handle of the leaf
  Tensor leaf;
  Tensor view;
  bool trained;  ///< a parameter; otherwise a buffer
};

/// All members of a module, in order. Views are recorded if the caller's thread is recording.
class Walk final : public Members {
 public:
  /// `members` is not const, since loading and converting modify the members. Read-only iteration over a
  /// const module also goes through here, the only place that casts constness away.
  explicit Walk(const Module& root) { (*this)("", const_cast<Module&>(root)); }

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, Counter>> counters;
  std::vector<Module*> modules;

  /// The first entry with the same tensor as entry i, or i itself.
  std::size_t first_of(std::size_t i) const;
  /// Every leaf once, and every buffer if requested.
  std::vector<Tensor> arrays(bool with_buffers) const;

 protected:
  void on_parameter(const std::string& name, Tensor& leaf, const View* view) override;
  void on_buffer(const std::string& name, Tensor& buffer) override;
  void on_counter(const std::string& name, Counter counter) override;
  void on_module(const std::string&, Module& module) override { modules.push_back(&module); }

 private:
  void check_new(const std::string& name);
  std::set<std::string> names_;
};

/// Converts the tensor to `dtype` for all handles that share it.
void convert(const Tensor& array, DType dtype);

/// Whether two tensors refer to the same elements of one storage.
bool same_elements(const Tensor& a, const Tensor& b);

/// 'a', 'b', …
std::string quoted(const std::vector<std::string>& names);

}  // namespace rill::nn::detail
