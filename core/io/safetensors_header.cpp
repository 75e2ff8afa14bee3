#include <rill/core/io/safetensors_header.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <rill/core/error.h>

namespace rill::detail {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

struct FormatDType {
  const char* name;
  DType dtype;
};
constexpr std::array format_dtypes{FormatDType{"F32", float32}, FormatDType{"F64", float64},
                                   FormatDType{"I64", int64}, FormatDType{"BOOL", boolean}};

const char* format_name(DType dtype) noexcept {
  for (const FormatDType& f : format_dtypes) {
    if (f.dtype == dtype) return f.name;
  }
  return "?";
}

/// Builds a SafetensorsHeader from JSON parser events. A DOM parser would silently keep the last of duplicate
/// keys and recurse to any depth.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& label) : label_(label) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (state_ == State::nothing) {
      state_ = State::top;
    } else if (state_ == State::top && key_ == metadata_key) {
      state_ = State::metadata;
    } else if (state_ == State::top) {
      entry_ = {};
      entry_.name = key_;
      has_dtype_ = has_shape_ = false;
      offsets_.reset();
      state_ = State::entry;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::entry) finish_entry();
    state_ = state_ == State::top ? State::nothing : State::top;
    return true;
  }

  bool key(std::string& text) override {
    key_ = std::move(text);
    if (state_ == State::top) {
      if (key_ == metadata_key) {
        check(!has_metadata_, "safetensors: {}: duplicate {}", label_, metadata_key);
        has_metadata_ = true;
      }
    } else if (state_ == State::metadata) {
      check(!header_.metadata.contains(key_), "safetensors: {}: duplicate metadata {}", label_, Quoted{key_});
    }
    return true;
  }

  bool string(std::string& text) override {
    if (state_ == State::metadata) {
      header_.metadata.emplace(key_, std::move(text));
    } else if (state_ == State::entry && key_ == "dtype") {
      check(!has_dtype_, "safetensors: {}: tensor {}: duplicate dtype", label_, Quoted{entry_.name});
      has_dtype_ = true;
      set_dtype(text);
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::entry && key_ == "shape") {
      check(!has_shape_, "safetensors: {}: tensor {}: duplicate shape", label_, Quoted{entry_.name});
      has_shape_ = true;
      state_ = State::shape;
    } else if (state_ == State::entry && key_ == "data_offsets") {
      check(!offsets_, "safetensors: {}: tensor {}: duplicate data_offsets", label_, Quoted{entry_.name});
      offsets_.emplace();
      state_ = State::offsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::shape) {
      check(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
            "safetensors: {}: tensor {}: size {} exceeds 2^63 - 1", label_, Quoted{entry_.name}, value);
      check(entry_.shape.size() < Dims::max_rank, "safetensors: {}: tensor {} has more than {} dimensions",
            label_, Quoted{entry_.name}, Dims::max_rank);
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (state_ == State::offsets) {
      check(offsets_->size() < 2, "safetensors: {}: tensor {} has more than two data_offsets", label_,
            Quoted{entry_.name});
      offsets_->push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool number_integer(std::int64_t value) override {
    fail("safetensors: {}: {}: {} is negative", label_, here(), value);
  }
  bool number_float(double, const std::string& text) override {
    fail("safetensors: {}: {}: {} is not a 64-bit integer", label_, here(), Quoted{text});
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    // The message of the JSON library repeats bytes of the file, so it is not shown.
    fail("safetensors: {}: invalid JSON at byte {} of the header (parser error {})", label_, at, error.id);
  }

 private:
  enum class State { nothing, top, metadata, entry, shape, offsets };

  std::string here() const {
    switch (state_) {
      case State::nothing:
        return "the header";
      case State::top:
        return fmt::format("entry {}", Quoted{key_});
      case State::metadata:
        return fmt::format("metadata {}", Quoted{key_});
      default:
        return fmt::format("tensor {}, {}", Quoted{entry_.name}, Quoted{key_});
    }
  }

  [[noreturn]] void unexpected(const char* what) const {
    fail("safetensors: {}: {}: unexpected {}", label_, here(), what);
  }

  void set_dtype(const std::string& text) {
    const auto* found = std::find_if(format_dtypes.begin(), format_dtypes.end(),
                                     [&](const FormatDType& f) { return text == f.name; });
    check(found != format_dtypes.end(),
          "safetensors: {}: tensor {} has dtype {}; only F32, F64, I64 and BOOL are supported, convert it "
          "first",
          label_, Quoted{entry_.name}, Quoted{text});
    entry_.dtype = found->dtype;
  }

  void finish_entry() {
    check(has_dtype_, "safetensors: {}: tensor {} has no dtype", label_, Quoted{entry_.name});
    check(has_shape_, "safetensors: {}: tensor {} has no shape", label_, Quoted{entry_.name});
    check(offsets_ && offsets_->size() == 2, "safetensors: {}: tensor {} does not have two data_offsets",
          label_, Quoted{entry_.name});
    entry_.begin = (*offsets_)[0];
    entry_.end = (*offsets_)[1];
    header_.entries.push_back(std::move(entry_));
  }

  const std::string& label_;
  SafetensorsHeader header_;
  State state_ = State::nothing;
  std::string key_;
  SafetensorsEntry entry_;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  std::optional<std::vector<std::uint64_t>> offsets_;
};

/// The first duplicate name, if any.
std::optional<std::string_view> duplicate_name(const std::vector<SafetensorsEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& e : entries) names.push_back(e.name);
  std::sort(names.begin(), names.end());
  const auto duplicate = std::adjacent_find(names.begin(), names.end());
  return duplicate == names.end() ? std::nullopt : std::optional(*duplicate);
}

/// The size of an entry's data by dtype and shape; throws if it exceeds 2^63 - 1 bytes.
std::uint64_t byte_count(const SafetensorsEntry& e, const std::string& label) {
  auto bytes = static_cast<std::int64_t>(item_size(e.dtype));
  if (std::find(e.shape.begin(), e.shape.end(), 0) != e.shape.end()) return 0;
  for (std::int64_t size : e.shape) {
    check(!__builtin_mul_overflow(bytes, size, &bytes),
          "safetensors: {}: tensor {}: shape {} has more than 2^63 - 1 bytes", label, Quoted{e.name},
          e.shape);
  }
  return static_cast<std::uint64_t>(bytes);
}

/// Throws unless the entries cover the `data_bytes` bytes after the header exactly.
void check_offsets(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes,
                   const std::string& label) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const SafetensorsEntry& e : entries) {
    check(e.begin <= e.end, "safetensors: {}: tensor {} begins at byte {} and ends at {}", label,
          Quoted{e.name}, e.begin, e.end);
    check(e.end <= data_bytes, "safetensors: {}: tensor {} ends at byte {} of {}; is the file truncated?",
          label, Quoted{e.name}, e.end, data_bytes);
    const std::uint64_t bytes = byte_count(e, label);
    check(bytes == e.end - e.begin,
          "safetensors: {}: tensor {}: {} {} needs {} bytes, but data_offsets span {}", label, Quoted{e.name},
          format_name(e.dtype), e.shape, bytes, e.end - e.begin);
    order.push_back(&e);
  }
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t at = 0;
  for (const SafetensorsEntry* e : order) {
    check(e->begin >= at, "safetensors: {}: tensor {} begins at byte {} and overlaps one that ends at {}",
          label, Quoted{e->name}, e->begin, at);
    check(e->begin == at, "safetensors: {}: bytes {} to {} belong to no tensor", label, at, e->begin);
    at = e->end;
  }
  check(at == data_bytes, "safetensors: {}: bytes {} to {} at the end belong to no tensor", label, at,
        data_bytes);
}

std::string json_text(std::string_view text, const char* what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail("safetensors: the {} {} is not UTF-8", what, Quoted{text});
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text, std::uint64_t data_bytes,
                                           const std::string& label) {
  check(text.starts_with('{'),
        "safetensors: {}: the header does not begin with '{{'; this is not a safetensors file", label);
  // The JSON parser would treat a zero byte as the end of its input.
  check(text.find('\0') == std::string::npos, "safetensors: {}: the header contains a zero byte", label);
  HeaderReader reader(label);
  nlohmann::json::sax_parse(text, &reader);
  SafetensorsHeader header = reader.take();
  if (const auto duplicate = duplicate_name(header.entries))
    fail("safetensors: {}: duplicate tensor {}", label, Quoted{*duplicate});
  check_offsets(header.entries, data_bytes, label);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  if (const auto duplicate = duplicate_name(header.entries))
    fail("safetensors: two tensors are named {}", Quoted{*duplicate});
  std::string text = "{";
  const auto separate = [&] { text += text.back() == '{' ? "" : ","; };
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{{", metadata_key);
    for (const auto& [key, value] : header.metadata) {
      separate();
      text += json_text(key, "metadata key") + ':' + json_text(value, "metadata value");
    }
    text += '}';
  }
  for (const SafetensorsEntry& e : header.entries) {
    check(e.name != metadata_key, "safetensors: a tensor cannot be named {}", metadata_key);
    separate();
    text +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    json_text(e.name, "name"), format_name(e.dtype), fmt::join(e.shape, ","), e.begin, e.end);
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  check(text.size() <= max_safetensors_header,
        "safetensors: the header of {} tensors has {} bytes; the maximum is {}", header.entries.size(),
        text.size(), max_safetensors_header);
  return text;
}

}  // namespace rill::detail
