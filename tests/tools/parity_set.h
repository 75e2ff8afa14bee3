/// Small reference sets for tests of rill-parity, written to a temporary folder.
#pragma once

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/io/safetensors.h>

namespace test {

/// Tensors of one case by role: {"in", "x", …}.
struct RoleTensor {
  std::string role, name;
  rill::Tensor tensor;
};

class ParitySet {
 public:
  ParitySet() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rill-parity-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create " + pattern);
    folder_ = pattern;
    index_ = {{"format", 1}, {"cases", nlohmann::json::array()}};
  }
  ~ParitySet() { std::filesystem::remove_all(folder_); }
  ParitySet(const ParitySet&) = delete;
  ParitySet& operator=(const ParitySet&) = delete;

  /// Adds a case; the entry can be changed until it is written.
  nlohmann::json& add(const std::string& kind, const std::string& op, const nlohmann::json& args,
                      const std::vector<RoleTensor>& tensors) {
    const std::string id = "case_" + std::to_string(index_["cases"].size());
    nlohmann::json names = nlohmann::json::object();
    for (const RoleTensor& t : tensors) {
      names[t.role].push_back(t.name);
      tensors_.emplace_back(id + "/" + t.role + "." + t.name, t.tensor.detach());
    }
    index_["cases"].push_back({{"id", id},
                               {"file", "numbers.safetensors"},
                               {"prefix", id + "/"},
                               {"kind", kind},
                               {"op", op},
                               {"args", args},
                               {"tensors", names},
                               {"tol", {{"rtol", 1e-9}, {"atol", 1e-11}}}});
    return index_["cases"].back();
  }

  nlohmann::json& index() { return index_; }

  /// Writes the files and returns their folder.
  std::string write() const {
    rill::save_safetensors(folder_ / "numbers.safetensors", tensors_);
    write_index(index_.dump());
    return folder_.string();
  }
  void write_index(const std::string& text) const { std::ofstream(folder_ / "index.json") << text; }
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  nlohmann::json index_;
  rill::NamedTensors tensors_;
};

}  // namespace test
