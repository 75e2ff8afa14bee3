#include <translator/train/checkpoint.h>

#include <string_view>
#include <utility>
#include <vector>

#include <rill/core/error.h>

namespace translator {
namespace {

using rill::NamedTensors;

void append(NamedTensors& to, std::string_view prefix, const NamedTensors& from) {
  for (const auto& [name, tensor] : from) to.emplace_back(std::string(prefix) + name, tensor);
}

NamedTensors with_prefix(const NamedTensors& all, std::string_view prefix) {
  NamedTensors out;
  for (const auto& [name, tensor] : all) {
    if (name.starts_with(prefix)) out.emplace_back(name.substr(prefix.size()), tensor);
  }
  return out;
}

nlohmann::json metadata(const Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.state.metadata.find(key);
  rill::check(found != checkpoint.state.metadata.end(),
              "{}: no checkpoint of a training run ('{}' is missing)", checkpoint.name, key);
  nlohmann::json json = nlohmann::json::parse(found->second, nullptr, false);
  rill::check(!json.is_discarded(), "{}: '{}' is no JSON", checkpoint.name, key);
  return json;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& file, const rill::nn::Module& network,
                     const rill::optim::Optimizer& optimizer, const rill::optim::ReduceLROnPlateau& schedule,
                     const nlohmann::json& progress) {
  NamedTensors tensors;
  append(tensors, "model.", network.state_dict());
  append(tensors, "optimizer.", optimizer.state());
  append(tensors, "schedule.", schedule.state());
  nlohmann::json counters = nlohmann::json::array();
  for (const auto& [name, value] : network.counters()) counters.push_back({name, value});
  rill::save_safetensors(file, tensors, {{"progress", progress.dump()}, {"counters", counters.dump()}});
}

Checkpoint read_checkpoint(const std::filesystem::path& file) {
  Checkpoint out{file.string(), rill::load_safetensors(file), {}};
  out.progress = metadata(out, "progress");
  return out;
}

void restore(const Checkpoint& checkpoint, rill::nn::Module& network, rill::optim::Optimizer& optimizer,
             rill::optim::ReduceLROnPlateau& schedule) try {
  const NamedTensors& tensors = checkpoint.state.tensors;
  network.load_state_dict(with_prefix(tensors, "model."));
  optimizer.load_state(with_prefix(tensors, "optimizer."));
  schedule.load_state(with_prefix(tensors, "schedule."));
  network.load_counters(
      metadata(checkpoint, "counters").get<std::vector<std::pair<std::string, std::uint64_t>>>());
} catch (const nlohmann::json::exception& error) {
  rill::fail("{}: the counters are damaged: {}", checkpoint.name, error.what());
} catch (const rill::Error& error) {
  rill::fail("{}: the checkpoint does not fit this training run: {}", checkpoint.name, error.what());
}

}  // namespace translator
