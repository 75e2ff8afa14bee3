/// All that a module lists, for what is a walk over it. Internal.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rill/nn/module.h>

namespace rill::nn::detail {

/// A named tensor of a module: the leaf that stores it and the view of it that bears the name.
struct Entry {
  std::string name;
  Tensor* handle;  ///< the module's own, on the leaf
  Tensor leaf;
  Tensor view;
  bool trained;  ///< a parameter; otherwise a buffer
};

/// Everything a module lists, in order. Views are recorded or not as the mode of the caller is.
class Walk final : public Members {
 public:
  /// `members` is not const, since walks that load or convert change what it lists. Those that only read come
  /// through here from a const module, too; this is the one place where its constness is cast away.
  explicit Walk(const Module& root) { (*this)("", const_cast<Module&>(root)); }

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, Counter>> counters;
  std::vector<Module*> modules;

  /// The entry that entry i repeats under another name, or i itself.
  std::size_t first_of(std::size_t i) const;
  /// Every leaf once, and every buffer if asked for.
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

/// Makes the tensor hold `dtype`, whoever shares its handle.
void convert(const Tensor& array, DType dtype);

/// Whether two tensors are the same elements of one storage.
bool same_elements(const Tensor& a, const Tensor& b);

/// 'a', 'b', …
std::string quoted(const std::vector<std::string>& names);

}  // namespace rill::nn::detail
