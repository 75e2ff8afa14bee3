#include <cstdint>
#include <initializer_list>

#include <bench/networks.h>

namespace bench {
namespace {

/// Measures a network at sizes that differ in one number.
template <class Sizes>
struct Varied {
  const char* network;
  Sizes sizes;
  const Options& options;
  const Emit& emit;

  /// `set(sizes, value)` for each value; the records name the axis and the value.
  template <class Set>
  void over(const char* axis, std::initializer_list<std::int64_t> values, const Set& set) const {
    for (const std::int64_t value : values) {
      Sizes changed = sizes;
      set(changed, value);
      train(changed, options, [&](nlohmann::ordered_json fields) {
        nlohmann::ordered_json record = {{"network", network}, {"axis", axis}, {"value", value}};
        record.update(fields);
        emit(std::move(record));
      });
    }
  }
};

}  // namespace

void scaling(const Options& options, const Emit& emit) {
  const Varied<ClassifierSizes> gru{"gru-large", classifier_sizes("large", options), options, emit};
  gru.over("T", {10, 30, 100, 300, 1000}, [](auto& s, std::int64_t steps) { s.steps = steps; });
  gru.over("ragged", {0, 1}, [](auto& s, std::int64_t ragged) { s.ragged = ragged != 0; });
  const Varied<Seq2SeqSizes> medium{"seq2seq-medium", seq2seq_sizes("medium", options), options, emit};
  medium.over("T", {10, 20, 50, 100, 200},
              [](auto& s, std::int64_t steps) { s.source_steps = s.target_steps = steps; });
  medium.over("B", {1, 4, 16, 64, 256}, [](auto& s, std::int64_t batch) { s.batch = batch; });
  medium.over("H", {64, 128, 256, 512, 1024}, [](auto& s, std::int64_t hidden) { s.hidden = hidden; });
  medium.over("V", {1000, 5000, 20000, 50000},
              [](auto& s, std::int64_t words) { s.source_words = s.target_words = words; });
}

}  // namespace bench
